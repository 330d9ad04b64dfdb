//! The domain of Jurat. Pure: no I/O, no clock, no randomness, never `async`.

pub mod calibration;
pub mod caller;
pub mod candidate;
pub mod canonical;
pub mod checkup;
pub mod code;
pub mod consensus;
pub mod decision;
pub mod executor;
pub mod figure;
pub mod id;
pub mod job;
pub mod judge;
pub mod key;
pub mod ledger;
pub mod policy;
pub mod reason;
pub mod replica;
pub mod round;
pub mod run;
pub mod schema;
pub mod select;
pub mod session;
pub mod strict;
pub mod time;
pub mod verifier;
