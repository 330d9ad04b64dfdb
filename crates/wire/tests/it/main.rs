//! What crosses the boundary to executors, byte for byte.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod executor;
mod runs;
mod strict;
mod tasks;
