//! Claims: who works on what, until when, and by which token.

use std::str::FromStr;

use crate::{job::words, time::Timestamp};

words!(
    /// What somebody claims to do.
    Role {
        Propose => "propose",
        Verify => "verify",
        Finalize => "finalize",
    }
);

/// Work under way. It holds until its lease ends, and the token is how a late writer is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub role: Role,
    /// The executor that does the work; the node, to finalize.
    pub holder: String,
    /// What the holder has in common with others, such as a model.
    pub independence: String,
    pub execution_id: String,
    /// The candidate that is verified or made final.
    pub candidate: Option<String>,
    pub until: Timestamp,
}
