//! Tasks: their state and their events, written together or not at all.

pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod take;
pub(crate) mod write;

use jurat_core::{
    id::{AccountId, RoundId},
    round::candidate::ArtifactRef,
    task::{
        Ballot, TakenTasks, Task, TaskAddition, TaskCandidateRow, TaskEvent, TaskEventRow,
        TaskFilter, TaskKey, TaskRecord, TaskSummary, TaskTake,
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
    pub struct TaskOps = store.tasks();
    reads {
        fn get(task: &TaskKey) -> Option<TaskRecord> = read::get;
        /// The account's tasks, newest first. Large columns are not read.
        fn page(account: &AccountId, filter: &TaskFilter) -> Vec<TaskSummary> = read::page;
        /// The events of a task in the order in which they happened.
        fn events(asked: &TaskEventsQuery) -> Vec<TaskEventRow> = read::events;
        fn candidate(task: &TaskKey, candidate: &str) -> Option<TaskCandidateRow>
            = read::candidate;
        /// The candidates of a task in the order of their identifiers, up to the limit.
        fn candidates(task: &TaskKey, limit: &u32) -> Vec<TaskCandidateRow> = read::candidates;
        /// The references of all candidates whose output has this digest, the oldest first.
        fn references(task: &TaskKey, digest: &str) -> Vec<ArtifactRef> = read::references;
        /// The hidden ballots on a candidate in one vote, in the order of the voters.
        fn ballots(task: &TaskKey, candidate: &str, turn: &u32) -> Vec<TaskBallotRow>
            = read::ballots;
        /// When the next task of any account is due.
        fn next_due() -> Option<Timestamp> = read::next_due;
    }
    changes {
        /// Takes due tasks of all accounts, and gives each a new due time: if several nodes ask at
        /// the same time, each task goes to one of them. If there are too few permits, accounts
        /// take turns, each with its longest due task first.
        fn take_due(take: &TaskTake) -> TakenTasks = take::due;
    }
    writes {
        /// Adds a task. A task with the same identifier, contract and panel is returned as it is.
        fn submit(submit: &TaskSubmit) -> TaskAddition, or TaskSubmitRefusal = write::submit;
        /// Adds events and their rows, if no other node added events in the meantime.
        fn append(append: &TaskAppend) -> (), or TaskAppendRefusal = write::append;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEventsQuery {
    pub task: TaskKey,
    /// Starts after the event with this number; zero for the first.
    pub after: u64,
    pub limit: u32,
}

/// A task to add.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSubmit {
    pub task: TaskKey,
    pub task_type: String,
    pub contract: Value,
    pub contract_digest: String,
    pub panel: Value,
    /// The key that submits it.
    pub ordered_by: Option<String>,
    /// The state after the events.
    pub state: Task,
    /// The first events of the task.
    pub events: Vec<TaskEvent>,
    pub due_at: Option<Timestamp>,
    pub at: Timestamp,
    /// Maximum number of open tasks of the account, including this one.
    pub most_open: u32,
}

/// Why a task was not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSubmitRefusal {
    /// A task with another contract has the id.
    Taken,
    /// A task with the same contract but another roster has the id.
    OtherPanel,
    /// The account has the maximum number of open tasks.
    TooManyOpen,
}

/// Events of a task, with everything that is written in the same transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskAppend {
    pub task: TaskKey,
    /// The number of events when the append was decided.
    pub expected_seq: u64,
    pub events: Vec<TaskEvent>,
    /// The state after the events.
    pub state: Task,
    pub due_at: Option<Timestamp>,
    pub at: Timestamp,
    pub with: TaskAppendExtras,
}

/// Documents that are written with events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskAppendExtras {
    pub candidate: Option<TaskCandidateRow>,
    pub ballot: Option<TaskBallotRow>,
    pub knowledge: Option<Knowledge>,
    /// The decision to reuse, if it was not disputed in the meantime.
    pub reused: Option<KnowledgeKey>,
    /// Events whose key is known already are left out.
    pub agent_events: Vec<NewAgentEvent>,
    /// Events that are not delivered.
    pub given_up: Vec<UndeliverableEvent>,
}

/// Why events were not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskAppendRefusal {
    Unknown,
    /// The task changed; this is the current number of events.
    Stale {
        seq: u64,
    },
    /// The decision to reuse was disputed.
    Deprecated,
}

/// A committed vote, with the ballot that it hides.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskBallotRow {
    pub candidate: String,
    /// The number of the vote.
    pub turn: u32,
    pub voter: String,
    pub ballot: Ballot,
    pub salt: String,
    /// The round in which it was cast.
    pub round: Option<RoundId>,
    pub created_at: Timestamp,
}
