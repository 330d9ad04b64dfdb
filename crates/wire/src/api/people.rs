//! The handle of an account: `/v1/me` and `/v1/me/rename-handle`.

use jurat_core::{account::AccountProfile, code::ProblemCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{fields::RequestFields, time::Time};
use crate::problem::Problem;

/// A handle for an account or a new team.
#[derive(Debug, ToSchema)]
pub struct HandleRequest {
    /// 3 to 40 lowercase letters, digits and hyphens, with no hyphen at either end.
    #[schema(min_length = 1, pattern = r"\S")]
    pub handle: String,
}

/// The handle; whether it has the form of one is a question of its own.
pub fn decode_handle(body: &Value) -> Result<&str, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.required_text("handle")
}

/// The account's handle.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimedHandle<'a> {
    handle: &'a str,
    claimed_at: Option<Time>,
}

pub fn claimed(profile: &AccountProfile) -> ClaimedHandle<'_> {
    ClaimedHandle {
        handle: profile.handle.as_deref().unwrap_or_default(),
        claimed_at: profile.handle_claimed_at.map(Time),
    }
}
