//! Teams and invitations.

use std::str::FromStr;

use crate::{id::AccountId, round::job::words, time::Timestamp};

words!(
    /// The role of an account in a team.
    TeamRole { Owner => "owner", Member => "member" }
);

words!(
    /// The offer of an invitation.
    InvitationKind {
        TeamMembership => "team_membership",
        TeamOwnership => "team_ownership",
        WorkflowOwnership => "workflow_ownership_transfer",
        TemplateOwnership => "template_ownership_transfer",
    }
);

/// An offer of membership or ownership of a team, and the user it is for.
#[derive(Debug, Clone, Copy)]
pub struct TeamOffer<'a> {
    pub kind: InvitationKind,
    pub to: &'a str,
}

impl InvitationKind {
    /// Whether accepting it takes ownership away from the sender, so that only one may be open.
    pub const fn is_ownership(self) -> bool {
        !matches!(self, Self::TeamMembership)
    }
}

words!(
    /// How an invitation ended.
    InvitationOutcome {
        Accepted => "accepted",
        Declined => "declined",
        Cancelled => "cancelled",
        Expired => "expired",
    }
);

/// How long an invitation can be answered.
pub const INVITATION_MICROS: i64 = 14 * 24 * 3_600 * 1_000_000;
/// How many invitations an account may send in a day, answered or not.
pub const INVITATIONS_A_DAY: u32 = 100;
/// How many teams an account may own.
pub const TEAMS_OWNED: u32 = 50;
/// How many teams an account may be a member of.
pub const TEAMS_JOINED: u32 = 200;
/// How many members a team may have.
pub const TEAM_MEMBERS: u32 = 500;

/// A team as one of its members sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    pub account: AccountId,
    pub handle: String,
    pub owner: AccountId,
    /// The role of the caller in the team.
    pub role: TeamRole,
    pub created_at: Timestamp,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMember {
    pub account: AccountId,
    pub email: Option<String>,
    pub handle: Option<String>,
    pub role: TeamRole,
    pub since: Timestamp,
}

/// An offer that its recipient may accept or decline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub id: String,
    pub kind: InvitationKind,
    /// The team, workflow or template.
    pub target_id: String,
    pub target_label: String,
    pub from: AccountId,
    pub from_label: String,
    /// An account, or an e-mail address that has no account yet.
    pub to: String,
    /// As the sender named the recipient: it reveals nothing about the account behind the name.
    pub to_label: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub resolved_at: Option<Timestamp>,
    pub resolution: Option<InvitationOutcome>,
}

/// Selects invitations of an account for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InvitationFilter {
    pub is_received: bool,
    pub is_sent: bool,
    /// Only invitations that can still be answered.
    pub is_pending: bool,
    /// Starts after this invitation, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

impl Invitation {
    /// The invitation at a time: without an answer in time, it has expired.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        if self.resolution.is_none() && self.expires_at <= now {
            self.resolved_at = Some(self.expires_at);
            self.resolution = Some(InvitationOutcome::Expired);
        }
        self
    }
}
