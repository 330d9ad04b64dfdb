//! The resource `/v1/rounds`.

use jurat_core::{
    replica::Label,
    round::{ClosingSummary, OpenRound, Round, RoundSummary},
};
use serde_json::{Value, json};

use super::{consensus_reply::Reply, time};

/// A round with its reply, as `GET /v1/rounds/{id}` shows it.
pub fn body(round: &Round) -> Value {
    let closing = round.closing.as_ref().map(ClosingSummary::from);
    let mut body = line(&round.open, closing.as_ref());
    if let (Some(members), Some(Value::Object(reply))) =
        (body.as_object_mut(), Reply::of(round).map(|reply| json!(reply)))
    {
        members.extend(reply);
    }
    body
}

/// A line of a list.
pub fn summary(round: &RoundSummary) -> Value {
    line(&round.open, round.closing.as_ref())
}

fn line(open: &OpenRound, closing: Option<&ClosingSummary>) -> Value {
    let sessions: Vec<&str> = open.seats.iter().map(|seat| seat.session_id.as_str()).collect();
    json!({
        "round_id": open.id.as_str(),
        "kind": open.kind.as_str(),
        "state": closing.map_or("open", |closing| closing.ending.as_str()),
        "sessions": sessions,
        "policy_id": open.policy_id,
        "policy_hash": open.policy_hash,
        "request_digest": open.request_digest,
        "opened_at": time::value(open.opened_at),
        "deadline_at": time::value(open.deadline_at),
        "closed_at": closing.map(|closing| time::value(closing.closed_at)),
        "outcome": closing.map(|closing| closing.outcome.as_str()),
        "verdict": closing.and_then(|closing| closing.verdict).map(Label::as_str),
        "agreement": closing.map(|closing| closing.agreement),
        "confidence": closing.map(|closing| closing.confidence),
        "receipt_id": closing.map(|closing| closing.receipt_id.as_str()),
    })
}

/// A page of a list.
pub fn page(items: &[Value], next_cursor: Option<&str>) -> Value {
    json!({ "items": items, "next_cursor": next_cursor })
}
