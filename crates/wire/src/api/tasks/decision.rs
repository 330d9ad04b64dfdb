//! What a task decided, also in the words of the peer that has `run-real`.

use std::collections::BTreeMap;

use jurat_core::{
    policy::EvaluationStatus,
    round::consensus,
    task::{Proposal, Vote},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::reply::{TaskView, VoteBody, committed, profile, sides, votes};
use crate::api::kit::words::{Basis, TaskAggregation, TaskState};

/// What is known of the candidate that was decided on.
#[derive(Debug, Clone)]
pub struct DecidedCandidate<'a> {
    pub output: &'a Value,
    pub executor: &'a str,
    pub provider_family: Option<&'a str>,
    pub model_id: Option<&'a str>,
    pub evidence_digests: Vec<&'a str>,
    pub confidence: Option<f64>,
    pub final_hash: Option<&'a str>,
    pub rounds: TaskCallRounds<'a>,
}

/// The rounds of the task's calls.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = TaskRounds)]
pub struct TaskCallRounds<'a> {
    /// The round that proposed the candidate; null if it comes from an earlier decision.
    #[schema(required = true)]
    pub propose: Option<&'a str>,
    /// The round of each voter's verdict.
    pub verify: BTreeMap<&'a str, &'a str>,
}

/// The decision of a task; fields are null if there is none yet.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskDecision)]
pub struct DecisionBody<'a> {
    task_id: &'a str,
    task_type: &'a str,
    epoch: u64,
    state: TaskState,
    /// Same value as `state`.
    terminal_state: TaskState,
    /// Why there is no decision, if the task ended without one.
    #[schema(required = true)]
    reason: Option<&'a str>,
    #[schema(required = true)]
    candidate_id: Option<&'a str>,
    /// The candidate that the votes approved.
    #[schema(required = true)]
    committed_candidate_id: Option<&'a str>,
    /// The candidate whose decision is final.
    #[schema(required = true)]
    finalized_candidate_id: Option<&'a str>,
    /// The decided output.
    #[schema(required = true, value_type = Option<Value>)]
    output: Option<&'a Value>,
    /// Same value as `output`.
    #[schema(required = true, value_type = Option<Value>)]
    candidate_output: Option<&'a Value>,
    /// The member `answer` of the output, if it is a string.
    #[schema(required = true)]
    final_answer: Option<&'a str>,
    /// The member `decision` of the output, if it is a string.
    #[schema(required = true)]
    final_decision: Option<&'a str>,
    aggregation: TaskAggregation,
    quorum_threshold: u32,
    /// Valid votes for the candidate.
    approvals: usize,
    /// Valid votes against the candidate.
    rejections: usize,
    /// Share of valid votes that are for the candidate.
    #[schema(required = true, minimum = 0, maximum = 1)]
    agreement: Option<f64>,
    /// Probability that the decision is right.
    #[schema(required = true, minimum = 0, maximum = 1)]
    confidence: Option<f64>,
    /// Basis of the decision: `executors`, `judges`, or `form` if only the node voted for it, under
    /// a policy that needs no judgment.
    #[schema(required = true)]
    basis: Option<Basis>,
    votes: Vec<VoteBody<'a>>,
    /// The proposers of the decided output.
    #[schema(required = true)]
    executor: Option<&'a str>,
    #[schema(required = true)]
    provider_family: Option<&'a str>,
    #[schema(required = true)]
    model_id: Option<&'a str>,
    profile: &'a str,
    /// The earlier decision that the candidate was reused from.
    #[schema(required = true)]
    source: Option<&'a str>,
    /// Digests of the evidence that the candidate refers to.
    evidence_digests: Vec<&'a str>,
    /// The rounds of the task's calls; `GET /v1/rounds/{id}` shows them.
    rounds: TaskCallRounds<'a>,
    /// Digest of the decision, used by later tasks to refer to it.
    #[schema(required = true)]
    final_hash: Option<&'a str>,
}

pub fn decision<'a>(view: TaskView<'a>, decided: Option<DecidedCandidate<'a>>) -> DecisionBody<'a> {
    let task = view.task;
    let committed = committed(task);
    let proposal = committed.and_then(|id| task.proposal(id));
    let (approvals, rejections) = proposal.map_or((0, 0), sides);
    let output = decided.as_ref().map(|it| it.output);
    let text = |name: &str| output.and_then(|it| it.get(name)).and_then(Value::as_str);
    DecisionBody {
        task_id: &task.id,
        task_type: view.task_type,
        epoch: task.epoch,
        state: TaskState(task.phase),
        terminal_state: TaskState(task.phase),
        reason: view.reason,
        candidate_id: committed,
        committed_candidate_id: committed,
        finalized_candidate_id: task.decided.as_deref(),
        output,
        candidate_output: output,
        final_answer: text("answer"),
        final_decision: text("decision"),
        aggregation: TaskAggregation(task.terms.aggregation),
        quorum_threshold: task.terms.quorum,
        approvals,
        rejections,
        agreement: proposal.and_then(|it| agreement(it, approvals)),
        confidence: decided.as_ref().and_then(|it| it.confidence),
        basis: proposal.and_then(basis).map(Basis),
        votes: proposal.map(votes).unwrap_or_default(),
        executor: decided.as_ref().map(|it| it.executor),
        provider_family: decided.as_ref().and_then(|it| it.provider_family),
        model_id: decided.as_ref().and_then(|it| it.model_id),
        profile: profile(view.panel),
        source: proposal.and_then(|it| it.source.as_deref()),
        evidence_digests: decided
            .as_ref()
            .map(|it| it.evidence_digests.clone())
            .unwrap_or_default(),
        final_hash: decided.as_ref().and_then(|it| it.final_hash),
        rounds: decided.map(|it| it.rounds).unwrap_or_default(),
    }
}

/// Only those who voted for it speak for it.
fn basis(proposal: &Proposal) -> Option<consensus::Basis> {
    let is_for =
        |vote: &Vote| vote.ballot().is_some_and(|it| it.status == EvaluationStatus::Passed);
    let voters = proposal.votes.iter().filter(|(_, vote)| is_for(vote));
    consensus::Basis::of(voters.map(|(voter, _)| voter.as_str()))
}

/// Who was asked and forfeited its vote stays in the denominator.
fn agreement(proposal: &Proposal, approvals: usize) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a task has at most 64 votes on a candidate")]
    let share = approvals as f64 / proposal.votes.len() as f64;
    (!proposal.votes.is_empty()).then_some(share)
}
