//! Drives one task: writes due events, leases and makes the needed calls, and writes their results.
//!
//! Any number of nodes may drive the same task. Their writes are fenced twice: by the number of
//! events that the writer knew, and by the token of the lease.

mod calls_in_flight;
pub(crate) mod choose;
pub(crate) mod scheduler;
mod task_driver;
mod worker_answer;
mod worker_call;
mod worker_search;

use std::{fmt, time::Duration};

use jurat_core::{task::TaskKey, time::Timestamp};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::task_driver::TaskDriver;
use super::{TaskStorePort, WorkerPort};
use crate::Clock;

/// How long the store is given when this node stops.
const GIVE_UP_WITHIN: Duration = Duration::from_secs(2);
const GIVE_UP_TRIES: u32 = 5;

/// Everything that a node drives tasks with.
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

/// Signals to a running driver.
#[derive(Debug, Default)]
pub struct DriverSignals {
    /// Another writer changed the task.
    pub changed: Notify,
    /// This node stops.
    pub stop: CancellationToken,
}

/// Why a driver left a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverExit {
    Over,
    /// There is nothing to do before this time.
    Waiting(Timestamp),
    /// The store does not answer, and this node holds no lease of the task.
    Trouble,
    /// This node stops; it holds no lease of the task any more, unless the store did not answer.
    Stopped,
    /// There is no such task.
    Missing,
}

impl<D: TaskStorePort, H: WorkerPort> DriverContext<'_, D, H> {
    /// Moves a task as far forward as possible now.
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
