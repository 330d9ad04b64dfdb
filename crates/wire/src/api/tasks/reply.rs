//! A task as it is shown: how far it has come, who works on it, and what it has spent.

use std::collections::BTreeMap;

use jurat_core::{
    policy::EvaluationStatus,
    task::{ComplaintWindow, Proposal, Task, TaskLease, Vote},
    time::Timestamp,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::contract::TaskContractBody;
use crate::api::kit::{
    member::OptionalMember,
    time::Time,
    words::{CandidateGap, CandidateStanding, ClaimRole, TaskState, VoteForfeit},
};
use crate::executor::VerificationStatus;

/// What is known of a task.
#[derive(Debug, Clone, Copy)]
pub struct TaskView<'a> {
    pub task: &'a Task,
    pub task_type: &'a str,
    /// Gone once the task was pruned.
    pub contract: Option<&'a Value>,
    pub contract_digest: &'a str,
    /// Who may work on it, as it is recorded.
    pub panel: &'a Value,
    /// Number of events.
    pub events: u64,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<&'a str>,
}

/// A line of a list of tasks.
#[derive(Debug, Clone, Copy)]
pub struct TaskLine<'a> {
    pub id: &'a str,
    pub task_type: &'a str,
    pub phase: jurat_core::task::TaskPhase,
    pub events: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<&'a str>,
}

/// A task in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskSummary)]
pub struct TaskSummaryBody<'a> {
    task_id: &'a str,
    task_type: &'a str,
    state: TaskState,
    /// Number of events.
    events: u64,
    created_at: Time,
    updated_at: Time,
    #[schema(required = true)]
    ended_at: Option<Time>,
    /// Why it ended without a decision.
    #[schema(required = true)]
    reason: Option<&'a str>,
}

/// A task with its state and history.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Task)]
pub struct TaskBody<'a> {
    task_id: &'a str,
    task_type: &'a str,
    state: TaskState,
    /// Current epoch of a continuous task, from 1.
    epoch: u64,
    /// Digest of the contract's canonical JSON.
    contract_digest: &'a str,
    panel: TaskRosterBody<'a>,
    created_at: Time,
    /// When the first work of this epoch started.
    #[schema(required = true)]
    started_at: Option<Time>,
    updated_at: Time,
    #[schema(required = true)]
    ended_at: Option<Time>,
    /// Latest time at which the task ends, as currently known.
    deadline_at: Time,
    /// No executor is asked to propose again before this time.
    #[schema(required = true)]
    retry_at: Option<Time>,
    /// How often proposing failed for all proposers.
    retries: u32,
    spent: TaskSpendingBody,
    /// A lease: work in progress.
    claims: Vec<TaskLeaseBody<'a>>,
    candidates: Vec<CandidateBody<'a>>,
    /// The candidate that the votes approved.
    #[schema(required = true)]
    committed_candidate_id: Option<&'a str>,
    /// The candidate whose decision is final.
    #[schema(required = true)]
    finalized_candidate_id: Option<&'a str>,
    /// Decisions that can still be disputed.
    settling: Vec<SettlingBody<'a>>,
    /// Why it ended without a decision.
    #[schema(required = true)]
    reason: Option<&'a str>,
    /// Number of events.
    events: u64,
    /// The contract with all defaults filled in; null once the task was pruned, and not in the
    /// reply to a submission.
    #[serde(skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<TaskContractBody>)]
    contract: OptionalMember<&'a Value>,
}

/// The executors that may work on a task.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskPanel)]
pub struct TaskRosterBody<'a> {
    executors: Vec<&'a str>,
    verifiers: Vec<&'a str>,
    profile: &'a str,
    /// Whether this node votes too, because the other voters are too few for the quorum.
    node_votes: bool,
}

/// A decision that can be disputed for a limited time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskSettling)]
pub struct SettlingBody<'a> {
    epoch: u64,
    candidate_id: &'a str,
    /// End of the dispute window.
    settles_at: Time,
    /// The dispute; only one is accepted.
    #[schema(required = true)]
    complaint: Option<&'a str>,
}

