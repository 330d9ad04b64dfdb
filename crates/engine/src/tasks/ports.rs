//! The traits that the task driver needs, and their real implementations.

pub(crate) mod store;
pub(crate) mod store_adapter;
pub(crate) mod worker_adapter;
pub(crate) mod workers;
