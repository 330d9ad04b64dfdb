//! The load of a store, for monitoring.

use prometheus_client::metrics::histogram::Histogram;

/// The load of a store. Values that a store does not have are absent.
#[derive(Debug, Clone, Default)]
pub struct StoreLoad {
    pub writes_waiting: usize,
    /// The number of writes that shared each commit so far.
    pub commit_sizes: Option<Histogram>,
    pub connections: Option<ConnectionCounts>,
}

/// The connections to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    pub used: u32,
    pub idle: u32,
}
