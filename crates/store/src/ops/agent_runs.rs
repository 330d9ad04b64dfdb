//! Runs of several agents, and the queue of their steps.
//!
//! What becomes of a run is decided by `jurat_core::agent_run`. Here it is written in one transaction,
//! if nothing happened to the run meanwhile; and steps are given out, each to one of all who ask.

pub(crate) mod read;
mod rows;
pub(crate) mod take;
pub(crate) mod write;

use std::convert::Infallible;

use jurat_core::{
    agent_run::{
        AgentRunAddition, AgentRunEvent, AgentRunEventRow, AgentRunKey, AgentRunStatus,
        AgentRunSummary, AgentStep, EventsStart,
    },
    id::AccountId,
    list::ListPosition,
    time::Timestamp,
};
use serde_json::Value;

use super::agent_events::NotLeaseHolder;
use crate::db::tx::operations;

operations! {
    /// Runs of several agents.
    pub trait AgentRunOps;
    reads {
        /// A run with its steps, in the order of its agents.
        fn agent_run_get(run: &AgentRunKey) -> Option<AgentRunRecord> = read::get;
        /// The account's runs, newest first. Nothing large is read for it.
        fn agent_run_page(filter: &AgentRunFilter) -> Vec<AgentRunSummary> = read::page;
        fn agent_run_events(asked: &AgentRunEventsQuery) -> Vec<AgentRunEventRow> = read::events;
        /// When the next step of any account can be taken: it waits no longer, or its lease ends.
        fn agent_run_next_due() -> Option<Timestamp> = read::next_due;
        /// Whether a step of any account is not over and may be taken by now or later.
        fn agent_run_is_idle() -> bool = read::is_idle;
    }
    writes {
        /// Adds a run with its steps. One with the same identifier and the same spec is left as it
        /// is.
        fn agent_run_submit(submit: &AgentRunSubmit) -> AgentRunAddition, or AgentRunRefusal = write::submit;
        /// Writes what became of a run, if nothing happened to it meanwhile.
        fn agent_run_write(write: &AgentRunWrite) -> (), or AgentRunConflict = write::write;
        /// Takes steps that can be taken: accounts take turns, each with the longest queued first,
        /// and of one run the most urgent; of no executor more than it does at once. Of several who
        /// ask, one gets a step. One whose lease is over is taken from whoever had it.
        fn agent_run_take_steps(take: &AgentStepTake) -> Vec<TakenAgentStep>, or Infallible = take::steps;
        /// Goes on holding a step, and says how its run stands.
        fn agent_run_step_renew(renewal: &AgentStepRenewal) -> AgentRunStatus, or NotLeaseHolder = take::renew;
    }
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunRecord {
    pub key: AgentRunKey,
    /// The key that submitted it; `None` for a run from before keys were kept.
    pub ordered_by: Option<String>,
    pub spec: Value,
    pub spec_digest: String,
    /// How many events there are.
    pub seq: u64,
    pub state: AgentRunState,
    pub created_at: Timestamp,
    /// When what it was asked and what came of it were removed, because it is over for long.
    pub pruned_at: Option<Timestamp>,
    /// In the order of the agents.
    pub steps: Vec<AgentStep>,
}

/// What changes of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunState {
    pub status: AgentRunStatus,
    /// How often its agents were asked once more.
    pub iteration: u32,
    /// What that has brought, and why it is done.
    pub explored: Value,
    pub result: Option<Value>,
    pub error: Option<String>,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRunFilter {
    pub account: AccountId,
    pub status: Option<AgentRunStatus>,
    /// Starts behind this run, towards older ones.
    pub before: Option<ListPosition>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRunEventsQuery {
    pub run: AgentRunKey,
    pub from: EventsStart,
    pub limit: u32,
}

/// A run to be added.
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
    /// How many runs of the account may be open, this one included.
    pub most_open: u32,
}

/// A step of a new run, with what never changes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAgentStep {
    pub step: AgentStep,
    pub executor: String,
    /// The higher, the sooner; it counts within the run.
    pub priority: i32,
    /// How many steps of the run are with the executor at a time.
    pub at_once: Option<u32>,
}

/// Why a run was not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentRunRefusal {
    /// Another spec has the identifier.
    Taken,
    /// As many runs of the account are open as may be.
    TooManyOpen,
}

/// What became of a run, with what happened.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunWrite {
    pub run: AgentRunKey,
    /// How many events there were when it was decided.
    pub expected_seq: u64,
    pub state: AgentRunState,
    /// Those that changed.
    pub steps: Vec<AgentStep>,
    pub events: Vec<AgentRunEvent>,
    pub at: Timestamp,
}

/// Why a run was not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentRunConflict {
    Unknown,
    /// Something happened meanwhile; this is how many events there are now.
    Stale {
        seq: u64,
    },
}

/// Who takes steps, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStepTake {
    pub worker: String,
    /// Fences out those who had the step before.
    pub token: String,
    pub until: Timestamp,
    pub now: Timestamp,
    pub limit: u32,
    /// How many steps an executor does at once.
    pub per_executor: u32,
}

/// A step that is the taker's now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenAgentStep {
    pub run: AgentRunKey,
    pub agent_id: String,
}

/// Goes on holding a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStepRenewal {
    pub step: TakenAgentStep,
    pub token: String,
    pub until: Timestamp,
}
