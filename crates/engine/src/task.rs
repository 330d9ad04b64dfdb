//! Tasks: jobs under a contract, driven to their end by whichever node looks at them.
//!
//! The lifecycle is decided by `jurat_core::task`. Here it meets the world: the `Desk` is where a task
//! is kept, the `Hands` are those who work for it, `drive` brings it forward, and `schedule` says when.

mod announce;
mod answer;
mod asks;
mod at_work;
mod call;
mod change;
mod choose;
mod desk;
mod draft;
mod drive;
mod feedback;
mod followers;
mod hands;
mod keep;
pub mod knowledge;
mod operations;
mod panel;
mod schedule;
mod submit;
mod walk;

use std::sync::Arc;

use jurat_core::task::Task;
use serde_json::Value;

pub use jurat_store::{TaskKey, TaskTake, TaskTaken};

pub use self::{
    asks::voices,
    change::{Change, Changed, Note, change},
    choose::{Worker, WorkerKind},
    desk::{Append, Appended, Candidacy, Desk, DeskError, Due, Remembered, Sealed},
    drive::{Driver, Left, Signals},
    hands::{Failure, Hands, Made, ProposeOrder, Verdict, VerifyOrder},
    panel::Panel,
    schedule::{Drives, Schedule, UnderWay},
};
pub(crate) use self::{
    followers::{Followers, News, Patience},
    operations::may_order,
    submit::{no_lane, profile_of},
};

/// A task as the desk keeps it.
#[derive(Debug, Clone)]
pub struct Filed {
    pub task: Task,
    /// How many events made it.
    pub seq: u64,
    pub contract: Arc<Value>,
    pub panel: Panel,
    /// The key that submitted it, whose scopes and limits hold for its steps.
    pub ordered_by: Option<String>,
}
