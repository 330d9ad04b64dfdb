//! The domain of Jurat as pure functions: no I/O, no clock, no random numbers, never `async`.

pub mod account;
pub mod agent_run;
pub mod canonical;
pub mod checkup;
pub mod code;
pub mod executor;
pub mod footprint;
pub mod id;
pub mod idempotency;
pub mod judge;
pub mod key_counts;
pub mod list;
pub mod metric;
pub mod payment;
pub mod peer;
pub mod policy;
pub mod reason;
pub mod round;
pub mod schema;
pub mod strict_json;
pub mod task;
pub mod time;
pub mod verifier;
pub mod webhook;
pub mod workflow;
