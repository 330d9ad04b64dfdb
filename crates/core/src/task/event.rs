//! What happened to a task. Events are kept for ever, and the task is what they made of it.

use std::str::FromStr;

use super::{Ballot, Claim, Role, Terms};
use crate::{job::words, time::Timestamp};

words!(
    /// Why a vote does not count.
    Forfeit {
        /// It was not revealed in time.
        Late => "late",
        /// What was revealed is not what was committed.
        Mismatch => "mismatch",
        /// The voter committed or revealed two different things.
        Equivocation => "equivocation",
    }
);

/// How a task ended, in words that say why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Finalized { candidate: String },
    Failed { reason: String },
    Expired { reason: String },
    Cancelled { reason: String },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Created {
        terms: Box<Terms>,
    },
    Claimed {
        token: u64,
        claim: Claim,
    },
    /// The lease of a claim goes on.
    Renewed {
        token: u64,
        until: Timestamp,
    },
    /// A claim ended without what it was for: given up, or its lease ran out.
    Released {
        token: u64,
        reason: String,
    },
    /// A step was paid for.
    Charged {
        role: Role,
    },
    Proposed {
        token: u64,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
    },
    /// A verifier found, or did not find, what a candidate refers to.
    EvidenceSeen {
        candidate: String,
        verifier: String,
        digest: String,
    },
    VoteCommitted {
        token: u64,
        candidate: String,
        commitment: String,
    },
    /// No more votes on the candidate are taken; those that were are revealed until then.
    RevealOpened {
        candidate: String,
        until: Timestamp,
    },
    VoteRevealed {
        candidate: String,
        voter: String,
        ballot: Ballot,
    },
    VoteForfeited {
        candidate: String,
        voter: String,
        why: Forfeit,
    },
    /// The votes approved the candidate.
    Committed {
        candidate: String,
    },
    Rejected {
        candidate: String,
    },
    /// The votes decided nothing, and are made anew.
    VerificationRepeated {
        candidate: String,
    },
    /// The votes decided nothing, and are not made anew.
    Undecided {
        candidate: String,
    },
    /// All that could propose failed; proposing begins anew at that time.
    RetryScheduled {
        at: Timestamp,
    },
    Ended {
        end: End,
    },
}

impl Event {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "TASK_CREATED",
            Self::Claimed { .. } => "TASK_CLAIMED",
            Self::Renewed { .. } => "TASK_CLAIM_RENEWED",
            Self::Released { .. } => "TASK_CLAIM_RELEASED",
            Self::Charged { .. } => "BUDGET_CHARGED",
            Self::Proposed { .. } => "CANDIDATE_PROPOSED",
            Self::EvidenceSeen { .. } => "EVIDENCE_AVAILABLE",
            Self::VoteCommitted { .. } => "VOTE_COMMIT",
            Self::RevealOpened { .. } => "REVEAL_OPENED",
            Self::VoteRevealed { .. } => "VOTE_REVEAL",
            Self::VoteForfeited { .. } => "VOTE_FORFEITED",
            Self::Committed { .. } => "DECISION_COMMITTED",
            Self::Rejected { .. } => "CANDIDATE_REJECTED",
            Self::VerificationRepeated { .. } => "VERIFICATION_REPEATED",
            Self::Undecided { .. } => "CANDIDATE_UNDECIDED",
            Self::RetryScheduled { .. } => "TASK_RETRY_SCHEDULED",
            Self::Ended { end } => match end {
                End::Finalized { .. } => "DECISION_FINALIZED",
                End::Failed { .. } => "TASK_FAILED",
                End::Expired { .. } => "TASK_EXPIRED",
                End::Cancelled { .. } => "TASK_CANCELLED",
            },
        }
    }
}
