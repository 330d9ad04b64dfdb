//! The events of a task. They are stored for ever, and replaying them rebuilds the task.

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
        /// The revealed ballot does not match the commitment.
        Mismatch => "mismatch",
        /// The voter gave two different verdicts.
        Equivocation => "equivocation",
    }
);

words!(
    /// Why proposing ended.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    ExploreEnd {
        /// The maximum number of executors has proposed.
        MaxProposers => "max_proposers",
        /// The maximum number of candidates exists.
        TopK => "topk",
        /// The last proposals brought nothing new.
        NothingNew => "nothing_new",
        /// No further proposal can be paid for.
        Budget => "budget",
        /// No further executor can propose.
        NobodyLeft => "nobody_left",
    }
);

/// Proves who disputed a decision: an Ed25519 signature of the text
/// `task|epoch|BAD|reason|timestamp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComplaintSignature {
    /// In milliseconds since 1970, as the signer states.
    pub timestamp: u64,
    /// In hex.
    pub signature: String,
}

/// An event. The member `kind` names its variant.
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
    /// A lease was extended.
    Renewed {
        token: u64,
        until: Timestamp,
    },
    /// A lease ended without a result.
    Released {
        token: u64,
        reason: LeaseRelease,
    },
    /// A call was charged: one unit of its stage.
    Charged {
        role: TaskRole,
        /// Whether it is for a candidate from knowledge, which has a limit of its own.
        reuse: bool,
    },
    /// A charge was refunded: the node failed, not the executor.
    Refunded {
        role: TaskRole,
        reuse: bool,
    },
    Proposed {
        token: u64,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
        /// The round that produced it.
        round_id: String,
    },
    /// A candidate was taken from an earlier decision.
    Reused {
        source: String,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
        /// The executors that proposed it for the earlier decision. They cannot vote on it now.
        proposers: Vec<String>,
    },
    /// Proposing is over, and voting on the candidates starts.
    ExploreClosed {
        why: ExploreEnd,
    },
    /// A voter found evidence of a candidate.
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
        /// The round that gave the verdict.
        round_id: String,
    },
    /// No more votes are accepted in this vote; the committed ones may be revealed until then.
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
    /// A voter gave two different verdicts in one vote on a candidate; these are their digests.
    Equivocated {
        candidate: String,
        voter: String,
        turn: u32,
        verdicts: (String, String),
    },
    /// The votes so far do not decide, and more voters are asked: this many in all.
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
    /// The votes did not decide. Inconclusive votes are repeated, not before this time.
    VerificationRepeated {
        candidate: String,
        turn: u32,
        wanted: u32,
        why: VoteGap,
        at: Timestamp,
    },
    /// The votes did not decide and are not repeated.
    Undecided {
        candidate: String,
        why: VoteGap,
    },
    /// All proposers failed; proposing starts again at this time.
    RetryScheduled {
        at: Timestamp,
    },
    /// The decision of this epoch is final, and can be disputed until this time.
    Finalized {
        epoch: u64,
        candidate: String,
        settles_at: Timestamp,
    },
    /// A final decision was disputed.
    Complained {
        epoch: u64,
        reason: String,
        /// Present if the contract names who may dispute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<ComplaintSignature>,
    },
    /// The time to dispute a decision is over.
    Settled {
        epoch: u64,
        candidate: String,
        is_bad: bool,
    },
    /// The epoch is over, and the next one starts with a new budget.
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
    /// The names of all events.
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

    /// The name of the event in replies.
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
