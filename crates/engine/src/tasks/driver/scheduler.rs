//! Takes due tasks, drives a limited number of them, and sleeps until the next.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture, stream::FuturesUnordered};
use jurat_core::{
    id::AccountId,
    task::{TaskKey, TaskTake},
    time::Timestamp,
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::tasks::{
    DriverContext, DriverExit, DriverSignals, DueTasks, TaskPortError, TaskStorePort, WorkerPort,
    ports::{store_adapter::TaskStoreAdapter, worker_adapter::WorkerAdapter},
};
use crate::{
    Clock, Engine,
    due_loop::{DueLoop, DueWork},
};

/// How long a taken task is left to its node, which writes to it before that.
const TAKEN_MS: u64 = 2_000;

/// The tasks that this node drives.
#[derive(Debug, Default)]
pub struct TasksInFlight {
    tasks: Mutex<BTreeMap<TaskKey, Arc<DriverSignals>>>,
    /// A task is due now.
    pub wake: Notify,
    /// The node stops.
    pub stop: CancellationToken,
}

impl TasksInFlight {
    /// Ends when the token is cancelled.
    pub fn until(stop: CancellationToken) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Tells the driver of a task, if it runs on this node, that another writer changed it.
    pub fn tell(&self, key: &TaskKey) {
        if let Some(signals) = self.tasks.lock().get(key) {
            signals.changed.notify_one();
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.tasks.lock().len()
    }

    /// How many there are of each account.
    fn by_account(&self) -> BTreeMap<AccountId, usize> {
        let mut counts = BTreeMap::new();
        for key in self.tasks.lock().keys() {
            *counts.entry(key.account.clone()).or_default() += 1;
        }
        counts
    }

    /// Enters a task; `None` if it is driven already.
    fn enter(&self, key: &TaskKey) -> Option<Arc<DriverSignals>> {
        let mut tasks = self.tasks.lock();
        if tasks.contains_key(key) {
            return None;
        }
        let signals = DriverSignals { changed: Notify::new(), stop: self.stop.clone() };
        let signals = Arc::new(signals);
        tasks.insert(key.clone(), Arc::clone(&signals));
        Some(signals)
    }

    fn leave(&self, key: &TaskKey) {
        self.tasks.lock().remove(key);
    }
}

/// Drives a task that was taken.
pub trait DriverPort: Send + Sync {
    /// Moves a task as far forward as possible now.
    fn drive(
        &self,
        key: &TaskKey,
        signals: &Arc<DriverSignals>,
    ) -> impl Future<Output = DriverExit> + Send;
}

/// Runs inside the scheduler: it only progresses while it is polled.
impl<D: TaskStorePort, H: WorkerPort> DriverPort for DriverContext<'_, D, H> {
    async fn drive(&self, key: &TaskKey, signals: &Arc<DriverSignals>) -> DriverExit {
        self.drive_task(key, signals).await
    }
}

/// Drives due tasks, a limited number at a time.
pub struct TaskScheduler<'a, D, W> {
    pub store: &'a D,
    pub driver: &'a W,
    pub clock: &'a dyn Clock,
    pub in_flight: &'a TasksInFlight,
    pub at_once: usize,
    /// The maximum sleep: other nodes may have added work.
    pub longest_sleep: Duration,
}

impl<D, W> fmt::Debug for TaskScheduler<'_, D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskScheduler").field("at_once", &self.at_once).finish_non_exhaustive()
    }
}

/// The result of the last look.
#[derive(Default)]
struct DueCursor {
    /// Whether tasks wait for a slot.
    some_wait: bool,
    /// The account that it reached.
    looked_to: Option<AccountId>,
}

/// The tasks of a scheduler as the work of its loop.
struct TaskWork<'w, D, W> {
    scheduler: &'w TaskScheduler<'w, D, W>,
    seen: DueCursor,
}

impl<D: TaskStorePort, W: DriverPort> TaskScheduler<'_, D, W> {
    /// Runs until the node stops, and then until its drivers have released their leases.
    pub async fn run(&self) {
        let due_loop = DueLoop {
            clock: self.clock,
            at_once: self.at_once,
            longest_sleep: self.longest_sleep,
            wake: &self.in_flight.wake,
            stop: &self.in_flight.stop,
            grace: None,
        };
        let mut work = TaskWork { scheduler: self, seen: DueCursor::default() };
        // The loop never gives up, so it does not end with an error.
        let _ended = due_loop.run(&mut work).await;
    }

    async fn drive_entered(&self, key: TaskKey, signals: Arc<DriverSignals>) -> DriverExit {
        // The entry is removed even if the driver panics or is dropped.
        let _entered = TaskInFlightGuard { in_flight: self.in_flight, key: &key };
        self.driver.drive(&key, &signals).await
    }
}

