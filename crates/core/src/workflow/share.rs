//! Shares: workflows of others as those have them whom they were granted to.

use std::str::FromStr;

use super::AccessRole;
use crate::{account::full_name, id::AccountId, round::job::words, time::Timestamp};

words!(
    /// What somebody made of what was shared with them.
    ShareState {
        /// It can be used by its id or full name, which accepts it.
        Pending => "pending",
        Accepted => "accepted",
        /// It is gone for whoever declined it until they accept it after all.
        Declined => "declined",
    }
);

words!(
    /// What somebody does with a share.
    ShareAction {
        Accept => "accept",
        Decline => "decline",
        /// Declines all that the owner shares, now and later.
        Block => "block",
    }
);

/// A workflow that was granted to somebody, directly or through a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The id of the workflow.
    pub id: String,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub owner: AccountId,
    /// `@handle`, or the id of an owner who has none.
    pub owner_label: String,
    pub role: AccessRole,
    pub state: ShareState,
    /// Whether all that the owner shares is declined.
    pub is_blocked: bool,
    /// The handle of the team through which it comes.
    pub team: Option<String>,
    pub granted_at: Timestamp,
}

impl Share {
    /// What the workflow is called by those who do not own it.
    pub fn reference(&self) -> String {
        full_name(&self.owner_label, &self.slug)
    }
}
