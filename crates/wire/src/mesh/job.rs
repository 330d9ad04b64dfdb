//! A job for an executor of another node. Its body is that of `/execute` or `/verify`.

use serde::{Deserialize, Serialize};

use super::Route;

/// The endpoint of the executor that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobCall {
    Execute,
    Verify,
}

/// The head of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    pub route: Route,
    /// The round of the origin.
    pub round: String,
    /// The replica within the round.
    pub replica: u64,
    /// Makes the job idempotent: the same id gets the same answer, and is booked once.
    pub execution_id: String,
    pub call: JobCall,
    /// The address of the executor, as its own node knows it.
    pub executor: String,
    pub profile: String,
    /// The most that the origin pays, in micro-credits.
    pub most_price_micros: u64,
    /// How long the origin waits, in milliseconds from the arrival of the job. A duration does not
    /// depend on two clocks.
    pub within_ms: u64,
    pub body_digest: String,
}
