//! The resource `/v1/rounds`.

use std::borrow::Cow;

use jurat_core::{
    round::{ClosingSummary, OpenRound, Round, RoundSummary},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    consensus_reply::{ConsensusBlock, ReplicaBody, RoundReply},
    kit::{
        member::OptionalMember,
        time::Time,
        words::{Kind, Label, Outcome, RoundState},
    },
};

/// A round: its request, state and outcome.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Round)]
pub struct RoundBody<'a> {
    pub round_id: Cow<'a, str>,
    pub kind: Kind,
    pub state: RoundState,
    /// The task that the round belongs to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub task_id: Option<Cow<'a, str>>,
    /// The verifier run that the round carries out, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub verifier_run_id: Option<Cow<'a, str>>,
    /// The request in one line; null if it is not stored or was erased or pruned.
    #[schema(required = true)]
    pub asked: Option<Cow<'a, str>>,
    /// The sessions called, in selection order.
    pub sessions: Vec<Cow<'a, str>>,
    pub policy_id: Cow<'a, str>,
    pub policy_hash: Cow<'a, str>,
    /// Digest of the request's canonical JSON.
    pub request_digest: Cow<'a, str>,
    pub opened_at: Time,
    pub deadline_at: Time,
    /// Null while the round is open, like all fields below.
    #[schema(required = true)]
    pub closed_at: Option<Time>,
    #[schema(required = true)]
    pub outcome: Option<Outcome>,
    /// The winning verdict, `OK` for delegate; null if none won.
    #[schema(required = true)]
    pub verdict: Option<Label>,
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub agreement: Option<f64>,
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub confidence: Option<f64>,
    #[schema(required = true)]
    pub receipt_id: Option<Cow<'a, str>>,
    /// As in the reply; left out in lists and while the round is open, like all fields below.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>)]
    pub reasons: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub status: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Value)]
    pub output: OptionalMember<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ConsensusBlock)]
    pub consensus: Option<ConsensusBlock<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<ReplicaBody>)]
    pub replicas: Option<Vec<ReplicaBody<'a>>>,
    /// The request as canonical JSON, whose digest is `request_digest`; for a verifier run, the
    /// input of its judges. Left out in lists and if it is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub request: Option<Value>,
    /// When the round's content was erased or pruned; left out before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Time)]
    pub erased_at: Option<Time>,
    /// Ignored fields of a version 2 request, in the reply to a request that does not wait.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false)]
    pub warnings: Cow<'a, [String]>,
}

/// A round whose content is erased.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RoundErased)]
pub struct ErasedBody<'a> {
    pub round_id: Cow<'a, str>,
    /// When it was erased, possibly by an earlier request.
    pub erased_at: Time,
}

/// The reply to a request to erase a round.
pub fn erased(round_id: &str, at: Timestamp) -> ErasedBody<'_> {
    ErasedBody { round_id: Cow::Borrowed(round_id), erased_at: Time(at) }
}

/// A round with its reply, as `GET /v1/rounds/{id}` shows it.
pub fn body(round: &Round) -> Value {
    let closing = round.closing.as_ref().map(ClosingSummary::from);
    let mut body = line(&round.open, closing.as_ref());
    let kept = &round.open.kept;
    let request = kept.asked.as_ref().and_then(|asked| asked.request.as_deref());
    body.request = request.and_then(|text| serde_json::from_str(text).ok());
    body.erased_at = kept.erased_at.map(Time);
    match RoundReply::of(round) {
        None => {}
        Some(RoundReply::Delegate(reply)) => {
            body.status = Some(reply.status);
            body.output = OptionalMember::Is(reply.output);
            body.consensus = Some(reply.consensus);
            body.replicas = Some(reply.replicas);
        }
        Some(RoundReply::Verdict(reply)) => {
            body.reasons = Some(reply.reasons);
            body.consensus = Some(reply.consensus);
            body.replicas = Some(reply.replicas);
        }
    }
    serde_json::json!(body)
}

/// A round in a list.
pub fn summary(round: &RoundSummary) -> RoundBody<'_> {
    line(&round.open, round.closing.as_ref())
}

fn line<'a>(open: &'a OpenRound, closing: Option<&'a ClosingSummary>) -> RoundBody<'a> {
    RoundBody {
        round_id: Cow::Borrowed(open.id.as_str()),
        kind: Kind(open.kind),
        state: RoundState(closing.map(|closing| closing.ending)),
        task_id: open.step.as_ref().map(|step| step.task_id.as_str()).map(Cow::Borrowed),
        verifier_run_id: open.run.as_ref().map(|run| run.id.as_str()).map(Cow::Borrowed),
        asked: open.kept.asked.as_ref().map(|asked| asked.line.as_str()).map(Cow::Borrowed),
        sessions: open.seats.iter().map(|seat| Cow::Borrowed(seat.session_id.as_str())).collect(),
        policy_id: Cow::Borrowed(&open.policy_id),
        policy_hash: Cow::Borrowed(&open.policy_hash),
        request_digest: Cow::Borrowed(&open.request_digest),
        opened_at: Time(open.opened_at),
        deadline_at: Time(open.deadline_at),
        closed_at: closing.map(|closing| Time(closing.closed_at)),
        outcome: closing.map(|closing| Outcome(closing.outcome)),
        verdict: closing.and_then(|closing| closing.verdict).map(Label),
        agreement: closing.map(|closing| closing.agreement),
        confidence: closing.map(|closing| closing.confidence),
        receipt_id: closing.map(|closing| closing.receipt_id.as_str()).map(Cow::Borrowed),
        reasons: None,
        status: None,
        output: OptionalMember::LeftOut,
        consensus: None,
        replicas: None,
        request: None,
        erased_at: None,
        warnings: Cow::Borrowed(&[]),
    }
}
