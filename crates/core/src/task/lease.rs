//! Claims: who works on what, until when, and by which token.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{round::job::words, time::Timestamp};

words!(
    /// What somebody claims to do.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    TaskRole {
        Propose => "propose",
        Verify => "verify",
        Finalize => "finalize",
    }
);

/// Work under way. It holds until its lease ends, and the token is how a late writer is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLease {
    pub role: TaskRole,
    /// The executor that does the work; the node, to finalize.
    pub holder: String,
    /// The node on which the work goes on.
    pub node: String,
    /// What the holder has in common with others, such as a model.
    pub independence: String,
    /// How many different independence keys there are among all who could verify the candidate
    /// now, the holder among them. Votes under one key count as one as long as the quorum could be
    /// reached under as many keys; where the pool has fewer, that many keys are enough. Without
    /// meaning for other roles.
    pub pool_keys: u32,
    pub execution_id: String,
    /// The candidate that is verified or made final.
    pub candidate: Option<String>,
    /// At most the lease of the contract from now; what is beyond is cut off.
    pub until: Timestamp,
}

/// Why a claim ended without what it was for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum LeaseRelease {
    /// Its holder was not heard of in time. What came of the work is not known.
    LeaseRanOut,
    /// The work failed; the code is that of an error or of a reason.
    Failed { code: String, detail: String },
    /// Whoever did it does not go on. What came of the work is not known.
    GivenUp { detail: String },
    /// The node could not ask, or not note the answer. It is not its holder's fault, and what was
    /// paid is given back.
    NodeFailed { code: String, detail: String },
}

/// Work that was begun, and of which nobody knows what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedWork {
    pub role: TaskRole,
    pub holder: String,
    pub candidate: Option<String>,
    pub execution_id: String,
    /// Whether the budget was charged for it and nothing was given back: whoever goes on with it
    /// under the same execution is not charged again.
    #[serde(default = "charged")]
    pub is_charged: bool,
}

/// What was left before this was noted was charged, unless a node failed at it.
const fn charged() -> bool {
    true
}
