//! Version 2 of the consensus API, translated to version 3 and back.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    consensus_reply::{
        DelegateReply, EvidenceBody, ReplicaErrorBody, RoundReply, SingleReplica, VerdictReply,
    },
    kit::{
        request::{
            RequestBody,
            unknown::{KnownFields, SearchDepth, UnknownField},
        },
        words::Label,
    },
};

/// Translates a version 2 request to version 3: one replica, in the session that the request names.
/// Unknown fields are removed and named in the warnings.
pub fn up<R: RequestBody>(body: Value) -> (Value, Vec<String>) {
    let warnings = warnings(R::known(), &body);
    (stamped(R::known().strip(body)), warnings)
}

/// Adds the single replica of version 2 to a request. Applied to the whole body, the result
/// identifies a repeated request, because it still has everything that the caller sent.
pub fn stamped(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.insert("consensus".to_owned(), json!({ "replicas": 1 }));
    }
    body
}

fn warnings(known: &KnownFields, body: &Value) -> Vec<String> {
    let Some(members) = body.as_object() else { return Vec::new() };
    let warning = |stranger: UnknownField<'_>| {
        let advice = match stranger.path.as_str() {
            "consensus" | "replicas" | "policy.replicas" => {
                "; version 2 calls one replica; use `/api/v3` with `consensus.replicas`".to_owned()
            }
            _ => known.advice(&stranger, ""),
        };
        format!("`{}` is not a known field and was ignored{advice}", stranger.path)
    };
    known.unknown_fields(members, SearchDepth::All).into_iter().map(warning).collect()
}

/// Translates a version 3 reply to version 2: the answer of its one replica. The translation loses
/// information, but adds none.
pub fn down<'a>(reply: RoundReply<'a>, warnings: &'a [String]) -> ReplyV2<'a> {
    match reply {
        RoundReply::Delegate(reply) => ReplyV2::Delegate(DelegateReplyV2::of(reply, warnings)),
        RoundReply::Verdict(reply) => ReplyV2::Verdict(VerdictReplyV2::of(reply, warnings)),
    }
}

/// A version 2 reply; the kind of job decides its form.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub enum ReplyV2<'a> {
    Delegate(DelegateReplyV2<'a>),
    Verdict(VerdictReplyV2<'a>),
}

/// The reply to a version 2 delegate request: the answer of its one replica.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DelegateReplyV2<'a> {
    /// Probability that the output is right; 0 if there is none, never 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    #[schema(required = true)]
    pub error: Option<ReplicaErrorBody<'a>>,
    pub evidence: EvidenceBody<'a>,
    /// The output; null if there is none.
    #[schema(value_type = Value, required = true)]
    pub output: Option<Cow<'a, Value>>,
    /// Digest of the recorded decision.
    pub receipt_id: Cow<'a, str>,
    pub round_id: Cow<'a, str>,
    pub session_id: Cow<'a, str>,
    /// `OK`, or the label of the replica, such as `TIMEOUT`.
    #[schema(example = "OK")]
    pub status: Cow<'static, str>,
    /// Ignored fields of the request; left out if there are none.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false)]
    pub warnings: Cow<'a, [String]>,
}

/// The reply to a version 2 validate request: the answer of its one replica.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct VerdictReplyV2<'a> {
    /// Probability that the verdict is right; 0 if there is none, never 1.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    #[schema(required = true)]
    pub error: Option<ReplicaErrorBody<'a>>,
    pub evidence: EvidenceBody<'a>,
    /// The replica's reasons, in words.
    pub reasons: Vec<String>,
    /// Digest of the recorded decision.
    pub receipt_id: Cow<'a, str>,
    pub round_id: Cow<'a, str>,
    pub session_id: Cow<'a, str>,
    /// The verdict, or the label of the replica, such as `TIMEOUT`.
    #[schema(required = true)]
    pub verdict: Option<Label>,
    /// Ignored fields of the request; left out if there are none.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false)]
    pub warnings: Cow<'a, [String]>,
}

impl<'a> DelegateReplyV2<'a> {
    fn of(reply: DelegateReply<'a>, warnings: &'a [String]) -> Self {
        let one = SingleReplica::of(reply.replicas);
        let label = one.label.filter(|_| reply.output.is_none());
        Self {
            confidence: reply.confidence,
            error: one.error,
            evidence: one.evidence,
            output: reply.output,
            receipt_id: reply.receipt_id,
            round_id: reply.round_id,
            session_id: one.session_id,
            status: label.map_or(reply.status, |label| Cow::Borrowed(label.0.as_str())),
            warnings: Cow::Borrowed(warnings),
        }
    }
}

impl<'a> VerdictReplyV2<'a> {
    fn of(reply: VerdictReply<'a>, warnings: &'a [String]) -> Self {
        let one = SingleReplica::of(reply.replicas);
        Self {
            confidence: reply.confidence,
            error: one.error,
            evidence: one.evidence,
            reasons: reply.reasons,
            receipt_id: reply.receipt_id,
            round_id: reply.round_id,
            session_id: one.session_id,
            verdict: reply.verdict.or(one.label),
            warnings: Cow::Borrowed(warnings),
        }
    }
}
