//! Runs of several agents, and the queue of their steps.

mod read;
mod rows;
mod steps;
mod take;
mod write;

use std::{collections::BTreeMap, convert::Infallible};

use jurat_core::{
    id::AccountId,
    task_run::{RunStatus, StepStatus},
    time::Timestamp,
};
use serde_json::Value;

use crate::{agent_events::NotHeld, both::operations, tasks::Position, tasks::TaskTake};

operations! {
    /// Runs of several agents.
    pub trait TaskRuns;
    reads {
        fn task_run_get(run: &RunKey) -> Option<TaskRun> = read::get;
        /// The account's runs, newest first. Nothing large is read for it.
        fn task_run_page(filter: &TaskRunFilter) -> Vec<TaskRunSummary> = read::page;
        /// The steps of a run by identifier.
        fn task_run_steps(run: &RunKey) -> Vec<TaskRunStep> = read::steps;
        /// How many steps of a run stand where.
        fn task_run_counts(run: &RunKey) -> BTreeMap<StepStatus, u32> = read::counts;
        fn task_run_events(asked: &RunEventsAsked) -> Vec<TaskRunEvent> = read::events;
        /// When a step waits no longer, a lease ends, or a run is due: the first of these.
        fn task_run_next_due() -> Option<Timestamp> = read::next_due;
    }
    writes {
        /// Adds a run with its steps. One with the same identifier and the same spec is returned
        /// as it is.
        fn task_run_submit(submit: &RunSubmit) -> RunSubmitted, or RunSubmitRefused
            = write::submit;
        /// Lets the steps of a run begin.
        fn task_run_kickoff(note: &RunNote) -> TaskRun, or RunRefused = write::kickoff;
        /// Ends all steps that nobody has, and the run with them if there are no others.
        fn task_run_cancel(note: &RunNote) -> TaskRun, or RunRefused = write::cancel;
        /// Ends a run with its result, or lets steps begin anew, if nothing happened meanwhile.
        fn task_run_advance(advance: &RunAdvance) -> TaskRun, or RunRefused = write::advance;
        /// Takes runs of all accounts that are due, the longest due first, and lets each be due
        /// again at another time.
        fn task_run_take_due(take: &TaskTake) -> Vec<RunKey>, or Infallible = take::due;
        /// Takes queued steps of all accounts, by priority and then by age, and of no executor more
        /// than it does at once. Of several nodes that ask, one gets a step.
        fn task_run_take_steps(take: &StepTake) -> Vec<TakenStep>, or Infallible = take::steps;
        /// Goes on holding a step.
        fn task_run_step_renew(renewal: &StepRenewal) -> RunStatus, or NotHeld = steps::renew;
        /// Ends a step, or lets it be tried again. The run is due when it was the last.
        fn task_run_step_finish(finish: &StepFinish) -> StepFinished, or NotHeld = steps::finish;
    }
}

/// Which run of which account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    pub account: AccountId,
    pub id: String,
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRun {
    pub key: RunKey,
    pub task_type: String,
    pub status: RunStatus,
    pub spec: Value,
    pub spec_digest: String,
    /// How many events there are.
    pub seq: u64,
    /// What asking its agents once more has brought.
    pub explored: Value,
    /// When somebody must look at it, because all its steps are over.
    pub due_at: Option<Timestamp>,
    pub result: Option<Value>,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// A line of a list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRunSummary {
    pub id: String,
    pub task_type: String,
    pub status: RunStatus,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRunFilter {
    pub account: AccountId,
    pub status: Option<RunStatus>,
    /// Starts behind this run, towards older ones.
    pub before: Option<Position>,
    pub limit: u32,
}

/// A step as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRunStep {
    pub run: RunKey,
    pub step: NewStep,
    pub status: StepStatus,
    /// Who has it.
    pub lease: Option<StepLease>,
    pub output: Option<Value>,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Who has a step, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLease {
    pub worker: String,
    /// Fences out those who had it before.
    pub token: String,
    pub until: Timestamp,
}

/// A step that is to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct NewStep {
    pub id: String,
    pub executor: String,
    /// What the agent is asked.
    pub body: Value,
    /// The higher, the sooner.
    pub priority: i32,
    /// Counted from one.
    pub attempt: u32,
    /// Not before this time.
    pub run_at: Timestamp,
}

/// An event of a run that is to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRunEvent {
    pub kind: String,
    pub body: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskRunEvent {
    /// From one, without gaps.
    pub seq: u64,
    pub event: NewRunEvent,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventsAsked {
    pub run: RunKey,
    pub from: EventsFrom,
    pub limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsFrom {
    /// Behind this one, in the order in which they happened.
    After(u64),
    /// Before this one, the newest first.
    Before(u64),
}

/// A run to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSubmit {
    pub run: RunKey,
    pub task_type: String,
    pub spec: Value,
    pub spec_digest: String,
    pub explored: Value,
    pub steps: Vec<NewStep>,
    pub events: Vec<NewRunEvent>,
    /// Whether its steps begin at once.
    pub is_kicked_off: bool,
    pub at: Timestamp,
    /// How many runs of the account may be open, this one included.
    pub most_open: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunSubmitted {
    pub run: TaskRun,
    /// Whether it was added now.
    pub is_new: bool,
}

/// Why a run was not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSubmitRefused {
    /// Another spec has the identifier.
    Taken,
    /// As many runs of the account are open as may be.
    TooManyOpen,
}

/// Something that happens to a run, and how it is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RunNote {
    pub run: RunKey,
    pub events: Vec<NewRunEvent>,
    pub at: Timestamp,
}

/// What follows from the steps of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAdvance {
    pub note: RunNote,
    /// How many events there were when it was decided.
    pub expected_seq: u64,
    /// With a status that is over, steps that are not end as well.
    pub status: RunStatus,
    /// Steps that begin, or begin anew in place of those with the same identifier.
    pub steps: Vec<NewStep>,
    pub explored: Value,
    pub result: Option<Value>,
    pub error: Option<String>,
}

/// Why a run was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRefused {
    Unknown,
    /// It has come too far for that.
    Is(RunStatus),
    /// Something happened meanwhile; this is how many events there are now.
    Stale {
        seq: u64,
    },
}

/// Who takes steps, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTake {
    pub lease: StepLease,
    pub now: Timestamp,
    pub limit: u32,
    /// How many steps each executor does at once, and one that is not named here.
    pub at_once: BTreeMap<String, u32>,
    pub at_once_otherwise: u32,
}

/// A step that is the taker's now.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenStep {
    pub step: TaskRunStep,
    /// The step of a run that is to be cancelled is finished as cancelled at once.
    pub run_status: RunStatus,
}

/// Which step is somebody's, by the token it was taken with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldStep {
    pub run: RunKey,
    pub id: String,
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRenewal {
    pub held: HeldStep,
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StepFinish {
    pub held: HeldStep,
    pub outcome: StepOutcome,
    pub events: Vec<NewRunEvent>,
    pub at: Timestamp,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    Succeeded {
        output: Value,
    },
    Failed {
        error: String,
    },
    /// It is tried again with the next attempt.
    Retry {
        error: String,
        at: Timestamp,
    },
    /// It is given back as it was taken.
    GivenBack,
    Cancelled,
}

/// How the run stands after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepFinished {
    pub run_status: RunStatus,
    /// How many events the run has.
    pub seq: u64,
    /// Whether all steps of the run are over: it is due now.
    pub was_last: bool,
}
