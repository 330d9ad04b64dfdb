//! Agent runs: each agent does one step, which is a task, and the run combines their outputs into
//! one result.
//!
//! Everything here is pure: when a step is retried, what the steps add up to, and whether the
//! agents are asked again.

mod aggregate;
mod document;
mod next;
mod record;
mod spec;
mod spec_document;
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
    record::{
        AgentRunAddition, AgentRunEventRow, AgentRunFilter, AgentRunKey, AgentRunOrder, EventsStart,
    },
    spec::{
        AgentRunSpec, AgentSpec, AggregationSpec, ConfidenceFields, MissingReputation, NullAction,
        NullPolicy, ReexploreLimits, ReputationUnits, RetrySpec, SpecError, TieBreak, TiePolicy,
        UnresolvedCause,
    },
    spec_document::SpecReadError,
    state::{
        AgentRun, AgentRunCommand, AgentRunEvent, AgentRunEventKind, AgentRunRejection,
        AgentRunSummary, AgentStep, StepConclusion, StepLease, StepOutcome,
    },
    tie::ReexplorePermission,
};
use crate::round::job::words;

words!(
    /// The state of an agent run.
    AgentRunStatus {
        /// Its steps wait for the start command.
        Created => "CREATED",
        Queued => "QUEUED",
        Running => "RUNNING",
        /// The run is being cancelled, and some steps are still in progress.
        Cancelling => "CANCELLING",
        Cancelled => "CANCELLED",
        Finalized => "FINALIZED",
        Failed => "FAILED",
    }
);

impl AgentRunStatus {
    /// Whether the run has ended. Only a retry changes it after that.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Cancelled | Self::Finalized | Self::Failed)
    }
}

words!(
    /// The state of a step.
    StepStatus {
        Created => "CREATED",
        Queued => "QUEUED",
        /// A worker holds a lease on it.
        Leased => "LEASED",
        Succeeded => "SUCCEEDED",
        Failed => "FAILED",
        /// It failed and waits for its retry.
        RetryWait => "RETRY_WAIT",
        Cancelled => "CANCELLED",
    }
);

impl StepStatus {
    /// Whether the step has ended.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}
