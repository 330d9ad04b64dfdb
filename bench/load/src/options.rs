//! The options of every measurement.

use std::time::Duration;

use crate::load::{LoadPlan, LoadStop};

#[derive(Debug, Clone, clap::Args)]
pub struct LoadOptions {
    /// Connections, each with one request in progress
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Seconds of one pass, after its warm-up
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// End a pass after this many requests instead
    #[arg(long)]
    pub requests: Option<u64>,
    /// Requests per connection that are not counted, at the start of each pass
    #[arg(long, default_value_t = 200)]
    pub warm_up: u64,
    /// Passes for each subject
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Print the metrics as JSON, with every pass
    #[arg(long)]
    pub json: bool,
}

impl LoadOptions {
    pub fn plan(&self) -> LoadPlan {
        let stop = match self.requests {
            Some(requests) => LoadStop::Requests(requests),
            None => LoadStop::After(Duration::from_secs(self.seconds)),
        };
        LoadPlan { connections: self.connections.max(1), warm_up: self.warm_up, stop }
    }
}