impl<'w, D: TaskStorePort, W: DriverPort> DueWork for TaskWork<'w, D, W> {
    type Found = DueTasks;
    type Error = TaskPortError;
    type Look = BoxFuture<'w, Result<DueTasks, TaskPortError>>;
    type Ended = DriverExit;
    type Item = BoxFuture<'w, DriverExit>;

    const ITEMS: &'static str = "tasks";

    fn take(&mut self, now: Timestamp, free: usize) -> Self::Look {
        let scheduler = self.scheduler;
        let take = TaskTake {
            now,
            until: now.plus_millis(TAKEN_MS),
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            in_flight: scheduler.in_flight.by_account(),
            after: self.seen.looked_to.clone(),
        };
        scheduler.store.take_due(take).boxed()
    }

    fn start(
        &mut self,
        found: DueTasks,
        running: &FuturesUnordered<Self::Item>,
    ) -> Option<Timestamp> {
        let DueTasks { taken, next } = found;
        let (before, number) = (running.len(), taken.tasks.len());
        for key in taken.tasks {
            if let Some(signals) = self.scheduler.in_flight.enter(&key) {
                running.push(self.scheduler.drive_entered(key, signals).boxed());
            }
        }
        let is_entered = running.len() - before == number;
        self.seen = DueCursor { some_wait: taken.some_wait, looked_to: taken.looked_to };
        // A task that is driven already needs no slot.
        let has_free_slots = self.seen.some_wait && !is_entered;
        if has_free_slots { Some(self.scheduler.clock.now()) } else { next }
    }

    fn ended(&mut self, ended: DriverExit, _running: usize) -> Option<Timestamp> {
        match ended {
            // A slot is free for waiting tasks.
            _ if self.seen.some_wait => Some(self.scheduler.clock.now()),
            DriverExit::Waiting(until) => Some(until),
            DriverExit::Over | DriverExit::Missing | DriverExit::Trouble | DriverExit::Stopped => {
                None
            }
        }
    }
}

struct TaskInFlightGuard<'a> {
    in_flight: &'a TasksInFlight,
    key: &'a TaskKey,
}

impl Drop for TaskInFlightGuard<'_> {
    fn drop(&mut self) {
        self.in_flight.leave(self.key);
    }
}

/// The maximum sleep of a node: others may have added work to the same store.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Drives each task in a background task of its own, so that none waits for another.
struct SpawningDriver {
    engine: Engine,
}

impl DriverPort for SpawningDriver {
    async fn drive(&self, key: &TaskKey, signals: &Arc<DriverSignals>) -> DriverExit {
        let (engine, key, signals) = (self.engine.clone(), key.clone(), Arc::clone(signals));
        let driving = self.engine.inner.background.spawn(async move {
            let desk = TaskStoreAdapter { engine: engine.clone() };
            let hands = WorkerAdapter { engine: engine.clone() };
            let node = engine.inner.node.to_string();
            let clock = &*engine.inner.clock;
            let driver = DriverContext { store: &desk, workers: &hands, clock, node: &node };
            Box::pin(driver.drive_task(&key, &signals)).await
        });
        driving.await.unwrap_or_else(|error| {
            tracing::error!(error = %error, "task driver panicked; the task will be retried");
            DriverExit::Trouble
        })
    }
}

impl Engine {
    /// Drives the tasks of the store until this node stops.
    pub fn drive_tasks(&self) {
        let engine = self.clone();
        let _driving = self.inner.background.spawn(async move {
            let schedule = TaskScheduler {
                store: &TaskStoreAdapter { engine: engine.clone() },
                driver: &SpawningDriver { engine: engine.clone() },
                clock: &*engine.inner.clock,
                in_flight: &engine.inner.tasks_in_flight,
                at_once: engine.inner.limits.tasks,
                longest_sleep: LONGEST_SLEEP,
            };
            schedule.run().await;
        });
    }
}
