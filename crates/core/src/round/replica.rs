//! A replica: one session's try within a round, and its result.

use std::str::FromStr;

use serde_json::Value;

use super::{candidate::Evidence, job::words};
use crate::executor::Independence;

/// One session's try within a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Replica {
    /// The position in the order of choice: first one for each seat, then the spares.
    pub index: usize,
    /// The seat that it was asked for. A spare has the seat of the replica that failed.
    pub seat: usize,
    /// The replica that was asked after this one failed.
    pub replaced_by: Option<usize>,
    pub session_id: String,
    pub executor: String,
    pub independence: Independence,
    /// The probability that this session is right, as assumed or measured in advance.
    pub reliability: f64,
    pub answer: ReplicaAnswer,
    pub latency_ms: u64,
    pub cost_micros: u64,
    /// The usage of a judge; executors do not report theirs.
    pub usage: Option<JudgeUsage>,
}

impl Replica {
    /// Whether its answer or failure counts for its seat.
    pub const fn is_counted(&self) -> bool {
        self.replaced_by.is_none()
    }
}

/// The usage of a judge, as its provider counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JudgeUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Requests sent to the provider.
    pub calls: u32,
    /// Whether the verdict came from the cache, so that the judge was not asked.
    pub is_cached: bool,
}

/// The answer of a replica. Only a `Vote` counts for a side.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplicaAnswer {
    Vote(ReplicaVote),
    /// The executor answered and declined to decide: `RETRY` or `NEEDS_SPEC`.
    Abstained {
        label: Label,
        said: AnswerContent,
    },
    /// There is no verdict, for this reason.
    Nothing {
        label: Label,
        failure: ReplicaFailure,
        said: Option<AnswerContent>,
    },
}

/// A verdict and its content.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaVote {
    pub label: Label,
    pub said: AnswerContent,
}

/// The content of an executor's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnswerContent {
    /// The output of a delegate or factcheck replica.
    pub output: Option<Value>,
    /// The executor's own confidence in its answer, between 0 and 1.
    pub score: Option<f64>,
    pub reason_codes: Vec<u16>,
    pub evidence: Evidence,
    /// The verifier result hash as we computed it.
    pub result_hash: Option<String>,
    /// Remarks on the answer, such as a missing hash.
    pub notes: Vec<String>,
}

impl ReplicaAnswer {
    /// The label of the answer.
    pub const fn label(&self) -> Label {
        match self {
            Self::Vote(ReplicaVote { label, .. })
            | Self::Abstained { label, .. }
            | Self::Nothing { label, .. } => *label,
        }
    }

    /// The content, if the executor answered.
    pub const fn content(&self) -> Option<&AnswerContent> {
        match self {
            Self::Vote(vote) => Some(&vote.said),
            Self::Abstained { said, .. } => Some(said),
            Self::Nothing { said, .. } => said.as_ref(),
        }
    }

    /// The content, to add to it.
    pub const fn content_mut(&mut self) -> Option<&mut AnswerContent> {
        match self {
            Self::Vote(vote) => Some(&mut vote.said),
            Self::Abstained { said, .. } => Some(said),
            Self::Nothing { said, .. } => said.as_mut(),
        }
    }

    /// The failure, if there is no verdict.
    pub const fn failure(&self) -> Option<&ReplicaFailure> {
        match self {
            Self::Nothing { failure, .. } => Some(failure),
            Self::Vote(_) | Self::Abstained { .. } => None,
        }
    }

    /// The answer without anything that the executor said. A verdict counts as said, and so does
    /// the reason why there is none.
    #[must_use]
    pub fn withheld(self) -> Self {
        let failed = |code| Self::nothing(code, "the round was not charged, so this is withheld");
        match self {
            Self::Vote(_) => failed(FailureCode::Cancelled),
            Self::Abstained { .. } => {
                Self::Abstained { label: Label::Retry, said: AnswerContent::default() }
            }
            Self::Nothing { failure, .. } => failed(failure.code),
        }
    }

