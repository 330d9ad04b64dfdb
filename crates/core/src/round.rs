//! A round: one walk of a job, from the moment it is opened to its decision.

pub mod candidate;
pub mod consensus;
pub mod decision;
pub mod evidence;
pub mod job;
pub mod replica;
pub mod select;

use std::str::FromStr;

use self::{
    consensus::{Consensus, Outcome},
    job::{Disagreement, JobKind, Toggle, words},
    replica::{Label, Replica},
};
use crate::{
    account::ledger::CreditHold,
    id::{AccountId, NodeId, RoundId},
    time::Timestamp,
    verifier::run::VerifierRunTicket,
};

/// What is recorded before anyone is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRound {
    pub id: RoundId,
    pub account: AccountId,
    pub kind: JobKind,
    pub node: NodeId,
    /// Fences the close: another node that takes the round over draws a new token.
    pub lease_token: u64,
    pub lease_until: Timestamp,
    pub request_digest: String,
    pub policy_id: String,
    pub policy_hash: String,
    pub disagreement: Disagreement,
    pub traces: Toggle,
    /// The sessions that are about to be asked, in the order of choice.
    pub seats: Vec<Seat>,
    pub opened_at: Timestamp,
    pub deadline_at: Timestamp,
    /// The run of a verifier that this round is.
    pub run: Option<VerifierRunTicket>,
    /// The verifier whose judges have a say in it, if it is in the store: what they said is erased
    /// with it.
    pub verifier: Option<String>,
    /// The step of a task that this round is.
    pub step: Option<TaskCallTicket>,
    /// The credit that is set aside for it.
    pub hold: Option<CreditHold>,
    pub kept: RetainedRequest,
}

/// What is kept of a round beside its decision, of which the entry has the digests alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedRequest {
    /// Nothing where it is not to be kept, was erased, or was old. In lists the request is left out.
    pub asked: Option<RoundRequest>,
    /// When what was asked and said was erased, or removed because it was old.
    pub erased_at: Option<Timestamp>,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundRequest {
    /// One line of it.
    pub line: String,
    /// The canonical JSON of the request; nothing where it is too large, or kept with its task.
    pub request: Option<String>,
}

impl OpenRound {
    /// Whether its verdict is a vote of a task, which is secret until it is revealed.
    pub fn is_vote(&self) -> bool {
        self.step.as_ref().is_some_and(|step| step.vote.is_some())
    }
}

/// Which step of a task a round is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCallTicket {
    pub task_id: String,
    pub execution_id: String,
    /// What is voted on in it; `None` for a proposal.
    pub vote: Option<VoteTicket>,
}

/// Which votes the verdict of a round is one of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteTicket {
    pub candidate: String,
    /// Which time votes were committed on the candidate.
    pub turn: u32,
}

/// A place in a round that one session takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    pub session_id: String,
    pub executor: String,
    pub independence: crate::executor::Independence,
    pub reliability: f64,
}

words!(
    /// How a round ended.
    RoundEnding {
        /// The node that opened it closed it.
        Closed => "closed",
        /// Its node stopped, and its lease ran out.
        Expired => "expired",
        /// Its caller called it off.
        Cancelled => "cancelled",
    }
);

words!(
    /// Where a round stands: under way, or how it ended.
    RoundStatus {
        Open => "open",
        Closed => "closed",
        Expired => "expired",
        Cancelled => "cancelled",
    }
);

/// What closing adds.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundClosing {
    pub ending: RoundEnding,
    pub replicas: Vec<Replica>,
    pub consensus: Consensus,
    pub closed_at: Timestamp,
    /// Digest of the canonical decision entry.
    pub receipt_id: String,
    /// The canonical decision entry.
    pub entry: String,
}

impl RoundClosing {
    /// The same end of a round that costs nothing. The entry names no costs, so that it stays.
    #[must_use]
    pub fn unpaid(&self) -> Self {
        let mut unpaid = self.clone();
        for replica in &mut unpaid.replicas {
            replica.cost_micros = 0;
        }
        unpaid
    }
}

/// A round as it is read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    pub open: OpenRound,
    /// `None` while it runs.
    pub closing: Option<RoundClosing>,
}

/// A round as a list shows it, without what was said in it.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSummary {
    pub open: OpenRound,
    /// `None` while it runs.
    pub closing: Option<ClosingSummary>,
}

/// How a round ended, without what was said in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosingSummary {
    pub ending: RoundEnding,
    pub outcome: Outcome,
    pub verdict: Option<Label>,
    pub agreement: f64,
    pub confidence: f64,
    pub closed_at: Timestamp,
    pub receipt_id: String,
}

impl From<&RoundClosing> for ClosingSummary {
    fn from(closing: &RoundClosing) -> Self {
        Self {
            ending: closing.ending,
            outcome: closing.consensus.outcome,
            verdict: closing.consensus.verdict,
            agreement: closing.consensus.agreement,
            confidence: closing.consensus.confidence,
            closed_at: closing.closed_at,
            receipt_id: closing.receipt_id.clone(),
        }
    }
}
