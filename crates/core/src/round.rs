//! A round: one pass of a job, from its opening to its decision.

pub mod candidate;
pub mod consensus;
pub mod decision;
pub mod evidence;
pub mod job;
pub mod profile;
pub mod replica;
pub mod select;

use std::{collections::BTreeMap, str::FromStr};

use self::{
    consensus::{Consensus, Outcome},
    job::{Disagreement, JobKind, Toggle, words},
    replica::{Label, Replica},
};
use crate::{
    account::ledger::CreditHold,
    id::{AccountId, NodeId, RoundId},
    peer::book::PeerBooking,
    time::Timestamp,
    verifier::run::VerifierRunTicket,
};

/// The record of a round before any session is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRound {
    pub id: RoundId,
    pub account: AccountId,
    pub kind: JobKind,
    pub node: NodeId,
    /// Fences the close: a node that takes the round over draws a new token.
    pub lease_token: u64,
    pub lease_until: Timestamp,
    pub request_digest: String,
    pub policy_id: String,
    pub policy_hash: String,
    pub disagreement: Disagreement,
    pub traces: Toggle,
    /// The sessions to be asked, in the order of choice.
    pub seats: Vec<Seat>,
    pub opened_at: Timestamp,
    pub deadline_at: Timestamp,
    /// The verifier run that this round carries out.
    pub run: Option<VerifierRunTicket>,
    /// The stored verifier whose judges take part: their answers are erased with it.
    pub verifier: Option<String>,
    /// The task call that this round carries out.
    pub step: Option<TaskCallTicket>,
    /// The credit held for the round.
    pub hold: Option<CreditHold>,
    /// The request, as far as it is stored besides its digest.
    pub kept: RetainedRequest,
}

/// The parts of a round that are stored besides its decision; the decision entry has only their
/// digests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedRequest {
    /// Absent if it is not kept, was erased or was pruned. In lists the request is left out.
    pub asked: Option<RoundRequest>,
    /// When the request and the answers were erased or pruned.
    pub erased_at: Option<Timestamp>,
}

/// The request of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundRequest {
    /// A summary in one line.
    pub line: String,
    /// The canonical JSON of the request; absent if it is too large, or stored with its task.
    pub request: Option<String>,
}

impl OpenRound {
    /// Whether its verdict is a vote of a task, which stays secret until the reveal.
    pub fn is_vote(&self) -> bool {
        self.step.as_ref().is_some_and(|step| step.vote.is_some())
    }
}

/// The task call that a round carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCallTicket {
    pub task_id: String,
    pub execution_id: String,
    /// The vote that the round decides; `None` for a proposal.
    pub vote: Option<VoteTicket>,
}

/// The vote that the verdict of a round counts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteTicket {
    pub candidate: String,
    /// The number of the vote on the candidate, from 1.
    pub turn: u32,
}

/// One replica's slot in an open round.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    pub session_id: String,
    pub executor: String,
    pub independence: crate::executor::Independence,
    pub reliability: f64,
}

/// Selects rounds for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoundFilter {
    pub kind: Option<JobKind>,
    pub outcome: Option<Outcome>,
    pub state: Option<RoundStatus>,
    /// Opened at this time or later.
    pub since: Option<Timestamp>,
    /// Opened before this time.
    pub until: Option<Timestamp>,
    /// Starts after this round, towards older ones.
    pub before: Option<RoundId>,
    pub limit: u32,
}

words!(
    /// How a round ended.
    RoundEnding {
        /// The node that opened it closed it.
        Closed => "closed",
        /// Its node stopped, and its lease expired.
        Expired => "expired",
        /// Its caller cancelled it.
        Cancelled => "cancelled",
    }
);

words!(
    /// The state of a round: in progress, or how it ended.
    RoundStatus {
        Open => "open",
        Closed => "closed",
        Expired => "expired",
        Cancelled => "cancelled",
    }
);

/// The record that closing a round adds.
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
    /// The jobs that the round did for peers, or that peers did for it. They are not read back.
    pub bookings: Vec<PeerBooking>,
}

impl RoundClosing {
    /// The same closing without costs and bookings. The entry does not mention them, so it stays
    /// the same.
    #[must_use]
    pub fn unpaid(&self) -> Self {
        let mut unpaid = Self { bookings: Vec::new(), ..self.clone() };
        for replica in &mut unpaid.replicas {
            replica.cost_micros = 0;
        }
        unpaid
    }

    fn withheld(mut self) -> Self {
        let withheld = |it: Replica| Replica { answer: it.answer.withheld(), ..it };
        self.replicas = self.replicas.into_iter().map(withheld).collect();
        let counted = self.replicas.iter().filter(|replica| replica.is_counted());
        let labels: BTreeMap<usize, Label> =
            counted.map(|replica| (replica.seat, replica.answer.label())).collect();
        self.consensus.verdicts = labels.into_values().collect();
        self.consensus.verdict = None;
        self.consensus.output = None;
        self.consensus.score = None;
        self
    }
}

/// A round as it is read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    pub open: OpenRound,
    /// `None` while it is in progress.
    pub closing: Option<RoundClosing>,
}

impl Round {
    /// The round for a payer who was not charged: without anything that the executors said. Codes
    /// of failures, times and counts stay.
    #[must_use]
    pub fn withheld(self) -> Self {
        Self { closing: self.closing.map(RoundClosing::withheld), ..self }
    }
}

/// A round as a list shows it, without the answers.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSummary {
    pub open: OpenRound,
    /// `None` while it is in progress.
    pub closing: Option<ClosingSummary>,
}

/// A round that was cancelled, as far as its canceller may read it.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelledRound {
    Whole(Box<Round>),
    /// Without the request and the answers.
    State(Box<RoundSummary>),
}

/// How a round ended, without the answers.
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

impl CancelledRound {
    /// The state of a round, for a caller that may not read it.
    pub fn state_of(round: Round) -> Self {
        let closing = round.closing.as_ref().map(ClosingSummary::from);
        let open = OpenRound { kept: RetainedRequest::default(), ..round.open };
        Self::State(Box::new(RoundSummary { open, closing }))
    }
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
