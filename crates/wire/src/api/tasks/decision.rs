//! The decision of a task, including fields with the names that the peer's `run-real` uses.

use std::{borrow::Cow, collections::BTreeMap};

use jurat_core::{
    policy::EvaluationStatus,
    round::consensus,
    task::{Proposal, Vote},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::reply::{TaskView, VoteBody, committed, profile, sides, votes};
use crate::api::kit::words::{Basis, TaskAggregation, TaskState};

/// The decided candidate.
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
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskRounds)]
pub struct TaskCallRounds<'a> {
    /// The round that proposed the candidate; null if it comes from an earlier decision.
    #[schema(required = true)]
    pub propose: Option<Cow<'a, str>>,
    /// The round of each voter's verdict.
    pub verify: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// The decision of a task; fields are null if there is none yet.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskDecision)]
pub struct DecisionBody<'a> {
    pub task_id: Cow<'a, str>,
    pub task_type: Cow<'a, str>,
    pub epoch: u64,
    pub state: TaskState,
    /// Same value as `state`.
    pub terminal_state: TaskState,
    /// Why there is no decision, if the task ended without one.
    #[schema(required = true)]
    pub reason: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub candidate_id: Option<Cow<'a, str>>,
    /// The candidate that the votes approved.
    #[schema(required = true)]
    pub committed_candidate_id: Option<Cow<'a, str>>,
    /// The candidate whose decision is final.
    #[schema(required = true)]
    pub finalized_candidate_id: Option<Cow<'a, str>>,
    /// The decided output.
    #[schema(required = true, value_type = Option<Value>)]
    pub output: Option<Cow<'a, Value>>,
    /// Same value as `output`.
    #[schema(required = true, value_type = Option<Value>)]
    pub candidate_output: Option<Cow<'a, Value>>,
    /// The member `answer` of the output, if it is a string.
    #[schema(required = true)]
    pub final_answer: Option<Cow<'a, str>>,
    /// The member `decision` of the output, if it is a string.
    #[schema(required = true)]
    pub final_decision: Option<Cow<'a, str>>,
    pub aggregation: TaskAggregation,
    pub quorum_threshold: u32,
    /// Valid votes for the candidate.
    pub approvals: usize,
    /// Valid votes against the candidate.
    pub rejections: usize,
    /// Share of valid votes that are for the candidate.
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub agreement: Option<f64>,
    /// Probability that the decision is right.
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub confidence: Option<f64>,
    /// Basis of the decision: `executors`, `judges`, or `form` if only the node voted for it, under
    /// a policy that needs no judgment.
    #[schema(required = true)]
    pub basis: Option<Basis>,
    pub votes: Vec<VoteBody<'a>>,
    /// The proposers of the decided output.
    #[schema(required = true)]
    pub executor: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub provider_family: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub model_id: Option<Cow<'a, str>>,
    pub profile: Cow<'a, str>,
    /// The earlier decision that the candidate was reused from.
    #[schema(required = true)]
    pub source: Option<Cow<'a, str>>,
    /// Digests of the evidence that the candidate refers to.
    pub evidence_digests: Vec<Cow<'a, str>>,
    /// The rounds of the task's calls; `GET /v1/rounds/{id}` shows them.
    pub rounds: TaskCallRounds<'a>,
    /// Digest of the decision, used by later tasks to refer to it.
    #[schema(required = true)]
    pub final_hash: Option<Cow<'a, str>>,
}

/// The decision of a task, with the decided candidate if there is one.
pub fn decision<'a>(view: TaskView<'a>, decided: Option<DecidedCandidate<'a>>) -> DecisionBody<'a> {
    let task = view.task;
    let committed = committed(task);
    let proposal = committed.and_then(|id| task.proposal(id));
    let (approvals, rejections) = proposal.map_or((0, 0), sides);
    let output = decided.as_ref().map(|it| it.output);
    let text = |name: &str| output.and_then(|it| it.get(name)).and_then(Value::as_str);
    DecisionBody {
        task_id: Cow::Borrowed(&task.id),
        task_type: Cow::Borrowed(view.task_type),
        epoch: task.epoch,
        state: TaskState(task.phase),
        terminal_state: TaskState(task.phase),
        reason: view.reason.map(Cow::Borrowed),
        candidate_id: committed.map(Cow::Borrowed),
        committed_candidate_id: committed.map(Cow::Borrowed),
        finalized_candidate_id: task.decided.as_deref().map(Cow::Borrowed),
        output: output.map(Cow::Borrowed),
        candidate_output: output.map(Cow::Borrowed),
        final_answer: text("answer").map(Cow::Borrowed),
        final_decision: text("decision").map(Cow::Borrowed),
        aggregation: TaskAggregation(task.terms.aggregation),
        quorum_threshold: task.terms.quorum,
        approvals,
        rejections,
        agreement: proposal.and_then(|it| agreement(it, approvals)),
        confidence: decided.as_ref().and_then(|it| it.confidence),
        basis: proposal.and_then(basis).map(Basis),
        votes: proposal.map(votes).unwrap_or_default(),
        executor: decided.as_ref().map(|it| it.executor).map(Cow::Borrowed),
        provider_family: decided.as_ref().and_then(|it| it.provider_family).map(Cow::Borrowed),
        model_id: decided.as_ref().and_then(|it| it.model_id).map(Cow::Borrowed),
        profile: Cow::Borrowed(profile(view.panel)),
        source: proposal.and_then(|it| it.source.as_deref()).map(Cow::Borrowed),
        evidence_digests: decided
            .iter()
            .flat_map(|it| &it.evidence_digests)
            .map(|digest| Cow::Borrowed(*digest))
            .collect(),
        final_hash: decided.as_ref().and_then(|it| it.final_hash).map(Cow::Borrowed),
        rounds: decided.map(|it| it.rounds).unwrap_or_default(),
    }
}

/// The basis of a decision: only votes for the candidate count.
fn basis(proposal: &Proposal) -> Option<consensus::Basis> {
    let is_for =
        |vote: &Vote| vote.ballot().is_some_and(|it| it.status == EvaluationStatus::Passed);
    let voters = proposal.votes.iter().filter(|(_, vote)| is_for(vote));
    consensus::Basis::of(voters.map(|(voter, _)| voter.as_str()))
}

/// Share of votes for the candidate. Forfeited votes stay in the denominator.
fn agreement(proposal: &Proposal, approvals: usize) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a task has at most 64 votes on a candidate")]
    let share = approvals as f64 / proposal.votes.len() as f64;
    (!proposal.votes.is_empty()).then_some(share)
}
