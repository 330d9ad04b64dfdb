//! A run of several agents: each does one step, which is a task, and what they say becomes one
//! result.
//!
//! Everything here is pure: which step is tried again and when, what the steps come to, and whether
//! they are asked once more.

mod aggregate;
mod document;
mod next;
mod spec;
mod state;
mod tie;

use std::str::FromStr;

pub use self::{
    aggregate::{AgentOutput, Bucket, BucketName, BucketOutcome, ValueCandidate, aggregate},
    document::counts,
    next::{
        AgentRunOutcome, ExploreProgress, ReexploreSignal, StepRetryDecision, after_agent_run,
        after_step,
    },
    spec::{
        AgentRunSpec, AgentSpec, AggregationSpec, ConfidenceFields, MissingReputation, NullAction,
        NullPolicy, ReexploreLimits, ReputationUnits, RetrySpec, SpecError, TieBreak, TiePolicy,
        UnresolvedCause,
    },
    state::{
        AgentRun, AgentRunCommand, AgentRunEvent, AgentRunEventKind, AgentRunRejection,
        AgentRunSummary, AgentStep, StepConclusion, StepLease, StepOutcome,
    },
    tie::ReexplorePermission,
};
use crate::round::job::words;

words!(
    /// How far a run has come.
    AgentRunStatus {
        /// Its steps wait for the word to begin.
        Created => "CREATED",
        Queued => "QUEUED",
        Running => "RUNNING",
        /// It is to end, and steps are still under way.
        Cancelling => "CANCELLING",
        Cancelled => "CANCELLED",
        Finalized => "FINALIZED",
        Failed => "FAILED",
    }
);

impl AgentRunStatus {
    /// Whether nothing can happen any more, unless somebody asks for it to be tried again.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Cancelled | Self::Finalized | Self::Failed)
    }
}

words!(
    /// How far a step of a run has come.
    StepStatus {
        Created => "CREATED",
        Queued => "QUEUED",
        /// A worker has it.
        Leased => "LEASED",
        Succeeded => "SUCCEEDED",
        Failed => "FAILED",
        /// It failed, and waits to be tried again.
        RetryWait => "RETRY_WAIT",
        Cancelled => "CANCELLED",
    }
);

impl StepStatus {
    /// Whether it waits for nobody and nothing.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}
