//! The options that every measurement takes.

use std::time::Duration;

use crate::load::{LoadPlan, LoadStop};

#[derive(Debug, Clone, clap::Args)]
pub struct LoadOptions {
    /// Connections, each of which has one request under way at any time.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// How long one turn lasts, after its warm-up.
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Ends a turn after this many requests instead.
    #[arg(long)]
    pub requests: Option<u64>,
    /// Requests per connection that are not counted, at the start of each turn.
    #[arg(long, default_value_t = 200)]
    pub warm_up: u64,
    /// How many turns each subject gets.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Prints the figures as JSON, every turn included.
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
