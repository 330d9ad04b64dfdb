//! What happened to a task. Events are kept for ever, and the task is what they made of it.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Ballot, LeaseRelease, TaskLease, TaskRole, TaskTerms, VoteGap};
use crate::{round::job::words, time::Timestamp};

words!(
    /// Why a vote does not count.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    Forfeit {
        /// It was not revealed in time.
        Late => "late",
        /// What was revealed is not what was committed.
        Mismatch => "mismatch",
        /// The voter gave two different verdicts.
        Equivocation => "equivocation",
    }
);

words!(
    /// Why nobody is asked to propose any more.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    ExploreEnd {
        /// As many proposed as may.
        MaxProposers => "max_proposers",
        /// There are as many candidates as may be verified.
        TopK => "topk",
        /// The last proposals brought nothing new.
        NothingNew => "nothing_new",
        /// No further proposal can be paid for.
        Budget => "budget",
        /// There is nobody else who could propose.
        NobodyLeft => "nobody_left",
    }
);

/// By what others can see who complained: an Ed25519 signature over the text
/// `task|epoch|BAD|reason|timestamp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComplaintSignature {
    /// In milliseconds since 1970, as the signer says.
    pub timestamp: u64,
    /// In hex.
    pub signature: String,
}

/// What happened. The member `kind` says which of these it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskEvent {
    Created {
        terms: Box<TaskTerms>,
    },
    Claimed {
        token: u64,
        claim: TaskLease,
    },
    /// The lease of a claim goes on.
    Renewed {
        token: u64,
        until: Timestamp,
    },
    /// A claim ended without what it was for.
    Released {
        token: u64,
        reason: LeaseRelease,
    },
    /// A step was paid for: a unit of its stage.
    Charged {
        role: TaskRole,
        /// Whether it is for a candidate from knowledge, which has a bound of its own.
        reuse: bool,
    },
    /// What was paid for a step is given back: a node failed, and not who was asked.
    Refunded {
        role: TaskRole,
        reuse: bool,
    },
    Proposed {
        token: u64,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
        /// The round in which it was made.
        round_id: String,
    },
    /// A candidate was taken from an earlier decision.
    Reused {
        source: String,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
        /// The executors that proposed it then, which have no vote on it now.
        proposers: Vec<String>,
    },
    /// Nobody is asked to propose any more, and the candidates are verified.
    ExploreClosed {
        why: ExploreEnd,
    },
    /// A verifier found what a candidate refers to.
    EvidenceSeen {
        candidate: String,
        verifier: String,
        digest: String,
    },
    VoteCommitted {
        token: u64,
        candidate: String,
        turn: u32,
        commitment: String,
        /// The round in which the verdict was given.
        round_id: String,
    },
    /// No more votes of this turn are taken; those that were are revealed until then.
    RevealOpened {
        candidate: String,
        turn: u32,
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
    /// One voter gave two different verdicts on one candidate in one turn; these are their digests.
    Equivocated {
        candidate: String,
        voter: String,
        turn: u32,
        verdicts: (String, String),
    },
    /// The votes so far decide nothing, and more verifiers are asked: so many in all.
    VotingExtended {
        candidate: String,
        turn: u32,
        wanted: u32,
    },
    /// The votes approved the candidate.
    Committed {
        candidate: String,
    },
    Rejected {
        candidate: String,
    },
    /// The votes decided nothing. Those that say nothing are made anew, not before that time.
    VerificationRepeated {
        candidate: String,
        turn: u32,
        wanted: u32,
        why: VoteGap,
        at: Timestamp,
    },
    /// The votes decided nothing, and are not made anew.
    Undecided {
        candidate: String,
        why: VoteGap,
    },
    /// All that could propose failed; proposing begins anew at that time.
    RetryScheduled {
        at: Timestamp,
    },
    /// The decision of this epoch is final, and can be complained of until then.
    Finalized {
        epoch: u64,
        candidate: String,
        settles_at: Timestamp,
    },
    /// Somebody who may says that a final decision was wrong.
    Complained {
        epoch: u64,
        reason: String,
        /// Where the contract says who may.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<ComplaintSignature>,
    },
    /// The time to complain of a decision is over.
    Settled {
        epoch: u64,
        candidate: String,
        is_bad: bool,
    },
    /// The epoch is over, and the next one begins with a new budget.
    EpochEnded {
        epoch: u64,
    },
    Failed {
        reason: String,
    },
    Expired {
        reason: String,
    },
    Cancelled {
        reason: String,
    },
}

