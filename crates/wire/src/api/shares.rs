//! The resource `/v1/shares`: workflows that other accounts granted to the caller.

use std::borrow::Cow;

use jurat_core::{
    code::ProblemCode,
    workflow::share::{Share, ShareState},
};
use serde::{Deserialize, Serialize};
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
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Share)]
pub struct ShareBody<'a> {
    /// The id of the workflow.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub description: Cow<'a, str>,
    /// The name of the workflow for the caller: `@owner/slug`.
    pub reference: String,
    /// `@` and the handle, or the id of an account without a handle.
    pub owner: Cow<'a, str>,
    pub owner_user_id: Cow<'a, str>,
    /// The caller's role on the workflow.
    pub role: words::WorkflowRole,
    pub state: words::ShareState,
    /// Whether the caller blocks all shares of the owner.
    pub blocked: bool,
    /// The handle of the team it was granted to; null if it was granted to the caller directly.
    #[schema(required = true)]
    pub via_team: Option<Cow<'a, str>>,
    pub granted_at: Time,
}

/// A workflow that another owner granted to the caller.
pub fn share(share: &Share) -> ShareBody<'_> {
    ShareBody {
        id: Cow::Borrowed(&share.id),
        name: Cow::Borrowed(&share.name),
        slug: Cow::Borrowed(&share.slug),
        description: Cow::Borrowed(&share.description),
        reference: share.reference(),
        owner: Cow::Borrowed(&share.owner_label),
        owner_user_id: Cow::Borrowed(share.owner.as_str()),
        role: words::WorkflowRole(share.role),
        state: words::ShareState(share.state),
        blocked: share.is_blocked,
        via_team: share.team.as_deref().map(Cow::Borrowed),
        granted_at: Time(share.granted_at),
    }
}

/// Reads the state of the shares to list; if left out, all except declined shares are listed.
pub fn state(text: Option<&str>) -> Result<Option<ShareState>, Problem> {
    text.map(str::parse).transpose().map_err(|()| {
        let detail = "`state` must be `pending`, `accepted` or `declined`";
        Problem::new(ProblemCode::ValidationError, detail).at("state")
    })
}
