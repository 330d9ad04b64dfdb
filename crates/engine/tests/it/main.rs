//! Tests of the engine under faults: nodes that stop, stores that fail, executors that come and go.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::panic, reason = "a test may stop at the first surprise")]

mod agent_runs;
mod crash;
mod health;
mod keys;
mod overload;
mod peers;
mod postgres;
mod schema_bombs;
mod simulation;
mod task_calls;
mod tasks;
mod unreliable_store;
