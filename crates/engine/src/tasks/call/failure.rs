//! Says why a task call came to nothing.

use jurat_core::{code::ProblemCode, round::replica::FailureCode};

/// The reason why a task call came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskCallFailure {
    /// The seat of the round failed.
    Replica(FailureCode),
    /// The round was refused before anyone was asked.
    Refused(ProblemCode),
    /// The voter refuses the policy.
    PolicyUnsupported,
    /// This node could not make the call.
    Node(ProblemCode),
    /// This node could not read the candidate that is voted on.
    CandidateUnreadable,
}

impl TaskCallFailure {
    /// The word that events record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replica(code) => code.as_str(),
            Self::Refused(code) | Self::Node(code) => code.as_str(),
            Self::PolicyUnsupported => "policy_unsupported",
            Self::CandidateUnreadable => "candidate_unreadable",
        }
    }

    /// Whether this node failed, which says nothing about the executor. A round may also end
    /// because its node failed or stopped.
    pub const fn is_ours(self) -> bool {
        match self {
            Self::Replica(code) => {
                matches!(code, FailureCode::Internal | FailureCode::NodeStopped)
            }
            Self::Refused(_) | Self::PolicyUnsupported => false,
            Self::Node(_) | Self::CandidateUnreadable => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopping_node_does_not_blame_the_executor() {
        let is_ours = |code: FailureCode| TaskCallFailure::Replica(code).is_ours();
        assert!(is_ours(FailureCode::NodeStopped) && is_ours(FailureCode::Internal));
        assert!(!is_ours(FailureCode::HttpStatus));
        assert!(!TaskCallFailure::Refused(ProblemCode::SessionsUnavailable).is_ours());
        assert!(TaskCallFailure::Node(ProblemCode::Overloaded).is_ours());
    }
}
