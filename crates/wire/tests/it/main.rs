//! What crosses the boundary to executors, byte for byte.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod agent_runs;
mod executor;
mod replies;
mod strict_json;
mod tasks;
