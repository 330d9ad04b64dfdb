//! Rounds: from the seats and the calls to the recorded decision.

pub(crate) mod ask;
pub(crate) mod close;
pub(crate) mod credit_queue;
pub(crate) mod evidence;
mod fan_out;
pub(crate) mod handle;
pub(crate) mod in_flight;
mod policy_check;
mod prepare;
pub(crate) mod progress;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod seats;
mod secret_votes;
pub(crate) mod semantic;
mod wait;
pub(crate) mod walk;
