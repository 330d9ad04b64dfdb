//! A task: a job under a contract, whose life outlasts the request that submitted it.
//!
//! `decide` returns the events that a command causes, or why it causes none; `apply` changes the
//! task by an event. Both are pure: time, tokens and digests come with the command. `needs` lists
//! the next work, and `Task::wakes_at` says when to look again. A task goes through its stages in
//! order: voters vote on candidates from knowledge, then executors propose, then voters vote on the
//! candidates one after the other until one is approved.

pub mod agent_event;
mod aggregate;
mod apply;
mod budget;
mod check;
mod consequences;
mod decide;
mod event;
mod json;
pub mod knowledge;
mod lease;
mod needs;
mod proposal;
mod record;
mod terms;
mod timers;
mod vote;

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

pub use self::{
    aggregate::{VoteTally, VoterReliability},
    budget::TaskSpending,
    check::TermError,
    decide::{ExhaustedRoles, TaskCommand, TaskRefusal, decide},
    event::{ComplaintSignature, ExploreEnd, Forfeit, TaskEvent},
    lease::{LeaseRelease, TaskLease, TaskRole, UnfinishedWork},
    needs::{TaskNeed, needs},
    proposal::{Proposal, ProposalStanding, VoteGap},
    record::{
        TakenTasks, TaskAddition, TaskCandidateRow, TaskComplaint, TaskEventRow, TaskFilter,
        TaskKey, TaskRecord, TaskSummary, TaskTake,
    },
    terms::{Budget, BudgetRenewal, DecisionMode, TaskTerms, VoteAggregation},
    vote::{Ballot, Vote, VoteContext, commitment},
};
use crate::{round::job::words, time::Timestamp};

words!(
    /// The phase of a task.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    TaskPhase {
        /// Nobody works on it.
        Created => "created",
        /// An executor proposes.
        Claimed => "claimed",
        /// There is a candidate, and nobody votes on it yet.
        Proposed => "proposed",
        Verifying => "verifying",
        /// The votes are in: one candidate is about to become final.
        Committed => "committed",
        /// One candidate is final. A continuous task waits here for its next epoch.
        Finalized => "finalized",
        Failed => "failed",
        Expired => "expired",
        Cancelled => "cancelled",
    }
);

/// How a task ended, with the reason in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskEnd {
    Finalized { candidate: String },
    Failed { reason: String },
    Expired { reason: String },
    Cancelled { reason: String },
}

/// The time in which a final decision can be disputed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComplaintWindow {
    pub epoch: u64,
    pub candidate: String,
    pub until: Timestamp,
    /// The complaint against the decision.
    pub complaint: Option<String>,
}

/// A task as its events built it, stored as a document besides them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: String,
    pub terms: TaskTerms,
    pub phase: TaskPhase,
    pub created_at: Timestamp,
    /// The number of the decision of a continuous task, from 1.
    pub epoch: u64,
    /// When the first work on this epoch started.
    pub started_at: Option<Timestamp>,
    /// The highest token issued; a claim with a lower token may come from a late writer.
    pub last_token: u64,
    /// The leases in progress, by token.
    pub claims: BTreeMap<u64, TaskLease>,
    /// Work that ended with an unknown result.
    pub unfinished: Vec<UnfinishedWork>,
    pub proposals: Vec<Proposal>,
    /// Executors that have proposed.
    pub proposed: BTreeSet<String>,
    /// Whether proposing is over.
    pub is_explored: bool,
    /// Consecutive proposals that brought neither a new output nor new evidence.
    pub barren: u32,
    /// Executors that failed to propose since proposing last started.
    pub failed_proposers: BTreeMap<String, u32>,
    /// How many times proposing failed as a whole.
    pub retries: u32,
    /// No executor is asked to propose again before this time.
    pub retry_at: Option<Timestamp>,
    /// How many times a node failed at work of this epoch.
    #[serde(default)]
    pub node_failures: u32,
    /// How many candidates came from knowledge.
    pub reuses: u32,
    /// Digests of outputs from knowledge that the voters rejected.
    pub blacklist: BTreeSet<String>,
    /// Executors that provably voted both ways. They have lost their vote.
    pub equivocators: BTreeSet<String>,
    pub spent: TaskSpending,
    /// The final candidate of this epoch.
    pub decided: Option<String>,
    /// Decisions that can still be disputed.
    pub windows: Vec<ComplaintWindow>,
    pub end: Option<TaskEnd>,
}

impl Task {
    /// The task after its first event.
    pub fn created(id: &str, terms: TaskTerms, at: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            terms,
            phase: TaskPhase::Created,
            created_at: at,
            epoch: 1,
            started_at: None,
            last_token: 0,
            claims: BTreeMap::new(),
            unfinished: Vec::new(),
            proposals: Vec::new(),
            proposed: BTreeSet::new(),
            is_explored: false,
            barren: 0,
            failed_proposers: BTreeMap::new(),
            retries: 0,
            retry_at: None,
            node_failures: 0,
            reuses: 0,
            blacklist: BTreeSet::new(),
            equivocators: BTreeSet::new(),
            spent: TaskSpending::default(),
            decided: None,
            windows: Vec::new(),
            end: None,
        }
    }

    /// Whether no work is left. Its decision may still be disputed and settles by the clock:
    /// nothing more happens by itself only once `wakes_at` is `None`.
    pub const fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Whether this epoch is decided and the next one has not started.
    pub const fn is_waiting(&self) -> bool {
        self.end.is_none() && self.decided.is_some()
    }

    /// Whether nothing more happens unless a caller asks for it.
    pub const fn is_at_rest(&self) -> bool {
        self.is_over() || self.is_waiting()
    }

    /// Why it ended without a decision.
    pub fn reason(&self) -> Option<&str> {
        match self.end.as_ref()? {
            TaskEnd::Finalized { .. } => None,
            TaskEnd::Failed { reason }
            | TaskEnd::Expired { reason }
            | TaskEnd::Cancelled { reason } => Some(reason),
        }
    }

    /// The epoch of the latest decision.
    pub fn newest_decision(&self) -> Option<u64> {
        let newest = if self.decided.is_some() { self.epoch } else { self.epoch - 1 };
        (newest > 0).then_some(newest)
    }

    /// The proposal of a candidate.
    pub fn proposal(&self, id: &str) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.id == id)
    }

    /// The candidate that the votes approved.
    pub fn approved(&self) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.standing == ProposalStanding::Approved)
    }

    /// When it must end: by its contract, or because the time for this epoch is used up.
    pub fn deadline(&self) -> Timestamp {
        if self.is_waiting() {
            return self.terms.expires_at;
        }
        let by_budget = self.started_at.map(|at| at.plus_millis(self.terms.budget.time_ms));
        by_budget.map_or(self.terms.expires_at, |at| at.min(self.terms.expires_at))
    }

    /// The execution id of the same work, if its result is unknown. Asking again under this id
    /// costs the executor nothing if it did answer.
    pub fn resumable(&self, role: TaskRole, holder: &str, candidate: Option<&str>) -> Option<&str> {
        let is_same = |it: &&UnfinishedWork| {
            it.role == role && it.holder == holder && it.candidate.as_deref() == candidate
        };
        self.unfinished.iter().find(is_same).map(|it| it.execution_id.as_str())
    }

    /// The values that the commitment of a ballot is bound to now.
    pub fn vote_context<'a>(&'a self, candidate: &'a str, voter: &'a str) -> VoteContext<'a> {
        let turn = self.proposal(candidate).map_or(1, |it| it.turn);
        VoteContext { task: &self.id, epoch: self.epoch, candidate, turn, voter }
    }
}
