//! The resource `/v1/invitations`.

use std::borrow::Cow;

use jurat_core::{
    account::team::{Invitation, InvitationOutcome},
    code::ProblemCode,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::kit::{time::Time, words};
use crate::problem::Problem;

/// An offer, as shown to its sender.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct InvitationSent<'a> {
    pub invitation_id: Cow<'a, str>,
    pub kind: words::InvitationKind,
    pub target_id: Cow<'a, str>,
    pub target_label: Cow<'a, str>,
    /// When the invitation expires.
    pub expires_at: Time,
}

/// An invitation that was just sent.
pub fn sent(invitation: &Invitation) -> InvitationSent<'_> {
    InvitationSent {
        invitation_id: Cow::Borrowed(&invitation.id),
        kind: words::InvitationKind(invitation.kind),
        target_id: Cow::Borrowed(&invitation.target_id),
        target_label: Cow::Borrowed(&invitation.target_label),
        expires_at: Time(invitation.expires_at),
    }
}

/// An invitation.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub struct InvitationBody<'a> {
    pub id: Cow<'a, str>,
    pub kind: words::InvitationKind,
    /// The team, workflow or template.
    pub target_id: Cow<'a, str>,
    pub target_label: Cow<'a, str>,
    /// Who sent the invitation; the e-mail address if there is no handle.
    pub proposed_by_handle: Cow<'a, str>,
    /// Who is invited, by the name given in the request.
    pub proposed_to_handle: Cow<'a, str>,
    pub created_at: Time,
    pub expires_at: Time,
    /// Null while it is pending.
    #[schema(required = true)]
    pub resolved_at: Option<Time>,
    #[schema(required = true)]
    pub resolution: Option<words::InvitationResolution>,
}

/// An invitation in a list.
pub fn listed(invitation: &Invitation) -> InvitationBody<'_> {
    InvitationBody {
        id: Cow::Borrowed(&invitation.id),
        kind: words::InvitationKind(invitation.kind),
        target_id: Cow::Borrowed(&invitation.target_id),
        target_label: Cow::Borrowed(&invitation.target_label),
        proposed_by_handle: Cow::Borrowed(plain(&invitation.from_label)),
        proposed_to_handle: Cow::Borrowed(plain(&invitation.to_label)),
        created_at: Time(invitation.created_at),
        expires_at: Time(invitation.expires_at),
        resolved_at: invitation.resolved_at.map(Time),
        resolution: invitation.resolution.map(words::InvitationResolution),
    }
}

/// A handle without the leading `@`.
fn plain(label: &str) -> &str {
    label.strip_prefix('@').unwrap_or(label)
}

/// How an invitation ended.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct InvitationResolved<'a> {
    pub invitation_id: Cow<'a, str>,
    pub kind: words::InvitationKind,
    pub target_id: Cow<'a, str>,
    pub target_label: Cow<'a, str>,
    pub resolution: words::InvitationResolution,
}

/// An invitation that has ended; one without a resolution has expired.
pub fn resolved(invitation: &Invitation) -> InvitationResolved<'_> {
    InvitationResolved {
        invitation_id: Cow::Borrowed(&invitation.id),
        kind: words::InvitationKind(invitation.kind),
        target_id: Cow::Borrowed(&invitation.target_id),
        target_label: Cow::Borrowed(&invitation.target_label),
        resolution: words::InvitationResolution(
            invitation.resolution.unwrap_or(InvitationOutcome::Expired),
        ),
    }
}

/// Reads the filter of a list: whether to show received invitations, and whether to show sent ones.
pub fn filter(text: Option<&str>) -> Result<(bool, bool), Problem> {
    match text {
        None | Some("received") => Ok((true, false)),
        Some("sent") => Ok((false, true)),
        Some("all") => Ok((true, true)),
        Some(_) => Err(wrong("filter", "must be `received`, `sent` or `all`")),
    }
}

/// Reads the state filter of a list: whether to show only invitations that can still be answered.
pub fn is_pending(text: Option<&str>) -> Result<bool, Problem> {
    match text {
        None | Some("pending") => Ok(true),
        Some("all") => Ok(false),
        Some(_) => Err(wrong("state", "must be `pending` or `all`")),
    }
}

fn wrong(field: &'static str, reason: &str) -> Problem {
    Problem::new(ProblemCode::ValidationError, format!("`{field}` {reason}")).at(field)
}
