//! Tasks: jobs under a contract, driven to their end by whichever node looks at them.
//!
//! The lifecycle is decided by `jurat_core::task`. Here it meets the world: the `Desk` is where a task
//! is kept, the `Hands` are those who work for it, `drive` brings it forward, and `schedule` says when.

mod answer;
mod call;
mod cancel;
mod choose;
mod desk;
mod draft;
mod drive;
mod hands;
mod schedule;
mod walk;

use std::{fmt, sync::Arc};

use jurat_core::{id::AccountId, task::Task};
use jurat_wire::executor::TaskContract;

pub use self::{
    cancel::cancel,
    choose::Worker,
    desk::{Append, Appended, Candidacy, Desk, DeskError, Due, Remembered, Sealed},
    drive::{Driver, Left, Signals},
    hands::{Failure, Hands, Made, ProposeOrder, Verdict, VerifyOrder},
    schedule::{Schedule, UnderWay},
};

/// Which task: its caller chose the name, and it is unique in the account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    pub account: AccountId,
    pub id: String,
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// Who may work for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panel {
    /// Executors that propose.
    pub executors: Vec<String>,
    /// Executors that verify.
    pub verifiers: Vec<String>,
    pub profile: String,
    /// Whether this node votes as well, because the others are too few for the quorum.
    pub has_node: bool,
}

/// A task as the desk keeps it.
#[derive(Debug, Clone)]
pub struct Filed {
    pub task: Task,
    /// How many events made it.
    pub seq: u64,
    pub contract: Arc<TaskContract>,
    pub panel: Panel,
}
