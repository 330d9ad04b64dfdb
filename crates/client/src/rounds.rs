//! Rounds: the requests that open one, and `/v1/rounds`.

use jurat_wire::api::{
    consensus_reply::RoundReply,
    consensus_request::{DelegateDraft, ValidateDraft},
    rounds::{ErasedBody, RoundBody},
    v2::ReplyV2,
};
use serde::Deserialize;
use serde_json::Value;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/rounds";

/// A reply of either API version.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum AnyRoundReply {
    V3(RoundReply<'static>),
    V2(ReplyV2<'static>),
}

pub fn validate(request: &ValidateDraft) -> Call<RoundReply<'static>> {
    Call::post("/api/v3/validate", request)
}

pub fn delegate(request: &DelegateDraft) -> Call<RoundReply<'static>> {
    Call::post("/api/v3/delegate", request)
}

/// Opens a round: `kind` is `delegate`, `validate` or `factcheck`, and `version` is `v2` or `v3`. The
/// request may be a user's document.
pub fn open(version: &str, kind: &str, request: &Value) -> Call<AnyRoundReply> {
    Call::post(format!("/api/{version}/{kind}"), request)
}

/// Opens a round without waiting for its end.
pub fn open_async(version: &str, kind: &str, request: &Value) -> Call<RoundBody<'static>> {
    open(version, kind, request).header("prefer", Some("respond-async")).reading()
}

/// A filter for rounds; by default it matches all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoundListQuery {
    pub kind: Option<String>,
    pub outcome: Option<String>,
    pub state: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
}

pub fn list(filter: &RoundListQuery) -> Call<Page<RoundBody<'static>>> {
    Call::get(ROUTE)
        .query("kind", filter.kind.as_ref())
        .query("outcome", filter.outcome.as_ref())
        .query("state", filter.state.as_ref())
        .query("since", filter.since.as_ref())
        .query("until", filter.until.as_ref())
}

/// Shows a round, after waiting up to `wait` seconds for its end.
pub fn show(id: &str, wait: Option<u64>) -> Call<RoundBody<'static>> {
    Call::get(path(ROUTE, &[id])).query("wait", wait)
}

pub fn cancel(id: &str) -> Call<RoundBody<'static>> {
    Call::post_empty(path(ROUTE, &[id, "cancel"]))
}

/// Erases the question and the answers.
pub fn erase(id: &str) -> Call<ErasedBody<'static>> {
    Call::delete(path(ROUTE, &[id, "payload"]))
}
