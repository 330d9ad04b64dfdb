//! Agent runs, and the queue of their steps.
//!
//! `jurat_core::agent_run` decides what happens to a run. This module writes a change in one
//! transaction, if the run did not change in the meantime, and hands out each step to one worker.

pub(crate) mod read;
mod rows;
pub(crate) mod take;
pub(crate) mod write;

use jurat_core::{
    agent_run::{
        AgentRunAddition, AgentRunEvent, AgentRunEventRow, AgentRunFilter, AgentRunKey,
        AgentRunStatus, AgentRunSummary, AgentStep, EventsStart,
    },
    id::AccountId,
    time::Timestamp,
};
use serde_json::Value;

use super::agent_events::NotLeaseHolder;
use crate::db::tx::operations;

operations! {
    /// Agent runs.
    pub struct AgentRunOps = store.agent_runs();
    reads {
        /// A run with its steps, in the order of its agents.
        fn get(run: &AgentRunKey) -> Option<AgentRunRecord> = read::get;
        /// The account's runs, newest first. Large columns are not read.
        fn page(account: &AccountId, filter: &AgentRunFilter) -> Vec<AgentRunSummary>
            = read::page;
        fn events(asked: &AgentRunEventsQuery) -> Vec<AgentRunEventRow> = read::events;
        /// When the next step of any account becomes available: its wait is over, or its lease
        /// ends.
        fn next_due() -> Option<Timestamp> = read::next_due;
        /// Whether no step of any account is queued, waits for a retry or is leased.
        fn is_idle() -> bool = read::is_idle;
    }
    changes {
        /// Takes available steps. Accounts take turns, each with its longest queued step first, and
        /// within a run with the most urgent one first. No executor gets more than it may do
        /// concurrently. If several workers ask, each step goes to one of them. A step whose lease
        /// is over is taken from its previous holder.
        fn take_steps(take: &AgentStepTake) -> Vec<TakenAgentStep> = take::steps;
    }
    writes {
        /// Adds a run with its steps. A run with the same identifier and the same spec is left as
        /// it is.
        fn submit(submit: &AgentRunSubmit) -> AgentRunAddition, or AgentRunRefusal = write::submit;
        /// Writes a change of a run, if the run has not changed in the meantime.
        fn write(write: &AgentRunWrite) -> (), or AgentRunConflict = write::write;
        /// Renews the lease of a step, and returns the status of its run.
        fn renew_step(renewal: &AgentStepRenewal) -> AgentRunStatus, or NotLeaseHolder = take::renew;
    }
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunRecord {
    pub key: AgentRunKey,
    /// The key that submitted it; `None` for a run from before keys were stored.
    pub ordered_by: Option<String>,
    pub spec: Value,
    pub spec_digest: String,
    /// The number of events.
    pub seq: u64,
    pub state: AgentRunState,
    pub created_at: Timestamp,
    /// When the spec and the result were pruned.
    pub pruned_at: Option<Timestamp>,
    /// In the order of the agents.
    pub steps: Vec<AgentStep>,
}

/// The part of a run that changes.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunState {
    pub status: AgentRunStatus,
    /// The number of times that the agents were asked again.
    pub iteration: u32,
    /// The progress of these iterations, and the reason for them.
    pub explored: Value,
    pub result: Option<Value>,
    pub error: Option<String>,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRunEventsQuery {
    pub run: AgentRunKey,
    pub from: EventsStart,
    pub limit: u32,
}

/// A run to add.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunSubmit {
    pub run: AgentRunKey,
    /// The key that submits it.
    pub ordered_by: Option<String>,
    pub task_type: String,
    pub spec: Value,
    pub spec_digest: String,
    pub state: AgentRunState,
    pub steps: Vec<NewAgentStep>,
    pub events: Vec<AgentRunEvent>,
    pub at: Timestamp,
    /// Maximum number of open runs of the account, including this one.
    pub most_open: u32,
}

/// A step of a new run, with its fixed members.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAgentStep {
    pub step: AgentStep,
    pub executor: String,
    /// A higher priority starts sooner, within the run.
    pub priority: i32,
    /// Maximum number of steps of the run that the executor may do concurrently.
    pub at_once: Option<u32>,
}

/// Why a run was not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentRunRefusal {
    /// A run with another spec has the id.
    Taken,
    /// The account has the maximum number of open runs.
    TooManyOpen,
}

/// A change of a run, with its events.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunWrite {
    pub run: AgentRunKey,
    /// The number of events when the change was decided.
    pub expected_seq: u64,
    pub state: AgentRunState,
    /// The changed steps.
    pub steps: Vec<AgentStep>,
    pub events: Vec<AgentRunEvent>,
    pub at: Timestamp,
}

/// Why a run was not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentRunConflict {
    Unknown,
    /// The run changed in the meantime; this is its current number of events.
    Stale {
        seq: u64,
    },
}

/// A worker's request for steps, with the end of their leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStepTake {
    pub worker: String,
    /// Fences out earlier holders of the step.
    pub token: String,
    pub until: Timestamp,
    pub now: Timestamp,
    pub limit: u32,
    /// Maximum number of concurrent steps of an executor.
    pub per_executor: u32,
}

/// A step that was taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenAgentStep {
    pub run: AgentRunKey,
    pub agent_id: String,
}

/// A renewal of the lease of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStepRenewal {
    pub step: TakenAgentStep,
    pub token: String,
    pub until: Timestamp,
}