/// Spent and remaining budget of this epoch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskSpent)]
pub struct TaskSpendingBody {
    /// Calls to executors.
    steps: BudgetAccount,
    /// Units of all stages.
    cost_units: BudgetAccount,
    explore_cost_units: BudgetAccount,
    verify_cost_units: BudgetAccount,
    finalize_cost_units: BudgetAccount,
}

/// One part of a budget.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskAccount)]
pub struct BudgetAccount {
    limit: u64,
    spent: u64,
    left: u64,
}

/// A lease: work in progress.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskClaimUnderWay)]
pub struct TaskLeaseBody<'a> {
    /// The fencing token: later leases have higher ones.
    token: u64,
    role: ClaimRole,
    /// The executor, or the node.
    holder: &'a str,
    #[schema(required = true)]
    candidate_id: Option<&'a str>,
    execution_id: &'a str,
    /// When the lease expires unless it is renewed.
    until: Time,
}

/// A proposed output.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskCandidate)]
pub struct CandidateBody<'a> {
    candidate_id: &'a str,
    /// Digest of the output's canonical JSON.
    output_digest: &'a str,
    /// Executors that proposed this output; they cannot vote on it.
    proposers: Vec<&'a str>,
    /// The earlier decision that it was reused from.
    #[schema(required = true)]
    source: Option<&'a str>,
    standing: CandidateStanding,
    /// Why the votes so far decided nothing.
    #[schema(required = true)]
    gap: Option<CandidateGap>,
    /// Number of the current voting attempt on it, from 1.
    turn: u32,
    votes: Vec<VoteBody<'a>>,
    /// For each referenced digest: the voters that could fetch it.
    evidence: BTreeMap<&'a str, Vec<&'a str>>,
}

/// A vote. Its verdict is visible only after the reveal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskVoteCast)]
pub struct VoteBody<'a> {
    voter: &'a str,
    /// What the voter has in common with other voters, such as a model.
    independence: &'a str,
    turn: u32,
    /// The digest that commits the voter to its verdict.
    commitment: &'a str,
    /// Null until the vote is revealed, like the next three fields.
    #[schema(required = true)]
    verdict: Option<VerificationStatus>,
    #[schema(required = true, minimum = 0, maximum = 1)]
    score: Option<f64>,
    #[schema(required = true)]
    reason_codes: Option<&'a [u16]>,
    /// Digest of the voter's full answer.
    #[schema(required = true)]
    verdict_digest: Option<&'a str>,
    /// Why it does not count.
    #[schema(required = true)]
    forfeited: Option<VoteForfeit>,
}

