//! The resource `/v1/knowledge`: decisions that tasks may reuse.

use std::borrow::Cow;

use jurat_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::time::Time;

/// The parts of a remembered decision that replies show.
#[derive(Debug, Clone, Copy)]
pub struct KnowledgeView<'a> {
    pub task_id: &'a str,
    pub epoch: u64,
    pub task_type: &'a str,
    pub policy_id: &'a str,
    pub input_digest: &'a str,
    pub schema_digest: &'a str,
    pub params_digest: &'a str,
    pub candidate: &'a str,
    pub output: &'a Value,
    pub reason_codes: &'a [u16],
    pub confidence: f64,
    /// The recorded votes.
    pub quorum: &'a Value,
    pub final_hash: &'a str,
    pub created_at: Timestamp,
    pub deprecated_at: Option<Timestamp>,
}

/// A remembered decision, for reuse by tasks with the same or similar inputs.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Knowledge)]
pub struct KnowledgeBody<'a> {
    pub task_id: Cow<'a, str>,
    /// Number of the decision within the task, from 1.
    pub epoch: u64,
    pub task_type: Cow<'a, str>,
    /// The reference under which executors see it in the seed bundle of similar tasks.
    pub decision_ref: DecisionRef<'a>,
    pub candidate_id: Cow<'a, str>,
    /// The decided output.
    #[schema(value_type = Value)]
    pub output: Cow<'a, Value>,
    /// Probability that the decision is right; a hint for the same inputs is never higher.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// Reason codes that the voters gave.
    pub reason_codes: Cow<'a, [u16]>,
    pub quorum: KnowledgeQuorum,
    pub policy_id: Cow<'a, str>,
    /// Digests of the inputs, the schema and the policy's parameters. Tasks of the same type with
    /// the same policy and digests can reuse the decision.
    pub input_digest: Cow<'a, str>,
    pub output_schema_digest: Cow<'a, str>,
    pub policy_params_digest: Cow<'a, str>,
    /// Digest of the decision.
    pub final_hash: Cow<'a, str>,
    pub created_at: Time,
    /// When it was disputed and excluded from reuse.
    #[schema(required = true)]
    pub deprecated_at: Option<Time>,
}

/// A reference to a decision.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = KnowledgeRef)]
pub struct DecisionRef<'a> {
    pub task_id: Cow<'a, str>,
    pub epoch: u64,
    pub final_commit_hash: Cow<'a, str>,
}

/// The votes.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct KnowledgeQuorum {
    pub threshold: u64,
    pub approvals: u64,
    pub rejections: u64,
}

/// A remembered decision.
pub fn body(view: KnowledgeView<'_>) -> KnowledgeBody<'_> {
    let count = |name: &str| view.quorum[name].as_u64().unwrap_or_default();
    KnowledgeBody {
        task_id: Cow::Borrowed(view.task_id),
        epoch: view.epoch,
        task_type: Cow::Borrowed(view.task_type),
        decision_ref: DecisionRef {
            task_id: Cow::Borrowed(view.task_id),
            epoch: view.epoch,
            final_commit_hash: Cow::Borrowed(view.final_hash),
        },
        candidate_id: Cow::Borrowed(view.candidate),
        output: Cow::Borrowed(view.output),
        confidence: view.confidence,
        reason_codes: Cow::Borrowed(view.reason_codes),
        quorum: KnowledgeQuorum {
            threshold: count("threshold"),
            approvals: count("approvals"),
            rejections: count("rejections"),
        },
        policy_id: Cow::Borrowed(view.policy_id),
        input_digest: Cow::Borrowed(view.input_digest),
        output_schema_digest: Cow::Borrowed(view.schema_digest),
        policy_params_digest: Cow::Borrowed(view.params_digest),
        final_hash: Cow::Borrowed(view.final_hash),
        created_at: Time(view.created_at),
        deprecated_at: view.deprecated_at.map(Time),
    }
}
