//! Tests of whole decisions of the core.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod agent_run_state;
mod agent_runs;
mod canonical_json;
mod cases;
mod checks;
mod consensus;
mod large_outputs;
mod policies;
mod properties;
mod select;
mod tasks;
mod verifier_runs;
mod winners;
