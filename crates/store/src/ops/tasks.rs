//! Tasks under contracts: their state and their events, written together or not at all.

pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod take;
pub(crate) mod write;

use std::convert::Infallible;

use jurat_core::{
    id::{AccountId, RoundId},
    list::ListPosition,
    round::candidate::ArtifactRef,
    task::{
        Ballot, TakenTasks, Task, TaskAddition, TaskCandidateRow, TaskEvent, TaskEventRow, TaskKey,
        TaskPhase, TaskRecord, TaskSummary, TaskTake,
        agent_event::NewAgentEvent,
        knowledge::{Knowledge, KnowledgeKey},
    },
    time::Timestamp,
};
use serde_json::Value;

use super::agent_events::UndeliverableEvent;
use crate::db::tx::operations;

operations! {
    /// Tasks under contracts.
    pub trait TaskOps;
    reads {
        fn task_get(task: &TaskKey) -> Option<TaskRecord> = read::get;
        /// The account's tasks, newest first. Nothing large is read for it.
        fn task_page(filter: &TaskFilter) -> Vec<TaskSummary> = read::page;
        /// The events of a task in the order in which they happened.
        fn task_events(asked: &TaskEventsQuery) -> Vec<TaskEventRow> = read::events;
        fn task_candidate(task: &TaskKey, candidate: &str) -> Option<TaskCandidateRow>
            = read::candidate;
        /// The candidates of a task by identifier, no more than the limit.
        fn task_candidates(task: &TaskKey, limit: &u32) -> Vec<TaskCandidateRow> = read::candidates;
        /// What all candidates of a task refer to whose output has this digest, the oldest first.
        fn task_references(task: &TaskKey, digest: &str) -> Vec<ArtifactRef> = read::references;
        /// The sealed ballots on a candidate in one turn of its verification, by voter.
        fn task_ballots(task: &TaskKey, candidate: &str, turn: &u32) -> Vec<TaskBallotRow>
            = read::ballots;
        /// When the next task of any account is due.
        fn task_next_due() -> Option<Timestamp> = read::next_due;
    }
    writes {
        /// Adds a task. One with the same identifier, contract and panel is returned as it is.
        fn task_submit(submit: &TaskSubmit) -> TaskAddition, or TaskSubmitRefusal = write::submit;
        /// Adds events and all that comes with them, if nobody else added some meanwhile.
        fn task_append(append: &TaskAppend) -> (), or TaskAppendRefusal = write::append;
        /// Takes tasks of all accounts that are due, and lets each be due again at another time: of
        /// several nodes that ask at once, one gets a task. Where not all of them get a place,
        /// accounts take turns, each with its longest due first.
        fn task_take_due(take: &TaskTake) -> TakenTasks, or Infallible = take::due;
    }
}

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFilter {
    pub account: AccountId,
    pub phase: Option<TaskPhase>,
    pub task_type: Option<String>,
    /// Starts behind this task, towards older ones.
    pub before: Option<ListPosition>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEventsQuery {
    pub task: TaskKey,
    /// Starts behind the event with this number; zero for the first.
    pub after: u64,
    pub limit: u32,
}

/// A task to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSubmit {
    pub task: TaskKey,
    pub task_type: String,
    pub contract: Value,
    pub contract_digest: String,
    pub panel: Value,
    /// The key that submits it.
    pub ordered_by: Option<String>,
    /// What the events made of it.
    pub state: Task,
    /// The first events of the task.
    pub events: Vec<TaskEvent>,
    pub due_at: Option<Timestamp>,
    pub at: Timestamp,
    /// How many tasks of the account may be open, this one included.
    pub most_open: u32,
}

/// Why a task was not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSubmitRefusal {
    /// Another contract has the identifier.
    Taken,
    /// The same contract has it, with another panel.
    OtherPanel,
    /// As many tasks of the account are open as may be.
    TooManyOpen,
}

/// Events of a task, with all that is written in the same transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskAppend {
    pub task: TaskKey,
    /// How many events there were when it was decided.
    pub expected_seq: u64,
    pub events: Vec<TaskEvent>,
    /// What the events made of the task.
    pub state: Task,
    pub due_at: Option<Timestamp>,
    pub at: Timestamp,
    pub with: TaskAppendExtras,
}

/// What is written along with events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskAppendExtras {
    pub candidate: Option<TaskCandidateRow>,
    pub ballot: Option<TaskBallotRow>,
    pub knowledge: Option<Knowledge>,
    /// The decision that is taken over, if nobody complained of it meanwhile.
    pub reused: Option<KnowledgeKey>,
    /// Those that are known already, by their key, are left out.
    pub agent_events: Vec<NewAgentEvent>,
    /// Those that nobody is told of any more.
    pub given_up: Vec<UndeliverableEvent>,
}

/// Why events were not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskAppendRefusal {
    Unknown,
    /// Somebody else added events; this is how many there are now.
    Stale {
        seq: u64,
    },
    /// Somebody complained of the decision that was to be taken over.
    Deprecated,
}

/// A vote that is committed, with what opens it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskBallotRow {
    pub candidate: String,
    /// How often the verification began anew before.
    pub turn: u32,
    pub voter: String,
    pub ballot: Ballot,
    pub salt: String,
    /// The round in which it was cast.
    pub round: Option<RoundId>,
    pub created_at: Timestamp,
}
