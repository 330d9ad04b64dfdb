//! Tasks as replies show them: progress, executors and spending.

use std::{borrow::Cow, collections::BTreeMap};

use jurat_core::{
    policy::EvaluationStatus,
    task::{ComplaintWindow, Proposal, Task, TaskLease, Vote},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::contract::TaskContractBody;
use crate::api::kit::{
    member::OptionalMember,
    time::Time,
    words::{CandidateGap, CandidateStanding, ClaimRole, TaskState, VoteForfeit},
};
use crate::executor::VerificationStatus;

/// The parts of a task that replies show.
#[derive(Debug, Clone, Copy)]
pub struct TaskView<'a> {
    pub task: &'a Task,
    pub task_type: &'a str,
    /// `None` once the task was pruned.
    pub contract: Option<&'a Value>,
    pub contract_digest: &'a str,
    /// The recorded roster.
    pub panel: &'a Value,
    /// Number of events.
    pub events: u64,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<&'a str>,
}

/// The parts of a task that lists show.
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
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskSummary)]
pub struct TaskSummaryBody<'a> {
    pub task_id: Cow<'a, str>,
    pub task_type: Cow<'a, str>,
    pub state: TaskState,
    /// Number of events.
    pub events: u64,
    pub created_at: Time,
    pub updated_at: Time,
    #[schema(required = true)]
    pub ended_at: Option<Time>,
    /// Why it ended without a decision.
    #[schema(required = true)]
    pub reason: Option<Cow<'a, str>>,
}

/// A task with its state and history.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Task)]
pub struct TaskBody<'a> {
    pub task_id: Cow<'a, str>,
    pub task_type: Cow<'a, str>,
    pub state: TaskState,
    /// Current epoch of a continuous task, from 1.
    pub epoch: u64,
    /// Digest of the contract's canonical JSON.
    pub contract_digest: Cow<'a, str>,
    pub panel: TaskRosterBody<'a>,
    pub created_at: Time,
    /// When the first work of this epoch started.
    #[schema(required = true)]
    pub started_at: Option<Time>,
    pub updated_at: Time,
    #[schema(required = true)]
    pub ended_at: Option<Time>,
    /// Latest time at which the task ends, as currently known.
    pub deadline_at: Time,
    /// No executor is asked to propose again before this time.
    #[schema(required = true)]
    pub retry_at: Option<Time>,
    /// How often proposing failed for all proposers.
    pub retries: u32,
    pub spent: TaskSpendingBody,
    /// A lease: work in progress.
    pub claims: Vec<TaskLeaseBody<'a>>,
    pub candidates: Vec<CandidateBody<'a>>,
    /// The candidate that the votes approved.
    #[schema(required = true)]
    pub committed_candidate_id: Option<Cow<'a, str>>,
    /// The candidate whose decision is final.
    #[schema(required = true)]
    pub finalized_candidate_id: Option<Cow<'a, str>>,
    /// Decisions that can still be disputed.
    pub settling: Vec<SettlingBody<'a>>,
    /// Why it ended without a decision.
    #[schema(required = true)]
    pub reason: Option<Cow<'a, str>>,
    /// Number of events.
    pub events: u64,
    /// The contract with all defaults filled in; null once the task was pruned, and not in the
    /// reply to a submission.
    #[serde(default, skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<TaskContractBody>)]
    pub contract: OptionalMember<Cow<'a, Value>>,
}

/// The executors that may work on a task.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskPanel)]
pub struct TaskRosterBody<'a> {
    pub executors: Vec<Cow<'a, str>>,
    pub verifiers: Vec<Cow<'a, str>>,
    pub profile: Cow<'a, str>,
    /// Whether this node votes too, because the other voters are too few for the quorum.
    pub node_votes: bool,
}

/// A decision that can be disputed for a limited time.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskSettling)]
pub struct SettlingBody<'a> {
    pub epoch: u64,
    pub candidate_id: Cow<'a, str>,
    /// End of the dispute window.
    pub settles_at: Time,
    /// The dispute; only one is accepted.
    #[schema(required = true)]
    pub complaint: Option<Cow<'a, str>>,
}

/// Spent and remaining budget of this epoch.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskSpent)]
pub struct TaskSpendingBody {
    /// Calls to executors.
    pub steps: BudgetAccount,
    /// Units of all stages.
    pub cost_units: BudgetAccount,
    pub explore_cost_units: BudgetAccount,
    pub verify_cost_units: BudgetAccount,
    pub finalize_cost_units: BudgetAccount,
}

/// One part of a budget.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskAccount)]
pub struct BudgetAccount {
    pub limit: u64,
    pub spent: u64,
    pub left: u64,
}

/// A lease: work in progress.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskClaimUnderWay)]
pub struct TaskLeaseBody<'a> {
    /// The fencing token: later leases have higher ones.
    pub token: u64,
    pub role: ClaimRole,
    /// The executor, or the node.
    pub holder: Cow<'a, str>,
    #[schema(required = true)]
    pub candidate_id: Option<Cow<'a, str>>,
    pub execution_id: Cow<'a, str>,
    /// When the lease expires unless it is renewed.
    pub until: Time,
}

/// A proposed output.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskCandidate)]
pub struct CandidateBody<'a> {
    pub candidate_id: Cow<'a, str>,
    /// Digest of the output's canonical JSON.
    pub output_digest: Cow<'a, str>,
    /// Executors that proposed this output; they cannot vote on it.
    pub proposers: Vec<Cow<'a, str>>,
    /// The earlier decision that it was reused from.
    #[schema(required = true)]
    pub source: Option<Cow<'a, str>>,
    pub standing: CandidateStanding,
    /// Why the votes so far decided nothing.
    #[schema(required = true)]
    pub gap: Option<CandidateGap>,
    /// Number of the current voting attempt on it, from 1.
    pub turn: u32,
    pub votes: Vec<VoteBody<'a>>,
    /// For each referenced digest: the voters that could fetch it.
    pub evidence: BTreeMap<Cow<'a, str>, Vec<Cow<'a, str>>>,
}

