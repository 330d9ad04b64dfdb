//! When a task is driven: takes what is due, drives so many at a time, and sleeps until the next.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use jurat_core::{id::AccountId, time::Timestamp};
use jurat_store::TaskTake;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    Desk, DeskError, Driver, Due, Hands, Left, Signals, TaskKey, asks::StepHands, keep::StoreDesk,
};
use crate::{Clock, Engine};

/// For how long a task that was taken is left to its taker, who writes before that.
const TAKEN_MS: u64 = 2_000;
/// How long to wait for a desk that does not answer.
const TROUBLE_MS: u64 = 1_000;

/// The tasks that are driven on this node.
#[derive(Debug, Default)]
pub struct UnderWay {
    tasks: Mutex<BTreeMap<TaskKey, Arc<Signals>>>,
    /// Something is due at once.
    pub wake: Notify,
    /// The node ends.
    pub stop: CancellationToken,
}

impl UnderWay {
    /// Ends when the token is cancelled.
    pub fn until(stop: CancellationToken) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Tells the driver of a task, if it is on this node, that somebody else wrote to it.
    pub fn tell(&self, key: &TaskKey) {
        if let Some(signals) = self.lock().get(key) {
            signals.changed.notify_one();
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// How many there are of each account.
    fn by_account(&self) -> BTreeMap<AccountId, usize> {
        let mut counts = BTreeMap::new();
        for key in self.lock().keys() {
            *counts.entry(key.account.clone()).or_default() += 1;
        }
        counts
    }

    /// Enters a task; nothing when it is under way already.
    fn enter(&self, key: &TaskKey) -> Option<Arc<Signals>> {
        let mut tasks = self.lock();
        if tasks.contains_key(key) {
            return None;
        }
        let signals = Signals { changed: Notify::new(), stop: self.stop.clone() };
        let signals = Arc::new(signals);
        tasks.insert(key.clone(), Arc::clone(&signals));
        Some(signals)
    }

    fn leave(&self, key: &TaskKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<TaskKey, Arc<Signals>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a task that was taken is driven.
pub trait Drives: Send + Sync {
    /// Brings a task as far as it can come now.
    fn drive(&self, key: &TaskKey, signals: &Arc<Signals>) -> impl Future<Output = Left> + Send;
}

/// Beside the schedule: what is not polled does not go on.
impl<D: Desk, H: Hands> Drives for Driver<'_, D, H> {
    async fn drive(&self, key: &TaskKey, signals: &Arc<Signals>) -> Left {
        self.walk(key, signals).await
    }
}

/// Drives what is due, so many tasks at a time.
pub struct Schedule<'a, D, W> {
    pub desk: &'a D,
    pub drives: &'a W,
    pub clock: &'a dyn Clock,
    pub under_way: &'a UnderWay,
    pub at_once: usize,
    /// How long it sleeps at the most: other nodes may have brought work.
    pub longest_sleep: Duration,
}

impl<D, W> fmt::Debug for Schedule<'_, D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule").field("at_once", &self.at_once).finish_non_exhaustive()
    }
}

/// What the last look showed.
#[derive(Default)]
struct Seen {
    /// Whether tasks wait for a place.
    some_wait: bool,
    /// The account that it came to.
    looked_to: Option<AccountId>,
}

/// What the schedule waits for.
enum Turn {
    Stop,
    Found(Result<Due, DeskError>),
    Left(Left),
    Woken,
    Time,
}

type Looking<'a> = Option<BoxFuture<'a, Result<Due, DeskError>>>;
type Walks<'a> = FuturesUnordered<BoxFuture<'a, Left>>;

