//! Version 2 of the consensus API, as a translation to version 3 and back.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    consensus_reply::{DelegateReply, ErrorBody, EvidenceBody, One, Reply, VerdictReply},
    words::Label,
};

/// A v2 request is a v3 request with one replica, in the session it names.
pub fn up(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        // v2 knows no `consensus`; its routes ignore what they do not know.
        members.insert("consensus".to_owned(), json!({ "replicas": 1 }));
    }
    body
}

/// A v2 reply is what the one replica said. It loses information and invents none.
pub fn down(reply: Reply<'_>) -> ReplyV2<'_> {
    match reply {
        Reply::Delegate(reply) => ReplyV2::Delegate(DelegateReplyV2::of(reply)),
        Reply::Verdict(reply) => ReplyV2::Verdict(VerdictReplyV2::of(reply)),
    }
}

/// The reply of version 2.
#[derive(Debug)]
pub enum ReplyV2<'a> {
    Delegate(DelegateReplyV2<'a>),
    Verdict(VerdictReplyV2<'a>),
}

impl Serialize for ReplyV2<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Delegate(reply) => reply.serialize(writer),
            Self::Verdict(reply) => reply.serialize(writer),
        }
    }
}

/// The reply to a delegate request of version 2: what the one replica said.
#[derive(Debug, Serialize, ToSchema)]
pub struct DelegateReplyV2<'a> {
    /// Probability that the output is right; 0 without one, never 1.
    #[schema(minimum = 0, maximum = 1)]
    confidence: f64,
    #[schema(required = true)]
    error: Option<ErrorBody<'a>>,
    evidence: EvidenceBody<'a>,
    /// The output; null without one.
    #[schema(value_type = Value, required = true)]
    output: Option<&'a Value>,
    /// Digest of the recorded decision.
    receipt_id: &'a str,
    round_id: &'a str,
    session_id: &'a str,
    /// `OK`, or the label of the replica, such as `TIMEOUT`.
    #[schema(example = "OK")]
    status: &'static str,
}

/// The reply to a validate request of version 2: what the one replica said.
#[derive(Debug, Serialize, ToSchema)]
pub struct VerdictReplyV2<'a> {
    /// Probability that the verdict is right; 0 without one, never 1.
    #[schema(minimum = 0, maximum = 1)]
    confidence: f64,
    #[schema(required = true)]
    error: Option<ErrorBody<'a>>,
    evidence: EvidenceBody<'a>,
    /// Why the replica says so, in words.
    reasons: Vec<String>,
    /// Digest of the recorded decision.
    receipt_id: &'a str,
    round_id: &'a str,
    session_id: &'a str,
    /// The verdict, or the label of the replica, such as `TIMEOUT`.
    #[schema(required = true)]
    verdict: Option<Label>,
}

impl<'a> DelegateReplyV2<'a> {
    fn of(reply: DelegateReply<'a>) -> Self {
        let one = One::of(reply.replicas);
        let label = one.label.filter(|_| reply.output.is_none());
        Self {
            confidence: reply.confidence,
            error: one.error,
            evidence: one.evidence,
            output: reply.output,
            receipt_id: reply.receipt_id,
            round_id: reply.round_id,
            session_id: one.session_id,
            status: label.map_or(reply.status, |label| label.0.as_str()),
        }
    }
}

impl<'a> VerdictReplyV2<'a> {
    fn of(reply: VerdictReply<'a>) -> Self {
        let one = One::of(reply.replicas);
        Self {
            confidence: reply.confidence,
            error: one.error,
            evidence: one.evidence,
            reasons: reply.reasons,
            receipt_id: reply.receipt_id,
            round_id: reply.round_id,
            session_id: one.session_id,
            verdict: reply.verdict.or(one.label),
        }
    }
}
