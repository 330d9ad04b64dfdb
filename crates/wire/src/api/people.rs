//! The handle of an account: `/v1/me` and `/v1/me/rename-handle`.

use std::borrow::Cow;

use jurat_core::{account::AccountProfile, code::ProblemCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    request::{self, request, values::Identifier},
    time::Time,
};
use crate::problem::Problem;

request! {
    /// A handle for an account or a new team.
    pub open struct HandleRequest, draft HandleDraft {
        /// 3 to 40 lowercase letters, digits and hyphens, with no hyphen at either end.
        handle: Identifier,
    }
}

/// Reads a handle. Its form is checked later, because a malformed handle has its own error code.
pub fn decode_handle(body: &Value) -> Result<String, Problem> {
    let request: HandleRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.handle.0)
}

/// The account's handle.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ClaimedHandle<'a> {
    pub handle: Cow<'a, str>,
    pub claimed_at: Option<Time>,
}

/// The account's handle.
pub fn claimed(profile: &AccountProfile) -> ClaimedHandle<'_> {
    ClaimedHandle {
        handle: Cow::Borrowed(profile.handle.as_deref().unwrap_or_default()),
        claimed_at: profile.handle_claimed_at.map(Time),
    }
}
