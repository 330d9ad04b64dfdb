//! A task as it is stored and listed, with its events and candidates.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Task, TaskEvent, TaskPhase};
use crate::{
    id::{AccountId, RoundId},
    round::candidate::Evidence,
    time::Timestamp,
};

/// Which task of which account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    pub account: AccountId,
    pub id: String,
}

/// A task as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub key: TaskKey,
    pub task_type: String,
    pub contract: Value,
    pub contract_digest: String,
    /// Who proposes and who verifies.
    pub panel: Value,
    /// The key that submitted it; `None` for a task from before keys were kept.
    pub ordered_by: Option<String>,
    /// What the events made of the task.
    pub state: Task,
    /// How many events there are.
    pub seq: u64,
    /// When somebody must look at it; `None` when nothing more happens by itself.
    pub due_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Why it ended without a decision.
    pub reason: Option<String>,
}

impl TaskRecord {
    /// Whether it is still known what was agreed; of a task that is over for long it is not.
    pub fn has_contract(&self) -> bool {
        !self.contract.as_object().is_some_and(serde_json::Map::is_empty)
    }
}

/// A line of a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSummary {
    pub id: String,
    pub task_type: String,
    pub phase: TaskPhase,
    pub seq: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<String>,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEventRow {
    /// From one, without gaps.
    pub seq: u64,
    pub event: TaskEvent,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskAddition {
    pub record: TaskRecord,
    /// Whether it was added now.
    pub is_new: bool,
}

/// What an executor proposed, with who made it and how.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCandidateRow {
    pub id: String,
    pub execution_id: String,
    pub executor: String,
    /// The round in which it was made.
    pub round: Option<RoundId>,
    pub output: Value,
    pub evidence: Evidence,
    /// Of the output.
    pub digest: String,
    pub created_at: Timestamp,
}

/// Who looks at tasks that are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTake {
    pub now: Timestamp,
    /// When each is due again, should nobody have written anything by then.
    pub until: Timestamp,
    /// How many places are free.
    pub limit: u32,
    /// How many tasks of each account are under way with whoever asks.
    pub in_flight: BTreeMap<AccountId, usize>,
    /// Looks at accounts behind this one first: as far as the look before came.
    pub after: Option<AccountId>,
}

/// Tasks that are the taker's now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenTasks {
    pub tasks: Vec<TaskKey>,
    /// Whether others are due that wait for a place.
    pub some_wait: bool,
    /// The last account that was looked at, when there are more behind it.
    pub looked_to: Option<AccountId>,
}