/// A vote. Its verdict is visible only after the reveal.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TaskVoteCast)]
pub struct VoteBody<'a> {
    pub voter: Cow<'a, str>,
    /// What the voter has in common with other voters, such as a model.
    pub independence: Cow<'a, str>,
    pub turn: u32,
    /// The digest that commits the voter to its verdict.
    pub commitment: Cow<'a, str>,
    /// Null until the vote is revealed, like the next three fields.
    #[schema(required = true)]
    pub verdict: Option<VerificationStatus>,
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub score: Option<f64>,
    #[schema(required = true)]
    pub reason_codes: Option<Cow<'a, [u16]>>,
    /// Digest of the voter's full answer.
    #[schema(required = true)]
    pub verdict_digest: Option<Cow<'a, str>>,
    /// Why it does not count.
    #[schema(required = true)]
    pub forfeited: Option<VoteForfeit>,
}

/// A task in a list.
pub fn summary(line: TaskLine<'_>) -> TaskSummaryBody<'_> {
    TaskSummaryBody {
        task_id: Cow::Borrowed(line.id),
        task_type: Cow::Borrowed(line.task_type),
        state: TaskState(line.phase),
        events: line.events,
        created_at: Time(line.created_at),
        updated_at: Time(line.updated_at),
        ended_at: line.ended_at.map(Time),
        reason: line.reason.map(Cow::Borrowed),
    }
}

/// A task with its contract.
pub fn whole(view: TaskView<'_>) -> TaskBody<'_> {
    TaskBody { contract: OptionalMember::Is(view.contract.map(Cow::Borrowed)), ..body(view) }
}

/// A task without its contract, for the reply to a submission.
pub fn body(view: TaskView<'_>) -> TaskBody<'_> {
    let TaskView { task, panel, .. } = view;
    TaskBody {
        task_id: Cow::Borrowed(&task.id),
        task_type: Cow::Borrowed(view.task_type),
        state: TaskState(task.phase),
        epoch: task.epoch,
        contract_digest: Cow::Borrowed(view.contract_digest),
        panel: TaskRosterBody {
            executors: texts(&panel["executors"]),
            verifiers: texts(&panel["verifiers"]),
            profile: Cow::Borrowed(profile(panel)),
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
        committed_candidate_id: committed(task).map(Cow::Borrowed),
        finalized_candidate_id: task.decided.as_deref().map(Cow::Borrowed),
        settling: task.windows.iter().map(settling).collect(),
        reason: view.reason.map(Cow::Borrowed),
        events: view.events,
        contract: OptionalMember::LeftOut,
    }
}

fn settling(window: &ComplaintWindow) -> SettlingBody<'_> {
    SettlingBody {
        epoch: window.epoch,
        candidate_id: Cow::Borrowed(&window.candidate),
        settles_at: Time(window.until),
        complaint: window.complaint.as_deref().map(Cow::Borrowed),
    }
}

fn texts(list: &Value) -> Vec<Cow<'_, str>> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(Cow::Borrowed).collect()
}

/// The profile of a roster.
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
        holder: Cow::Borrowed(&claim.holder),
        candidate_id: claim.candidate.as_deref().map(Cow::Borrowed),
        execution_id: Cow::Borrowed(&claim.execution_id),
        until: Time(claim.until),
    }
}

fn candidate(proposal: &Proposal) -> CandidateBody<'_> {
    let found = |digest: &str| {
        let found = proposal.available.get(digest).into_iter().flatten();
        found.map(|it| Cow::Borrowed(it.as_str())).collect()
    };
    CandidateBody {
        candidate_id: Cow::Borrowed(&proposal.id),
        output_digest: Cow::Borrowed(&proposal.digest),
        proposers: proposal.proposers.iter().map(Cow::from).collect(),
        source: proposal.source.as_deref().map(Cow::Borrowed),
        standing: CandidateStanding(proposal.standing),
        gap: proposal.gap.map(CandidateGap),
        turn: proposal.turn,
        votes: votes(proposal),
        evidence: proposal
            .evidence
            .iter()
            .map(|it| (Cow::Borrowed(it.as_str()), found(it)))
            .collect(),
    }
}

pub(super) fn votes(proposal: &Proposal) -> Vec<VoteBody<'_>> {
    proposal.votes.iter().map(|(voter, it)| vote(voter, it)).collect()
}

fn vote<'a>(voter: &'a str, vote: &'a Vote) -> VoteBody<'a> {
    let ballot = vote.revealed.as_ref();
    VoteBody {
        voter: Cow::Borrowed(voter),
        independence: Cow::Borrowed(&vote.independence),
        turn: vote.turn,
        commitment: Cow::Borrowed(&vote.commitment),
        verdict: ballot.map(|it| it.status.into()),
        score: ballot.map(|it| it.score),
        reason_codes: ballot.map(|it| it.reason_codes.as_slice()).map(Cow::Borrowed),
        verdict_digest: ballot.map(|it| it.verdict_digest.as_str()).map(Cow::Borrowed),
        forfeited: vote.forfeited.map(VoteForfeit),
    }
}

/// Number of valid votes for and against a candidate.
pub(super) fn sides(proposal: &Proposal) -> (usize, usize) {
    let of = |status: EvaluationStatus| {
        let counted = proposal.votes.values().filter_map(Vote::ballot);
        counted.filter(|it| it.status == status).count()
    };
    (of(EvaluationStatus::Passed), of(EvaluationStatus::Failed))
}
