//! How much a store has to do, for those who watch it.

use prometheus_client::metrics::histogram::Histogram;

/// What a store knows of its own load. A store that has no such thing leaves it out.
#[derive(Debug, Clone, Default)]
pub struct StoreLoad {
    pub writes_waiting: usize,
    /// How many writes shared each commit so far.
    pub commit_sizes: Option<Histogram>,
    pub connections: Option<ConnectionCounts>,
}

/// The connections to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    pub used: u32,
    pub idle: u32,
}