pub fn summary(line: TaskLine<'_>) -> TaskSummaryBody<'_> {
    TaskSummaryBody {
        task_id: line.id,
        task_type: line.task_type,
        state: TaskState(line.phase),
        events: line.events,
        created_at: Time(line.created_at),
        updated_at: Time(line.updated_at),
        ended_at: line.ended_at.map(Time),
        reason: line.reason,
    }
}

/// A task with its contract.
pub fn whole(view: TaskView<'_>) -> TaskBody<'_> {
    TaskBody { contract: OptionalMember::Is(view.contract), ..body(view) }
}

/// A task without its contract, for those who sent it.
pub fn body(view: TaskView<'_>) -> TaskBody<'_> {
    let TaskView { task, panel, .. } = view;
    TaskBody {
        task_id: &task.id,
        task_type: view.task_type,
        state: TaskState(task.phase),
        epoch: task.epoch,
        contract_digest: view.contract_digest,
        panel: TaskRosterBody {
            executors: texts(&panel["executors"]),
            verifiers: texts(&panel["verifiers"]),
            profile: profile(panel),
            node_votes: panel["has_node"] == Value::Bool(true),
        },
        created_at: Time(task.created_at),
        started_at: task.started_at.map(Time),
        updated_at: Time(view.updated_at),
        ended_at: view.ended_at.map(Time),
        deadline_at: Time(task.deadline()),
        retry_at: task.retry_at.map(Time),
        retries: task.retries,
        spent: spent(task),
        claims: task.claims.iter().map(|(token, it)| lease_body(*token, it)).collect(),
        candidates: task.proposals.iter().map(candidate).collect(),
        committed_candidate_id: committed(task),
        finalized_candidate_id: task.decided.as_deref(),
        settling: task.windows.iter().map(settling).collect(),
        reason: view.reason,
        events: view.events,
        contract: OptionalMember::LeftOut,
    }
}

fn settling(window: &ComplaintWindow) -> SettlingBody<'_> {
    SettlingBody {
        epoch: window.epoch,
        candidate_id: &window.candidate,
        settles_at: Time(window.until),
        complaint: window.complaint.as_deref(),
    }
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The profile of a panel.
pub(super) fn profile(panel: &Value) -> &str {
    panel["profile"].as_str().unwrap_or("default")
}

/// The candidate that the votes approved.
pub(super) fn committed(task: &Task) -> Option<&str> {
    task.decided.as_deref().or_else(|| task.approved().map(|it| it.id.as_str()))
}

fn spent(task: &Task) -> TaskSpendingBody {
    let (budget, spent) = (&task.terms.budget, &task.spent);
    TaskSpendingBody {
        steps: account(u64::from(budget.max_steps), u64::from(spent.steps)),
        cost_units: account(budget.cost_units, spent.units()),
        explore_cost_units: account(budget.explore, spent.explore),
        verify_cost_units: account(budget.verify, spent.verify),
        finalize_cost_units: account(budget.finalize, spent.finalize),
    }
}

const fn account(limit: u64, spent: u64) -> BudgetAccount {
    BudgetAccount { limit, spent, left: limit.saturating_sub(spent) }
}

fn lease_body(token: u64, claim: &TaskLease) -> TaskLeaseBody<'_> {
    TaskLeaseBody {
        token,
        role: ClaimRole(claim.role),
        holder: &claim.holder,
        candidate_id: claim.candidate.as_deref(),
        execution_id: &claim.execution_id,
        until: Time(claim.until),
    }
}

fn candidate(proposal: &Proposal) -> CandidateBody<'_> {
    let found = |digest: &str| {
        let found = proposal.available.get(digest).into_iter().flatten();
        found.map(String::as_str).collect()
    };
    CandidateBody {
        candidate_id: &proposal.id,
        output_digest: &proposal.digest,
        proposers: proposal.proposers.iter().map(String::as_str).collect(),
        source: proposal.source.as_deref(),
        standing: CandidateStanding(proposal.standing),
        gap: proposal.gap.map(CandidateGap),
        turn: proposal.turn,
        votes: votes(proposal),
        evidence: proposal.evidence.iter().map(|it| (it.as_str(), found(it))).collect(),
    }
}

pub(super) fn votes(proposal: &Proposal) -> Vec<VoteBody<'_>> {
    proposal.votes.iter().map(|(voter, it)| vote(voter, it)).collect()
}

fn vote<'a>(voter: &'a str, vote: &'a Vote) -> VoteBody<'a> {
    let ballot = vote.revealed.as_ref();
    VoteBody {
        voter,
        independence: &vote.independence,
        turn: vote.turn,
        commitment: &vote.commitment,
        verdict: ballot.map(|it| it.status.into()),
        score: ballot.map(|it| it.score),
        reason_codes: ballot.map(|it| it.reason_codes.as_slice()),
        verdict_digest: ballot.map(|it| it.verdict_digest.as_str()),
        forfeited: vote.forfeited.map(VoteForfeit),
    }
}

/// How many of the votes that count are on each side.
pub(super) fn sides(proposal: &Proposal) -> (usize, usize) {
    let of = |status: EvaluationStatus| {
        let counted = proposal.votes.values().filter_map(Vote::ballot);
        counted.filter(|it| it.status == status).count()
    };
    (of(EvaluationStatus::Passed), of(EvaluationStatus::Failed))
}
