//! Drives one task: what is due is written, who is needed is claimed and asked, what comes is written.
//!
//! Any number of nodes may drive the same task. What they write is fenced twice: by the number of
//! events that the writer knew of, and by the token of the claim.

mod calls_in_flight;
pub(crate) mod choose;
pub(crate) mod scheduler;
mod task_driver;
mod worker_answer;
mod worker_call;

use std::{fmt, time::Duration};

use jurat_core::time::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::task_driver::TaskDriver;
use super::{TaskKey, TaskStorePort, WorkerPort};
use crate::Clock;

/// How long the desk is given when this node ends.
const GIVE_UP_WITHIN: Duration = Duration::from_secs(2);
const GIVE_UP_TRIES: u32 = 5;

/// What a node drives tasks with.
pub struct DriverContext<'a, D, H> {
    pub store: &'a D,
    pub workers: &'a H,
    pub clock: &'a dyn Clock,
    /// The name of this node.
    pub node: &'a str,
}

impl<D, H> fmt::Debug for DriverContext<'_, D, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverContext").field("node", &self.node).finish_non_exhaustive()
    }
}

/// What a driver is told while it is at work.
#[derive(Debug, Default)]
pub struct DriverSignals {
    /// Somebody else wrote to the task.
    pub changed: Notify,
    /// This node ends.
    pub stop: CancellationToken,
}

/// How a driver left a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverExit {
    Over,
    /// There is nothing to do before this time.
    Waiting(Timestamp),
    /// The desk does not answer, and this node holds nothing of the task.
    Trouble,
    /// This node ends; it holds nothing of the task any more, unless the desk did not answer.
    Stopped,
    /// There is no such task.
    Missing,
}

impl<D: TaskStorePort, H: WorkerPort> DriverContext<'_, D, H> {
    /// Brings a task as far as it can come now.
    pub async fn drive_task(&self, key: &TaskKey, signals: &DriverSignals) -> DriverExit {
        let filed = match self.store.load(key).await {
            Ok(Some(filed)) => filed,
            Ok(None) => return DriverExit::Missing,
            Err(error) => {
                tracing::warn!(task.id = %key.id, error = %error, "could not read task");
                return DriverExit::Trouble;
            }
        };
        let mut walk = TaskDriver::new(self, key, filed);
        loop {
            if signals.stop.is_cancelled() {
                let giving_up = walk.give_up(GIVE_UP_TRIES);
                let _elapsed = tokio::time::timeout(GIVE_UP_WITHIN, giving_up).await;
                return DriverExit::Stopped;
            }
            match walk.advance().await {
                Ok(Some(left)) => return left,
                Ok(None) => walk.wait(signals).await,
                Err(error) if walk.may_leave() => {
                    tracing::warn!(task.id = %key.id, error = %error, "yielding task after repeated store errors");
                    return DriverExit::Trouble;
                }
                Err(error) => {
                    tracing::warn!(task.id = %key.id, error = %error, "could not write task; trying again");
                    walk.wait_for_store(signals).await;
                }
            }
        }
    }
}
