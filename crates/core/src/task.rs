//! A task: a job under a contract, whose lifecycle outlives the request that asked for it.
//!
//! `decide` says which events follow from a command, or why none do; `apply` is what an event makes
//! of the task. Both are pure: time, tokens and digests come with the command. What there is to do
//! next is read from the task with `needs`, and when to look again with `Task::wakes_at`.
//! A task goes through its stages in order: candidates from knowledge are verified first, then
//! executors propose, then the candidates are verified one after the other until one is approved.

pub mod agent_event;
mod aggregate;
mod apply;
mod budget;
mod check;
mod consequences;
mod decide;
mod event;
pub mod knowledge;
mod lease;
mod needs;
mod proposal;
mod recorded;
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
    terms::{Budget, BudgetRenewal, DecisionMode, TaskTerms, VoteAggregation},
    vote::{Ballot, Vote, VoteContext, commitment},
};
use crate::{round::job::words, time::Timestamp};

words!(
    /// How far a task has come.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    TaskPhase {
        /// Nobody works on it.
        Created => "created",
        /// Somebody proposes.
        Claimed => "claimed",
        /// There is a candidate, and nobody verifies it.
        Proposed => "proposed",
        Verifying => "verifying",
        /// The votes are in: one candidate is to be final.
        Committed => "committed",
        /// One candidate is final. A continuous task waits here for its next epoch.
        Finalized => "finalized",
        Failed => "failed",
        Expired => "expired",
        Cancelled => "cancelled",
    }
);

/// How a task ended, in words that say why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskEnd {
    Finalized { candidate: String },
    Failed { reason: String },
    Expired { reason: String },
    Cancelled { reason: String },
}

/// The time in which a final decision can be complained of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComplaintWindow {
    pub epoch: u64,
    pub candidate: String,
    pub until: Timestamp,
    /// What was said against the decision.
    pub complaint: Option<String>,
}

/// A task as its events made it: a recorded document, kept beside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: String,
    pub terms: TaskTerms,
    pub phase: TaskPhase,
    pub created_at: Timestamp,
    /// Which decision of a continuous task this is, from 1.
    pub epoch: u64,
    /// When the first work on this epoch began.
    pub started_at: Option<Timestamp>,
    /// The highest token that was given out; a claim with a lower one may be a late writer's.
    pub last_token: u64,
    pub claims: BTreeMap<u64, TaskLease>,
    /// Work that ended without anybody knowing what came of it.
    pub unfinished: Vec<UnfinishedWork>,
    pub proposals: Vec<Proposal>,
    /// Executors that proposed something.
    pub proposed: BTreeSet<String>,
    /// Whether nobody is asked to propose any more.
    pub is_explored: bool,
    /// Proposals in a row that brought neither a new output nor new evidence.
    pub barren: u32,
    /// Executors that were asked to propose and did not, since proposing last began.
    pub failed_proposers: BTreeMap<String, u32>,
    /// How often proposing failed as a whole.
    pub retries: u32,
    /// Not before this time is anybody asked to propose again.
    pub retry_at: Option<Timestamp>,
    /// How often a node failed at work of this epoch.
    #[serde(default)]
    pub node_failures: u32,
    /// How many candidates were taken from knowledge.
    pub reuses: u32,
    /// Digests of outputs from knowledge that the verifiers refused.
    pub blacklist: BTreeSet<String>,
    /// Executors that were proven to say two things at once. They have no vote any more.
    pub equivocators: BTreeSet<String>,
    pub spent: TaskSpending,
    /// The candidate that is final in this epoch.
    pub decided: Option<String>,
    /// Decisions that can still be complained of.
    pub windows: Vec<ComplaintWindow>,
    pub end: Option<TaskEnd>,
}

impl Task {
    /// The task that its first event makes.
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

    /// Whether no work is left to do. What was decided may still be complained of, and settles by
    /// the clock: only when `wakes_at` is `None` does nothing more happen by itself.
    pub const fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Whether this epoch is decided and the next one has not begun.
    pub const fn is_waiting(&self) -> bool {
        self.end.is_none() && self.decided.is_some()
    }

    /// Whether nothing more is done for it unless somebody asks for it.
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

    /// The epoch whose decision is the newest.
    pub fn newest_decision(&self) -> Option<u64> {
        let newest = if self.decided.is_some() { self.epoch } else { self.epoch - 1 };
        (newest > 0).then_some(newest)
    }

    pub fn proposal(&self, id: &str) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.id == id)
    }

    /// The candidate that the votes approved.
    pub fn approved(&self) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.standing == ProposalStanding::Approved)
    }

    /// When it must be over: by its contract, or because the time for this epoch is used up.
    pub fn deadline(&self) -> Timestamp {
        if self.is_waiting() {
            return self.terms.expires_at;
        }
        let by_budget = self.started_at.map(|at| at.plus_millis(self.terms.budget.time_ms));
        by_budget.map_or(self.terms.expires_at, |at| at.min(self.terms.expires_at))
    }

    /// The execution id under which somebody was asked for the same work, where nobody knows what
    /// came of it. Asking under it again costs the executor nothing if it did answer.
    pub fn resumable(&self, role: TaskRole, holder: &str, candidate: Option<&str>) -> Option<&str> {
        let is_same = |it: &&UnfinishedWork| {
            it.role == role && it.holder == holder && it.candidate.as_deref() == candidate
        };
        self.unfinished.iter().find(is_same).map(|it| it.execution_id.as_str())
    }

    /// What a ballot of a voter on a candidate is bound to now.
    pub fn vote_context<'a>(&'a self, candidate: &'a str, voter: &'a str) -> VoteContext<'a> {
        let turn = self.proposal(candidate).map_or(1, |it| it.turn);
        VoteContext { task: &self.id, epoch: self.epoch, candidate, turn, voter }
    }
}
