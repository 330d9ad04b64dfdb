//! Takes due tasks, drives a limited number of them, and sleeps until the next.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
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
use crate::{Clock, Engine};

/// How long a taken task is left to its node, which writes to it before that.
const TAKEN_MS: u64 = 2_000;
/// How long to wait for a store that does not answer.
const TROUBLE_MS: u64 = 1_000;

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

/// The events that wake the scheduler.
enum SchedulerWake {
    Stop,
    Found(Result<DueTasks, TaskPortError>),
    Left(DriverExit),
    Woken,
    Time,
}

type DueLookup<'a> = Option<BoxFuture<'a, Result<DueTasks, TaskPortError>>>;
type ActiveDrivers<'a> = FuturesUnordered<BoxFuture<'a, DriverExit>>;

impl<D: TaskStorePort, W: DriverPort> TaskScheduler<'_, D, W> {
    /// Runs until the node stops, and then until its drivers have released their leases.
    pub async fn run(&self) {
        let mut walks: ActiveDrivers<'_> = FuturesUnordered::new();
        let mut looking: DueLookup<'_> = None;
        let mut look_at = self.clock.now();
        let mut seen = DueCursor::default();
        loop {
            let now = self.clock.now();
            let free = self.at_once.saturating_sub(walks.len());
            if looking.is_none() && free != 0 && look_at <= now {
                looking = Some(self.store.take_due(self.take(now, free, &seen)).boxed());
                look_at = now.plus_millis(millis(self.longest_sleep));
            }
            // Without a free slot there is nothing to look for.
            let sleep = if free == 0 { self.longest_sleep } else { span(now, look_at) };
            match self.next_wake(&mut looking, &mut walks, sleep).await {
                SchedulerWake::Stop => break,
                SchedulerWake::Found(found) => {
                    looking = None;
                    look_at = look_at.min(self.drive_due(found, &mut seen, &walks));
                }
                // A slot is free for waiting tasks.
                SchedulerWake::Left(_) if seen.some_wait => look_at = self.clock.now(),
                SchedulerWake::Left(DriverExit::Waiting(until)) => look_at = look_at.min(until),
                SchedulerWake::Left(
                    DriverExit::Over
                    | DriverExit::Missing
                    | DriverExit::Trouble
                    | DriverExit::Stopped,
                ) => {}
                // The sleep is over, even if the clock was set back meanwhile.
                SchedulerWake::Woken | SchedulerWake::Time => look_at = self.clock.now(),
            }
        }
        while walks.next().await.is_some() {}
    }

    fn take(&self, now: Timestamp, free: usize, seen: &DueCursor) -> TaskTake {
        TaskTake {
            now,
            until: now.plus_millis(TAKEN_MS),
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            in_flight: self.in_flight.by_account(),
            after: seen.looked_to.clone(),
        }
    }

    async fn next_wake<'w>(
        &self,
        looking: &mut DueLookup<'w>,
        walks: &mut ActiveDrivers<'w>,
        sleep: Duration,
    ) -> SchedulerWake {
        let is_looking = looking.is_some();
        let look = async {
            match looking {
                Some(looking) => looking.await,
                None => std::future::pending().await,
            }
        };
        let turn = async {
            tokio::select! {
                biased;
                () = self.in_flight.stop.cancelled() => SchedulerWake::Stop,
                found = look, if is_looking => SchedulerWake::Found(found),
                Some(left) = walks.next(), if !walks.is_empty() => SchedulerWake::Left(left),
                () = self.in_flight.wake.notified() => SchedulerWake::Woken,
            }
        };
        tokio::time::timeout(sleep, turn).await.unwrap_or(SchedulerWake::Time)
    }

    /// Drives the tasks that were found, and returns when to look again.
    fn drive_due<'w>(
        &'w self,
        found: Result<DueTasks, TaskPortError>,
        seen: &mut DueCursor,
        walks: &ActiveDrivers<'w>,
    ) -> Timestamp {
        let now = self.clock.now();
        let DueTasks { taken, next } = match found {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(error = %error, "could not look for tasks that are due");
                return now.plus_millis(TROUBLE_MS);
            }
        };
        let (before, number) = (walks.len(), taken.tasks.len());
        for key in taken.tasks {
            if let Some(signals) = self.in_flight.enter(&key) {
                walks.push(self.drive_entered(key, signals).boxed());
            }
        }
        let is_entered = walks.len() - before == number;
        *seen = DueCursor { some_wait: taken.some_wait, looked_to: taken.looked_to };
        if seen.some_wait && !is_entered {
            // A task that is driven already needs no slot.
            return now;
        }
        next.unwrap_or_else(|| now.plus_millis(millis(self.longest_sleep)))
    }

    async fn drive_entered(&self, key: TaskKey, signals: Arc<DriverSignals>) -> DriverExit {
        // The entry is removed even if the driver panics or is dropped.
        let _entered = TaskInFlightGuard { in_flight: self.in_flight, key: &key };
        self.driver.drive(&key, &signals).await
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

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// The time from now until then, in whole milliseconds and never too short.
fn span(now: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(until.millis_since(now) + 1)
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
