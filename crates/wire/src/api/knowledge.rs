//! The resource `/v1/knowledge`: what is remembered of decisions.

use jurat_core::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::time::Time;

/// A decision as it is remembered.
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
    /// How the votes stood, as it is recorded.
    pub quorum: &'a Value,
    pub final_hash: &'a str,
    pub created_at: Timestamp,
    pub deprecated_at: Option<Timestamp>,
}

/// A remembered decision, for reuse by tasks with the same or similar inputs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Knowledge)]
pub struct KnowledgeBody<'a> {
    task_id: &'a str,
    /// Number of the decision within the task, from 1.
    epoch: u64,
    task_type: &'a str,
    /// The reference under which executors see it in the seed bundle of similar tasks.
    decision_ref: DecisionRef<'a>,
    candidate_id: &'a str,
    /// The decided output.
    #[schema(value_type = Value)]
    output: &'a Value,
    /// Probability that the decision is right; a hint for the same inputs is never higher.
    #[schema(minimum = 0, maximum = 1)]
    confidence: f64,
    /// Reason codes that the voters gave.
    reason_codes: &'a [u16],
    quorum: KnowledgeQuorum,
    policy_id: &'a str,
    /// Digests of the inputs, the schema and the policy's parameters. Tasks of the same type with
    /// the same policy and digests can reuse the decision.
    input_digest: &'a str,
    output_schema_digest: &'a str,
    policy_params_digest: &'a str,
    /// Digest of the decision.
    final_hash: &'a str,
    created_at: Time,
    /// When it was disputed and excluded from reuse.
    #[schema(required = true)]
    deprecated_at: Option<Time>,
}

/// A reference to a decision.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KnowledgeRef)]
pub struct DecisionRef<'a> {
    task_id: &'a str,
    epoch: u64,
    final_commit_hash: &'a str,
}

/// The votes.
#[derive(Debug, Serialize, ToSchema)]
pub struct KnowledgeQuorum {
    threshold: u64,
    approvals: u64,
    rejections: u64,
}

pub fn body(view: KnowledgeView<'_>) -> KnowledgeBody<'_> {
    let count = |name: &str| view.quorum[name].as_u64().unwrap_or_default();
    KnowledgeBody {
        task_id: view.task_id,
        epoch: view.epoch,
        task_type: view.task_type,
        decision_ref: DecisionRef {
            task_id: view.task_id,
            epoch: view.epoch,
            final_commit_hash: view.final_hash,
        },
        candidate_id: view.candidate,
        output: view.output,
        confidence: view.confidence,
        reason_codes: view.reason_codes,
        quorum: KnowledgeQuorum {
            threshold: count("threshold"),
            approvals: count("approvals"),
            rejections: count("rejections"),
        },
        policy_id: view.policy_id,
        input_digest: view.input_digest,
        output_schema_digest: view.schema_digest,
        policy_params_digest: view.params_digest,
        final_hash: view.final_hash,
        created_at: Time(view.created_at),
        deprecated_at: view.deprecated_at.map(Time),
    }
}
