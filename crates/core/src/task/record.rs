//! Defines a task as it is stored and listed, with its events and candidates.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Task, TaskEvent, TaskPhase};
use crate::{
    id::{AccountId, RoundId},
    list::ListPosition,
    round::candidate::Evidence,
    time::Timestamp,
};

/// Names a task of an account.
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
    /// The executors that propose and vote.
    pub panel: Value,
    /// The key that submitted it; `None` if the task is older than this record.
    pub ordered_by: Option<String>,
    /// The task after all its events.
    pub state: Task,
    /// The number of its events.
    pub seq: u64,
    /// When a node must look at it again; `None` if nothing more happens by itself.
    pub due_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Why it ended without a decision.
    pub reason: Option<String>,
}

impl TaskRecord {
    /// Whether the contract is still stored. Pruning removes it long after the end of the task.
    pub fn has_contract(&self) -> bool {
        !self.contract.as_object().is_some_and(serde_json::Map::is_empty)
    }
}

/// A task in a list.
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

/// A stored event.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEventRow {
    /// Starts at one, without gaps.
    pub seq: u64,
    pub event: TaskEvent,
    pub at: Timestamp,
}

/// A submitted task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskAddition {
    pub record: TaskRecord,
    /// Whether this request added it.
    pub is_new: bool,
}

/// A stored candidate, with its proposer and its round.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCandidateRow {
    pub id: String,
    pub execution_id: String,
    pub executor: String,
    /// The round that produced it.
    pub round: Option<RoundId>,
    pub output: Value,
    pub evidence: Evidence,
    /// The digest of the output.
    pub digest: String,
    pub created_at: Timestamp,
}

/// A request for tasks that are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTake {
    pub now: Timestamp,
    /// When each task is due again, unless something is written before.
    pub until: Timestamp,
    /// The number of free permits.
    pub limit: u32,
    /// The number of tasks of each account that the node already drives.
    pub in_flight: BTreeMap<AccountId, usize>,
    /// Starts after this account, where the last request ended.
    pub after: Option<AccountId>,
}

/// Tasks that now belong to the taker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenTasks {
    pub tasks: Vec<TaskKey>,
    /// Whether more tasks are due and wait for a permit.
    pub some_wait: bool,
    /// The last account that was looked at, if there are more after it.
    pub looked_to: Option<AccountId>,
}

/// A complaint about a final decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskComplaint {
    /// The epoch of the decision; `None` for the newest.
    pub epoch: Option<u64>,
    pub reason: String,
    /// When it was signed, in milliseconds since 1970.
    pub timestamp: Option<u64>,
    /// The hex digits of the signature.
    pub signature: Option<String>,
}

/// Selects tasks for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    pub phase: Option<TaskPhase>,
    pub task_type: Option<String>,
    /// Starts after this task, towards older ones.
    pub before: Option<ListPosition>,
    pub limit: u32,
}