    /// Whether the executor answered, even if it declined to decide.
    pub const fn has_answered(&self) -> bool {
        !matches!(self.label(), Label::Timeout | Label::Error | Label::Cancelled)
    }

    /// An answer without a verdict and without content.
    pub fn nothing(code: FailureCode, detail: impl Into<String>) -> Self {
        Self::failed(ReplicaFailure::new(code, detail), None)
    }

    /// An answer without a verdict; the label follows from the failure.
    pub fn failed(failure: ReplicaFailure, said: Option<AnswerContent>) -> Self {
        let label = match failure.code {
            FailureCode::Timeout | FailureCode::Busy => Label::Timeout,
            FailureCode::Cancelled => Label::Cancelled,
            FailureCode::InvalidOutput => Label::InvalidOutput,
            FailureCode::Unavailable
            | FailureCode::Unreachable
            | FailureCode::Disconnected
            | FailureCode::HttpStatus
            | FailureCode::Redirect
            | FailureCode::NotJson
            | FailureCode::BadShape
            | FailureCode::TooLarge
            | FailureCode::EncodedReply
            | FailureCode::HashMismatch
            | FailureCode::StatusContradicts
            | FailureCode::PeerRefused
            | FailureCode::ForgedAnswer
            | FailureCode::ForeignAnswer
            | FailureCode::ReplayedAnswer
            | FailureCode::Overpriced
            | FailureCode::PolicyContradicted
            | FailureCode::OutputUnchecked
            | FailureCode::JudgeUnavailable
            | FailureCode::JudgeUnreadable
            | FailureCode::MediaUnavailable
            | FailureCode::NodeStopped
            | FailureCode::Internal => Label::Error,
        };
        Self::Nothing { label, failure, said }
    }
}

words!(
    /// The answer of a replica, or the result of a round, in one word.
    Label {
        Valid => "VALID",
        Invalid => "INVALID",
        Retry => "RETRY",
        NeedsSpec => "NEEDS_SPEC",
        True => "TRUE",
        False => "FALSE",
        Unsure => "UNSURE",
        Ok => "OK",
        InvalidOutput => "INVALID_OUTPUT",
        Timeout => "TIMEOUT",
        Error => "ERROR",
        Cancelled => "CANCELLED",
    }
);

words!(
    /// Why a replica has no verdict.
    FailureCode {
        /// The deadline of the round passed.
        Timeout => "timeout",
        /// The executor had all its permits in use until the deadline.
        Busy => "busy",
        /// The session could not be asked: its executor is down, paused or incapable, or its call
        /// could not be recorded.
        Unavailable => "unavailable",
        /// No connection, or the address did not resolve.
        Unreachable => "unreachable",
        /// The connection ended before the answer was complete.
        Disconnected => "disconnected",
        /// A status other than 2xx.
        HttpStatus => "http_status",
        /// Redirects are never followed.
        Redirect => "redirect",
        /// The answer is not JSON, or two parsers could read it differently.
        NotJson => "not_json",
        /// The JSON lacks a required field, has a field of the wrong type, or names another
        /// provider or model than the capabilities.
        BadShape => "bad_shape",
        /// The answer exceeds the size limit.
        TooLarge => "too_large",
        /// The answer is compressed although we did not ask for that.
        EncodedReply => "encoded_reply",
        /// `verifier_result_hash` is well-formed but wrong.
        HashMismatch => "hash_mismatch",
        /// `verification_status` contradicts `passed`.
        StatusContradicts => "status_contradicts",
        /// The node of the executor refused the job.
        PeerRefused => "peer_refused",
        /// The answer of another node does not have that node's signature.
        ForgedAnswer => "forged_answer",
        /// The answer of another node is for another round, replica or node.
        ForeignAnswer => "foreign_answer",
        /// The answer of another node is for an earlier request.
        ReplayedAnswer => "replayed_answer",
        /// Another node asks more for its answer than was agreed.
        Overpriced => "overpriced",
        /// The executor passed a candidate that our own evaluation of the same policy fails.
        PolicyContradicted => "policy_contradicted",
        /// The candidate fails the policy.
        InvalidOutput => "invalid_output",
        /// The candidate could not be checked under the policy.
        OutputUnchecked => "output_unchecked",
        /// The judge's provider is not configured, or no try got an answer.
        JudgeUnavailable => "judge_unavailable",
        /// The judge answered, but not with a verdict.
        JudgeUnreadable => "judge_unreadable",
        /// The image for the judge could not be fetched.
        MediaUnavailable => "media_unavailable",
        /// The round was decided without this replica.
        Cancelled => "cancelled",
        /// The node stopped before the round was closed.
        NodeStopped => "node_stopped",
        /// A defect of ours.
        Internal => "internal",
    }
);

