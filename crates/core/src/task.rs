//! A task: a job under a contract, whose lifecycle outlives the request that asked for it.
//!
//! `decide` says which events follow from a command, or why none do; `apply` is what an event makes
//! of the task. Both are pure: time, tokens and digests come with the command. What there is to do
//! next is read from the task with `needs`.

mod aggregate;
mod apply;
mod claim;
mod decide;
mod event;
mod needs;
mod terms;
mod timers;
mod vote;

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

pub use self::{
    aggregate::{Tally, Weigher},
    claim::{Claim, Role},
    decide::{Command, Exhausted, Refusal, decide},
    event::{End, Event, Forfeit},
    needs::{Need, needs},
    terms::{Aggregation, Budget, TermError, Terms},
    vote::{Ballot, Vote, commitment},
};
use crate::{job::words, time::Timestamp};

words!(
    /// How far a task has come.
    Phase {
        /// Nobody works on it.
        Created => "created",
        /// Somebody proposes.
        Claimed => "claimed",
        /// There is a candidate, and nobody verifies it.
        Proposed => "proposed",
        Verifying => "verifying",
        /// The votes are in: one candidate is to be final.
        Committed => "committed",
        Finalized => "finalized",
        Failed => "failed",
        Expired => "expired",
        Cancelled => "cancelled",
    }
);

impl Phase {
    /// Whether nothing can happen any more.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Finalized | Self::Failed | Self::Expired | Self::Cancelled)
    }
}

words!(
    /// How a candidate stands.
    Standing {
        Waiting => "waiting",
        /// Votes are being committed; none can be seen.
        Verifying => "verifying",
        /// No vote can be committed any more, and those that were are being revealed.
        Revealing => "revealing",
        Approved => "approved",
        Rejected => "rejected",
        /// The votes decided nothing.
        Undecided => "undecided",
    }
);

/// An output that is being verified. Equal outputs are one candidate, whoever proposed them.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub id: String,
    /// Of the output, without who made it and when.
    pub digest: String,
    pub proposers: BTreeSet<String>,
    /// Digests of what it refers to; each must be available to be final.
    pub evidence: BTreeSet<String>,
    pub standing: Standing,
    /// How often its verification began anew because it decided nothing.
    pub repeats: u32,
    /// By who votes.
    pub votes: BTreeMap<String, Vote>,
    /// Until when votes are revealed.
    pub reveal_until: Option<Timestamp>,
    /// Who found which evidence.
    pub available: BTreeMap<String, BTreeSet<String>>,
}

/// What was spent of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    pub steps: u32,
    pub explore: u64,
    pub verify: u64,
    pub finalize: u64,
}

/// A task as its events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: String,
    pub terms: Terms,
    pub phase: Phase,
    pub created_at: Timestamp,
    /// When the first work on it began.
    pub started_at: Option<Timestamp>,
    /// The highest token that was given out; a claim with a lower one may be a late writer's.
    pub last_token: u64,
    pub claims: BTreeMap<u64, Claim>,
    pub proposals: Vec<Proposal>,
    /// Executors that were asked to propose and did not.
    pub failed_proposers: BTreeMap<String, u32>,
    /// How often proposing failed as a whole.
    pub retries: u32,
    /// Not before this time is anything tried again.
    pub retry_at: Option<Timestamp>,
    pub spent: Spent,
    pub end: Option<End>,
}

impl Task {
    pub fn proposal(&self, id: &str) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.id == id)
    }

    /// The candidate that the votes approved.
    pub fn approved(&self) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.standing == Standing::Approved)
    }

    /// When it must be over: by its contract, or because its time is used up.
    pub fn deadline(&self) -> Timestamp {
        let by_budget = self.started_at.map(|at| at.plus_millis(self.terms.budget.time_ms));
        by_budget.map_or(self.terms.expires_at, |at| at.min(self.terms.expires_at))
    }
}
