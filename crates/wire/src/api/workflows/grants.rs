//! Workflow grants in requests and replies.

use std::borrow::Cow;

use jurat_core::{
    account::{AccountName, team::Invitation},
    code::ProblemCode,
    workflow::{AccessRole, GrantLine, Workflow},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    api::kit::{
        request::{
            self, FieldFault, request, text, values,
            values::{Person, word},
        },
        time::Time,
        words,
    },
    problem::Problem,
};

request! {
    /// The user or team to share with.
    pub open struct WorkflowGrantRequest, draft WorkflowGrantDraft {
        /// The e-mail address of a user, the handle of a team or user (with or without `@`), or an
        /// account id. An unregistered address is accepted like any other; the grant takes effect when
        /// its account is created.
        grantee_email_or_at_team_handle: Person,
        /// `view`, `edit` or `admin`.
        role: GrantedRole,
        /// Whether to share versions before the current one too.
        include_history: Option<bool>,
    }

    /// The user or team whose grant to revoke.
    pub open struct RevokeWorkflowGrantRequest, draft RevokeWorkflowGrantDraft {
        /// The name that the grant was made to, as shown in the list of grants.
        grantee_email_or_at_team_handle: Person,
    }

    /// The new owner of the workflow.
    pub open struct TransferWorkflowRequest, draft TransferWorkflowDraft {
        /// The e-mail address or id of a user, or `@` and the user's handle.
        new_owner_user_id_or_email: Person,
    }
}

values! {
    /// A role that can be granted: any role except owner.
    pub struct GrantedRole(AccessRole as String): text().pattern(Some("^(view|edit|admin)$")) => granted_role,
        absent "must be one of view, edit, admin";
}

/// Reads the grantee, the role, and whether the history is shared too.
pub fn decode_grant(body: &Value) -> Result<(AccountName, AccessRole, bool), Problem> {
    let grant: WorkflowGrantRequest = request::read(body, ProblemCode::ValidationError)?;
    let with_history = grant.include_history == Some(true);
    Ok((grant.grantee_email_or_at_team_handle.0, grant.role.0, with_history))
}

/// Reads the grantee whose grant is revoked.
pub fn decode_revoke(body: &Value) -> Result<AccountName, Problem> {
    let revoke: RevokeWorkflowGrantRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(revoke.grantee_email_or_at_team_handle.0)
}

/// Reads the new owner.
pub fn decode_transfer(body: &Value) -> Result<AccountName, Problem> {
    let transfer: TransferWorkflowRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(transfer.new_owner_user_id_or_email.0)
}

fn granted_role(value: &Value) -> Result<AccessRole, FieldFault> {
    let role = word(value, ["view", "edit", "admin"].into_iter())?;
    if role == AccessRole::Owner {
        Err("must be one of view, edit, admin".into())
    } else {
        Ok(role)
    }
}

/// A new grant.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct GrantedWorkflow<'a> {
    pub workflow_id: Cow<'a, str>,
    /// Alias of `workflow_id`.
    pub skill_id: Cow<'a, str>,
    pub role: words::WorkflowRole,
    /// Whether all versions are shared.
    pub includes_full_history: bool,
    /// The first shared version; null for all.
    #[schema(required = true)]
    pub shared_from_version: Option<u32>,
}

/// A new grant; `floor` is the first shared version, or 0 for all.
pub fn granted(workflow_id: &str, role: AccessRole, floor: u32) -> GrantedWorkflow<'_> {
    GrantedWorkflow {
        workflow_id: Cow::Borrowed(workflow_id),
        skill_id: Cow::Borrowed(workflow_id),
        role: words::WorkflowRole(role),
        includes_full_history: floor == 0,
        shared_from_version: (floor > 0).then_some(floor),
    }
}