impl FailureCode {
    /// Whether it counts against the executor, rather than against the caller or ourselves.
    pub const fn is_executors_fault(self) -> bool {
        match self {
            Self::Timeout
            | Self::Unreachable
            | Self::Disconnected
            | Self::HttpStatus
            | Self::Redirect
            | Self::NotJson
            | Self::BadShape
            | Self::TooLarge
            | Self::EncodedReply
            | Self::HashMismatch
            | Self::StatusContradicts
            | Self::ForgedAnswer
            | Self::ForeignAnswer
            | Self::ReplayedAnswer
            | Self::Overpriced => true,
            Self::Busy
            | Self::Unavailable
            | Self::PeerRefused
            | Self::PolicyContradicted
            | Self::InvalidOutput
            | Self::OutputUnchecked
            | Self::JudgeUnavailable
            | Self::JudgeUnreadable
            | Self::MediaUnavailable
            | Self::Cancelled
            | Self::NodeStopped
            | Self::Internal => false,
        }
    }
}

impl FailureCode {
    /// Whether a spare may replace a session that failed this way. A session that answered keeps
    /// its seat, even if its answer is invalid.
    pub const fn leaves_the_seat(self) -> bool {
        match self {
            Self::Unavailable
            | Self::Unreachable
            | Self::Disconnected
            | Self::HttpStatus
            | Self::Redirect
            | Self::NotJson
            | Self::BadShape
            | Self::TooLarge
            | Self::EncodedReply
            | Self::HashMismatch
            | Self::StatusContradicts
            | Self::PeerRefused
            | Self::ForgedAnswer
            | Self::ForeignAnswer
            | Self::ReplayedAnswer
            | Self::Overpriced
            | Self::JudgeUnavailable
            | Self::JudgeUnreadable => true,
            Self::Timeout
            | Self::Busy
            | Self::PolicyContradicted
            | Self::InvalidOutput
            | Self::OutputUnchecked
            | Self::MediaUnavailable
            | Self::Cancelled
            | Self::NodeStopped
            | Self::Internal => false,
        }
    }
}

/// A failure with its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaFailure {
    pub code: FailureCode,
    pub detail: String,
}

impl ReplicaFailure {
    /// A failure with its explanation.
    pub fn new(code: FailureCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_withheld_answer_says_why_there_is_none_and_nothing_else() {
        let said = || AnswerContent {
            output: Some(json!("secret")),
            score: Some(0.5),
            notes: vec!["secret".to_owned()],
            ..AnswerContent::default()
        };
        let vote = ReplicaAnswer::Vote(ReplicaVote { label: Label::Valid, said: said() });
        let abstained = ReplicaAnswer::Abstained { label: Label::NeedsSpec, said: said() };
        let failure = ReplicaFailure::new(FailureCode::InvalidOutput, "secret");
        let failed = ReplicaAnswer::failed(failure, Some(said()));
        for (answer, label, code) in [
            (vote, Label::Cancelled, Some(FailureCode::Cancelled)),
            (abstained, Label::Retry, None),
            (failed, Label::InvalidOutput, Some(FailureCode::InvalidOutput)),
        ] {
            let withheld = answer.withheld();
            assert_eq!(withheld.label(), label);
            assert_eq!(withheld.failure().map(|failure| failure.code), code);
            assert!(!format!("{withheld:?}").contains("secret"), "{withheld:?}");
        }
    }
}