impl TaskEvent {
    /// Every name that an event can have.
    pub const NAMES: [&str; 28] = [
        "TASK_CREATED",
        "TASK_CLAIMED",
        "TASK_CLAIM_RENEWED",
        "TASK_CLAIM_RELEASED",
        "BUDGET_CHARGED",
        "BUDGET_REFUNDED",
        "CANDIDATE_PROPOSED",
        "CANDIDATE_REUSED",
        "EXPLORE_CLOSED",
        "EVIDENCE_AVAILABLE",
        "VOTE_COMMIT",
        "REVEAL_OPENED",
        "VOTE_REVEAL",
        "VOTE_FORFEITED",
        "EQUIVOCATION_PROVEN",
        "VOTING_EXTENDED",
        "DECISION_COMMITTED",
        "CANDIDATE_REJECTED",
        "VERIFICATION_REPEATED",
        "CANDIDATE_UNDECIDED",
        "TASK_RETRY_SCHEDULED",
        "DECISION_FINALIZED",
        "TASK_FEEDBACK_REPORTED",
        "TASK_SETTLED",
        "EPOCH_ENDED",
        "TASK_FAILED",
        "TASK_EXPIRED",
        "TASK_CANCELLED",
    ];

    /// The name under which it is shown.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "TASK_CREATED",
            Self::Claimed { .. } => "TASK_CLAIMED",
            Self::Renewed { .. } => "TASK_CLAIM_RENEWED",
            Self::Released { .. } => "TASK_CLAIM_RELEASED",
            Self::Charged { .. } => "BUDGET_CHARGED",
            Self::Refunded { .. } => "BUDGET_REFUNDED",
            Self::Proposed { .. } => "CANDIDATE_PROPOSED",
            Self::Reused { .. } => "CANDIDATE_REUSED",
            Self::ExploreClosed { .. } => "EXPLORE_CLOSED",
            Self::EvidenceSeen { .. } => "EVIDENCE_AVAILABLE",
            Self::VoteCommitted { .. } => "VOTE_COMMIT",
            Self::RevealOpened { .. } => "REVEAL_OPENED",
            Self::VoteRevealed { .. } => "VOTE_REVEAL",
            Self::VoteForfeited { .. } => "VOTE_FORFEITED",
            Self::Equivocated { .. } => "EQUIVOCATION_PROVEN",
            Self::VotingExtended { .. } => "VOTING_EXTENDED",
            Self::Committed { .. } => "DECISION_COMMITTED",
            Self::Rejected { .. } => "CANDIDATE_REJECTED",
            Self::VerificationRepeated { .. } => "VERIFICATION_REPEATED",
            Self::Undecided { .. } => "CANDIDATE_UNDECIDED",
            Self::RetryScheduled { .. } => "TASK_RETRY_SCHEDULED",
            Self::Finalized { .. } => "DECISION_FINALIZED",
            Self::Complained { .. } => "TASK_FEEDBACK_REPORTED",
            Self::Settled { .. } => "TASK_SETTLED",
            Self::EpochEnded { .. } => "EPOCH_ENDED",
            Self::Failed { .. } => "TASK_FAILED",
            Self::Expired { .. } => "TASK_EXPIRED",
            Self::Cancelled { .. } => "TASK_CANCELLED",
        }
    }
}
