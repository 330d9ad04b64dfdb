//! Tests of the fakes themselves.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod canary;
mod client;
mod misbehaves;
mod speaks;
mod typed_client;