/// A grant of the workflow.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowGrant)]
pub struct WorkflowGrantBody<'a> {
    /// `user` or `team`.
    pub grantee_type: Cow<'static, str>,
    /// The name that the grant was made to: an e-mail address, `@` and a handle, or an account id.
    pub grantee_identifier: Cow<'a, str>,
    pub role: words::WorkflowRole,
    pub granted_by: Cow<'a, str>,
    pub granted_at: Time,
    /// Whether the grant was made to a team.
    pub is_via_team: bool,
    /// Whether all versions are shared.
    pub includes_full_history: bool,
    /// The first shared version; null for all.
    #[schema(required = true)]
    pub shared_from_version: Option<u32>,
}

/// All grants of the workflow.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct WorkflowGrantList<'a> {
    pub items: Vec<WorkflowGrantBody<'a>>,
}

/// A grant in the list of a workflow's grants.
pub fn grant_line(line: &GrantLine) -> WorkflowGrantBody<'_> {
    WorkflowGrantBody {
        grantee_type: Cow::Borrowed(if line.is_team { "team" } else { "user" }),
        grantee_identifier: Cow::Borrowed(&line.granted_to),
        role: words::WorkflowRole(line.role),
        granted_by: Cow::Borrowed(&line.granted_by),
        granted_at: Time(line.granted_at),
        is_via_team: line.is_team,
        includes_full_history: line.floor == 0,
        shared_from_version: (line.floor > 0).then_some(line.floor),
    }
}

/// A revoked grant.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct RevokedWorkflowGrant<'a> {
    pub workflow_id: Cow<'a, str>,
    /// Alias of `workflow_id`.
    pub skill_id: Cow<'a, str>,
    /// Whether there was a grant.
    pub revoked: bool,
}

/// A revoked grant.
pub fn revoked(workflow_id: &str, was_there: bool) -> RevokedWorkflowGrant<'_> {
    RevokedWorkflowGrant {
        workflow_id: Cow::Borrowed(workflow_id),
        skill_id: Cow::Borrowed(workflow_id),
        revoked: was_there,
    }
}

/// A workflow that the caller has left.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct LeftWorkflow<'a> {
    pub workflow_id: Cow<'a, str>,
    /// Alias of `workflow_id`.
    pub skill_id: Cow<'a, str>,
    /// Number of the caller's own grants that ended; team grants stay.
    pub removed_direct_grants: u32,
}

/// A workflow that the caller has left, with the number of grants that ended.
pub fn left(workflow_id: &str, removed: u32) -> LeftWorkflow<'_> {
    LeftWorkflow {
        workflow_id: Cow::Borrowed(workflow_id),
        skill_id: Cow::Borrowed(workflow_id),
        removed_direct_grants: removed,
    }
}

/// A workflow offered to another owner, or already owned by the caller.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct OfferedWorkflow<'a> {
    pub workflow_id: Cow<'a, str>,
    /// Alias of `workflow_id`.
    pub skill_id: Cow<'a, str>,
    /// The invitation to accept; left out if the caller already owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub invitation_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = words::InvitationKind)]
    pub kind: Option<words::InvitationKind>,
    /// When the offer expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Time)]
    pub expires_at: Option<Time>,
    /// The current owner.
    pub owner_user_id: Cow<'a, str>,
    /// Ownership changes when the offer is accepted.
    pub transferred: bool,
}

/// A workflow offered to another owner.
pub fn offered(invitation: &Invitation) -> OfferedWorkflow<'_> {
    OfferedWorkflow {
        workflow_id: Cow::Borrowed(&invitation.target_id),
        skill_id: Cow::Borrowed(&invitation.target_id),
        invitation_id: Some(Cow::Borrowed(&invitation.id)),
        kind: Some(words::InvitationKind(invitation.kind)),
        expires_at: Some(Time(invitation.expires_at)),
        owner_user_id: Cow::Borrowed(invitation.from.as_str()),
        transferred: false,
    }
}

/// The reply to an offer of a workflow to its own owner.
pub fn already_owned(workflow: &Workflow) -> OfferedWorkflow<'_> {
    OfferedWorkflow {
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        invitation_id: None,
        kind: None,
        expires_at: None,
        owner_user_id: Cow::Borrowed(workflow.account.as_str()),
        transferred: false,
    }
}
