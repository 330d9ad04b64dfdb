//! Tests of hostile and random schemas.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod schemas;