impl<D: Desk, W: Drives> Schedule<'_, D, W> {
    /// Goes on until the node ends, and then until its drivers have given up what they hold.
    pub async fn run(&self) {
        let mut walks: Walks<'_> = FuturesUnordered::new();
        let mut looking: Looking<'_> = None;
        let mut look_at = self.clock.now();
        let mut seen = Seen::default();
        loop {
            let now = self.clock.now();
            let free = self.at_once.saturating_sub(walks.len());
            if looking.is_none() && free != 0 && look_at <= now {
                looking = Some(self.desk.take_due(self.take(now, free, &seen)).boxed());
                look_at = now.plus_millis(millis(self.longest_sleep));
            }
            // With no place free there is nothing to look for before one is.
            let sleep = if free == 0 { self.longest_sleep } else { span(now, look_at) };
            match self.turn(&mut looking, &mut walks, sleep).await {
                Turn::Stop => break,
                Turn::Found(found) => {
                    looking = None;
                    look_at = look_at.min(self.found(found, &mut seen, &walks));
                }
                // There is a place for those who wait for one.
                Turn::Left(_) if seen.some_wait => look_at = self.clock.now(),
                Turn::Left(Left::Waiting(until)) => look_at = look_at.min(until),
                Turn::Left(Left::Over | Left::Missing | Left::Trouble | Left::Stopped) => {}
                // What was slept is over, even if somebody set the clock back meanwhile.
                Turn::Woken | Turn::Time => look_at = self.clock.now(),
            }
        }
        while walks.next().await.is_some() {}
    }

    fn take(&self, now: Timestamp, free: usize, seen: &Seen) -> TaskTake {
        TaskTake {
            now,
            until: now.plus_millis(TAKEN_MS),
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            under_way: self.under_way.by_account(),
            after: seen.looked_to.clone(),
        }
    }

    async fn turn<'w>(
        &self,
        looking: &mut Looking<'w>,
        walks: &mut Walks<'w>,
        sleep: Duration,
    ) -> Turn {
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
                () = self.under_way.stop.cancelled() => Turn::Stop,
                found = look, if is_looking => Turn::Found(found),
                Some(left) = walks.next(), if !walks.is_empty() => Turn::Left(left),
                () = self.under_way.wake.notified() => Turn::Woken,
            }
        };
        tokio::time::timeout(sleep, turn).await.unwrap_or(Turn::Time)
    }

    /// Drives what was found, and says when to look again.
    fn found<'w>(
        &'w self,
        found: Result<Due, DeskError>,
        seen: &mut Seen,
        walks: &Walks<'w>,
    ) -> Timestamp {
        let now = self.clock.now();
        let Due { taken, next } = match found {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(error = %error, "could not look for tasks that are due");
                return now.plus_millis(TROUBLE_MS);
            }
        };
        let (before, number) = (walks.len(), taken.tasks.len());
        for key in taken.tasks {
            if let Some(signals) = self.under_way.enter(&key) {
                walks.push(self.walk(key, signals).boxed());
            }
        }
        let is_entered = walks.len() - before == number;
        *seen = Seen { some_wait: taken.some_wait, looked_to: taken.looked_to };
        if seen.some_wait && !is_entered {
            // What is under way already needed no place.
            return now;
        }
        next.unwrap_or_else(|| now.plus_millis(millis(self.longest_sleep)))
    }

    async fn walk(&self, key: TaskKey, signals: Arc<Signals>) -> Left {
        // It is left also when the walk panics or is dropped.
        let _entered = Entered { under_way: self.under_way, key: &key };
        self.drives.drive(&key, &signals).await
    }
}

struct Entered<'a> {
    under_way: &'a UnderWay,
    key: &'a TaskKey,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.under_way.leave(self.key);
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// From now until then, in whole milliseconds and never too short.
fn span(now: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(until.millis_since(now) + 1)
}

/// How long a node sleeps at the most: others may have brought work to the same store.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Each task apart from the others, so that none of them waits for the work of another.
struct Apart {
    engine: Engine,
}

impl Drives for Apart {
    async fn drive(&self, key: &TaskKey, signals: &Arc<Signals>) -> Left {
        let (engine, key, signals) = (self.engine.clone(), key.clone(), Arc::clone(signals));
        let driving = self.engine.inner.background.spawn(async move {
            let desk = StoreDesk { engine: engine.clone() };
            let hands = StepHands { engine: engine.clone() };
            let node = engine.inner.node.to_string();
            let clock = &*engine.inner.clock;
            let driver = Driver { desk: &desk, hands: &hands, clock, node: &node };
            Box::pin(driver.walk(&key, &signals)).await
        });
        driving.await.unwrap_or_else(|error| {
            tracing::error!(error = %error, "task driver panicked; the task will be retried");
            Left::Trouble
        })
    }
}

impl Engine {
    /// Drives the tasks of the store until this node ends.
    pub fn drive_tasks(&self) {
        let engine = self.clone();
        let _driving = self.inner.background.spawn(async move {
            let schedule = Schedule {
                desk: &StoreDesk { engine: engine.clone() },
                drives: &Apart { engine: engine.clone() },
                clock: &*engine.inner.clock,
                under_way: &engine.inner.driven,
                at_once: engine.inner.limits.tasks,
                longest_sleep: LONGEST_SLEEP,
            };
            schedule.run().await;
        });
    }
}
