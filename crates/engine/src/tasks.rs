//! Tasks: jobs under a contract, driven to their end by whichever node looks at them.
//!
//! The lifecycle is decided by `jurat_core::task`. Here it meets the world: the `Desk` is where a task
//! is kept, the `Hands` are those who work for it, `driver` brings it forward, and `driver::scheduler` says when.

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

pub use jurat_store::{TakenTasks, TaskKey, TaskTake};

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

/// A task as the desk keeps it.
#[derive(Debug, Clone)]
pub struct TaskSnapshot {
    pub task: Task,
    /// How many events made it.
    pub seq: u64,
    pub contract: Arc<Value>,
    pub roster: TaskRoster,
    /// The key that submitted it, whose scopes and limits hold for its steps.
    pub submitted_by: Option<String>,
}
