//! Leases: who works on what, until when, and with which token.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{round::job::words, time::Timestamp};

words!(
    /// The role of a lease.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    TaskRole {
        Propose => "propose",
        Verify => "verify",
        Finalize => "finalize",
    }
);

/// Work in progress. It is valid until its lease ends, and its token exposes a late writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLease {
    pub role: TaskRole,
    /// The executor that does the work; for finalizing, the node.
    pub holder: String,
    /// The node that runs the work.
    pub node: String,
    /// The independence key of the holder, such as its model.
    pub independence: String,
    /// How many independence keys exist among all who could vote on the candidate now, including
    /// the holder. Votes with one key count once if the pool has enough keys for the quorum; if it
    /// has fewer, all its keys are enough. Unused for other roles.
    pub pool_keys: u32,
    pub execution_id: String,
    /// The candidate to vote on or to make final.
    pub candidate: Option<String>,
    /// At most one lease length from now; a later time is cut.
    pub until: Timestamp,
}

/// Why a lease ended without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum LeaseRelease {
    /// Its holder was not heard from in time. The result is unknown.
    LeaseRanOut,
    /// The work failed; the code is an error code or a reason code.
    Failed { code: String, detail: String },
    /// The worker gave up. The result is unknown.
    GivenUp { detail: String },
    /// The node could not ask, or could not record the answer. It is not the holder's fault, and
    /// the charge is refunded.
    NodeFailed { code: String, detail: String },
}

/// Work that was started, with an unknown result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedWork {
    pub role: TaskRole,
    pub holder: String,
    pub candidate: Option<String>,
    pub execution_id: String,
    /// Whether it was charged and not refunded: continuing it under the same execution id is not
    /// charged again.
    #[serde(default = "charged")]
    pub is_charged: bool,
}

/// Work recorded before this member existed was charged, unless a node failed at it.
const fn charged() -> bool {
    true
}
