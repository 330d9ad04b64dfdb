//! Shares: workflows of other owners as their recipients see them.

use std::str::FromStr;

use super::AccessRole;
use crate::{account::full_name, id::AccountId, round::job::words, time::Timestamp};

words!(
    /// The recipient's answer to a share.
    ShareState {
        /// Not answered yet. Using it by its id or full name accepts it.
        Pending => "pending",
        Accepted => "accepted",
        /// Hidden from the recipient until they accept it after all.
        Declined => "declined",
    }
);

words!(
    /// An action of the recipient on a share.
    ShareAction {
        Accept => "accept",
        Decline => "decline",
        /// Declines everything that the owner shares, now and later.
        Block => "block",
    }
);

/// Selects shares for a list, newest workflow first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShareFilter {
    /// Only shares in this state; if absent, all except declined ones.
    pub state: Option<ShareState>,
    /// Starts after this workflow, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

/// A workflow that was granted to an account, directly or through a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The id of the workflow.
    pub id: String,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub owner: AccountId,
    /// `@handle`, or the id of an owner without a handle.
    pub owner_label: String,
    pub role: AccessRole,
    pub state: ShareState,
    /// Whether everything that the owner shares is declined.
    pub is_blocked: bool,
    /// The handle of the team that it comes through.
    pub team: Option<String>,
    pub granted_at: Timestamp,
}

impl Share {
    /// The full name of the workflow, for those who do not own it.
    pub fn reference(&self) -> String {
        full_name(&self.owner_label, &self.slug)
    }
}
