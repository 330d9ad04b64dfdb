//! Integration tests of the types that cross a boundary as JSON.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod agent_runs;
mod executor;
mod replies;
mod strict_json;
mod tasks;
