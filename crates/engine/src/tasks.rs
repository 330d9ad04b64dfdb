//! Tasks: jobs under a contract, which any node drives to their end.
//!
//! `jurat_core::task` decides the life of a task. Here it meets the world: `ports` connects it to
//! the store and the workers, `driver` moves it forward, and `driver::scheduler` decides when.

mod announce;
pub(crate) mod call;
mod change;
mod check;
mod draft;
mod driver;
mod feedback;
mod followers;
pub mod knowledge;
pub(crate) mod knowledge_list;
mod ports;
pub(crate) mod read;
mod roster;
mod submit;

use std::sync::Arc;

use jurat_core::task::Task;
use serde_json::Value;

pub use self::{
    change::{TaskChange, TaskChangeOutcome, TaskIdempotency, change_task},
    driver::{
        DriverContext, DriverExit, DriverSignals,
        choose::{TaskWorker, TaskWorkerKind},
        scheduler::{DriverPort, TaskScheduler, TasksInFlight},
    },
    ports::{
        store::{
            DueTasks, NewCandidate, PriorDecision, SecretBallot, TaskPortError, TaskStorePort,
            TaskWrite, TaskWriteOutcome,
        },
        worker_adapter::voices,
        workers::{
            ProposeOrder, ProposerAnswer, VoteOrder, VoterAnswer, WorkerFailure, WorkerPort,
        },
    },
    roster::TaskRoster,
};
pub(crate) use self::{
    check::{no_session, profile_of},
    followers::{Followers, LongPoll, TaskNews},
    submit::check_scopes,
};

/// A task as the store holds it.
#[derive(Debug, Clone)]
pub struct TaskSnapshot {
    pub task: Task,
    /// How many events it has had.
    pub seq: u64,
    pub contract: Arc<Value>,
    pub roster: TaskRoster,
    /// The key that submitted it, whose scopes and limits apply to its calls.
    pub submitted_by: Option<String>,
}
