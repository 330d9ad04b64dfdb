//! The node itself: its capacity, health, metrics, and shutdown.

pub(crate) mod capacity;
pub(crate) mod doctor;
pub mod evaluation;
pub(crate) mod failpoints;
pub(crate) mod keyed_locks;
pub(crate) mod keyed_permits;
pub(crate) mod metrics;
pub(crate) mod permit_queue;
pub(crate) mod pressure;
mod shutdown;
