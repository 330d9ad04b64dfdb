//! The resource `/v1/shares`: workflows that others granted to the caller.

use jurat_core::{
    code::ProblemCode,
    workflow::share::{Share, ShareState},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    request::{self, request},
    time::Time,
    words,
};
use crate::problem::Problem;

request! {
    /// Nothing needs to be sent with an answer.
    pub strict struct AnswerShareRequest {}
}

/// Checks the body of an answer, which has no fields.
pub fn decode_answer(body: &Value) -> Result<(), Problem> {
    request::read::<AnswerShareRequest>(body, ProblemCode::ValidationError).map(drop)
}

/// A workflow that another owner granted to the caller, with the verifiers that it names.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Share)]
pub struct ShareBody<'a> {
    /// The id of the workflow.
    id: &'a str,
    name: &'a str,
    slug: &'a str,
    description: &'a str,
    /// The name of the workflow for the caller: `@owner/slug`.
    reference: String,
    /// `@` and the handle, or the id of an account without a handle.
    owner: &'a str,
    owner_user_id: &'a str,
    /// The caller's role on the workflow.
    role: words::WorkflowRole,
    state: words::ShareState,
    /// Whether the caller blocks all shares of the owner.
    blocked: bool,
    /// The handle of the team it was granted to; null if it was granted to the caller directly.
    #[schema(required = true)]
    via_team: Option<&'a str>,
    granted_at: Time,
}

pub fn share(share: &Share) -> ShareBody<'_> {
    ShareBody {
        id: &share.id,
        name: &share.name,
        slug: &share.slug,
        description: &share.description,
        reference: share.reference(),
        owner: &share.owner_label,
        owner_user_id: share.owner.as_str(),
        role: words::WorkflowRole(share.role),
        state: words::ShareState(share.state),
        blocked: share.is_blocked,
        via_team: share.team.as_deref(),
        granted_at: Time(share.granted_at),
    }
}

/// The state of the shares that are listed; all but those that were declined when left out.
pub fn state(text: Option<&str>) -> Result<Option<ShareState>, Problem> {
    text.map(str::parse).transpose().map_err(|()| {
        let detail = "`state` must be `pending`, `accepted` or `declined`";
        Problem::new(ProblemCode::ValidationError, detail).at("state")
    })
}
