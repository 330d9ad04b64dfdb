//! The node itself: its capacity, health, metrics, and shutdown.

pub(crate) mod capacity;
pub(crate) mod doctor;
pub mod evaluation;
pub(crate) mod failpoints;
pub(crate) mod fair_queue;
pub(crate) mod metrics;
pub(crate) mod pressure;
mod shutdown;
