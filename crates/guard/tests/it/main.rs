//! Tests of the contact with untrusted input, from outside.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod public;
mod sandbox;
