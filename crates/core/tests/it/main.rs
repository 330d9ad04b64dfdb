//! Tests of whole decisions of the core.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod canonical_json;
mod cases;
mod checks;
mod consensus;
mod large_outputs;
mod policies;
mod properties;
mod runs;
mod schemas;
mod select;
mod task_run_state;
mod task_runs;
mod tasks;
mod winners;
