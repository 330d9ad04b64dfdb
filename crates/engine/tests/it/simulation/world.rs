//! A simulated world: nodes that run the real scheduler and driver, on a desk and with executors of
//! its own, in a time that nobody waits for.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, atomic::AtomicU64},
    task::{Context, Poll},
    time::Duration,
};

use jurat_core::{
    id::AccountId,
    task::{Event, Task},
    time::Timestamp,
};
use jurat_engine::{
    Clock,
    task::{Driver, Filed, Panel, ProposeOrder, Schedule, TaskKey, UnderWay, VerifyOrder, cancel},
};
use tokio::time::Instant;

use super::{
    chance::Chance,
    desk::{Kept, SharedShelf, SimDesk},
    hands::SimHands,
    plan::{BEGINNING, HEALED, Mishap, Order, Plan},
};

/// When a world is looked at for the last time.
const END: u64 = 70_000;

/// An executor was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) task: TaskKey,
    pub(super) executor: String,
    pub(super) execution_id: String,
}

impl Call {
    pub(super) fn propose(order: &ProposeOrder) -> Self {
        let (task, executor) = (order.key.clone(), order.executor.clone());
        Self { task, executor, execution_id: order.execution_id.clone() }
    }

    pub(super) fn verify(order: &VerifyOrder) -> Self {
        let (task, executor) = (order.key.clone(), order.verifier.clone());
        Self { task, executor, execution_id: order.execution_id.clone() }
    }
}

/// What happens to one message to the desk.
#[derive(Debug)]
pub(super) struct Trip {
    pub(super) there: Duration,
    pub(super) back: Duration,
    /// After how long it comes a second time.
    pub(super) again: Option<Duration>,
    pub(super) is_lost: bool,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) shelf: SharedShelf,
    pub(super) calls: Mutex<Vec<Call>>,
    /// How often somebody tried to write.
    pub(super) writes: AtomicU64,
    /// How often somebody asked who can work.
    pub(super) asks: AtomicU64,
    chance: Mutex<Chance>,
    start: Instant,
}

impl World {
    /// Lets a world run until all its tasks are over, or its time is.
    pub(super) async fn run(plan: Plan) -> Arc<Self> {
        let world = Arc::new(Self {
            chance: Mutex::new(Chance::new(plan.seed)),
            plan,
            shelf: SharedShelf::default(),
            calls: Mutex::default(),
            writes: AtomicU64::default(),
            asks: AtomicU64::default(),
            start: Instant::now(),
        });
        for (index, mishaps) in world.plan.nodes.iter().cloned().enumerate() {
            spawn(Node { world: Arc::clone(&world), index }.live(mishaps));
        }
        for (index, order) in world.plan.tasks.iter().cloned().enumerate() {
            spawn(Arc::clone(&world).submit(index, order));
        }
        while world.millis() < END && !world.is_all_over() {
            pause(Duration::from_millis(100)).await;
        }
        world
    }

    pub(super) fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap()
    }

    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.chance.lock().unwrap())
    }

    pub(super) fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    pub(super) fn is_desk_down(&self) -> bool {
        let now = self.millis();
        self.plan.outages.iter().any(|(from, until)| (*from..*until).contains(&now))
    }

    pub(super) fn trip(&self) -> Trip {
        let is_healed = HEALED < self.millis();
        let Plan { slow, lost, twice, .. } = self.plan;
        self.draw(|chance| {
            let mut span = |is_slow: bool| {
                let most = if is_slow && !is_healed { 600 } else { 4 };
                Duration::from_millis(chance.between(0, most))
            };
            let quick = (span(false), span(false));
            let slow_one = span(true);
            let is_slow = chance.percent(slow);
            Trip {
                there: if is_slow { slow_one } else { quick.0 },
                back: quick.1,
                again: chance.percent(twice).then_some(slow_one),
                is_lost: chance.percent(lost) && !is_healed,
            }
        })
    }

    /// All that happened, a line for each event.
    pub(super) fn story(&self) -> String {
        let shelf = self.shelf.lock().unwrap();
        let line = |key: &TaskKey, at: &Timestamp, event: &Event| {
            format!("{:>6} {} {event:?}\n", at.millis_since(BEGINNING), key.id)
        };
        let tasks = shelf.tasks.iter();
        tasks
            .flat_map(|(key, kept)| kept.events.iter().map(move |(at, it)| line(key, at, it)))
            .collect()
    }

    fn is_all_over(&self) -> bool {
        let shelf = self.shelf.lock().unwrap();
        let is_over = |it: &Kept| it.filed.task.is_over() && it.due_at.is_none();
        shelf.tasks.len() == self.plan.tasks.len() && shelf.tasks.values().all(is_over)
    }

    async fn submit(self: Arc<Self>, index: usize, order: Order) {
        pause(Duration::from_millis(order.at)).await;
        let key = TaskKey { account: AccountId::admin(), id: format!("task-{index}") };
        let now = BEGINNING.plus_millis(self.millis());
        let event = Event::Created { terms: Box::new(order.terms.clone()) };
        let kept = Kept {
            filed: Filed {
                task: Task::created(&key.id, order.terms, now),
                seq: 1,
                contract: Arc::default(),
                panel: Panel {
                    executors: Vec::new(),
                    verifiers: Vec::new(),
                    profile: "default".to_owned(),
                    has_node: false,
                    has_spare: false,
                    attempt: 1,
                },
            },
            events: vec![(now, event)],
            due_at: Some(now),
            candidates: BTreeMap::default(),
            ballots: BTreeMap::default(),
        };
        self.shelf.lock().unwrap().tasks.insert(key.clone(), kept);
        let Some(after) = order.cancelled_after else { return };
        pause(Duration::from_millis(after)).await;
        let desk = SimDesk { world: Arc::clone(&self) };
        let clock = SimClock { world: Arc::clone(&self), skew_ms: 0 };
        // The caller goes on until it is told how it ended.
        while cancel(&desk, &clock, &key, "enough").await.is_err() {}
    }
}

/// The clock of a node, which goes a little wrong.
#[derive(Debug)]
struct SimClock {
    world: Arc<World>,
    skew_ms: u64,
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        BEGINNING.plus_millis(self.world.millis() + self.skew_ms)
    }

    fn bits(&self) -> u128 {
        self.world.draw(Chance::bits)
    }
}

/// A machine on which one process after another runs.
struct Node {
    world: Arc<World>,
    index: usize,
}

impl Node {
    async fn live(self, mishaps: Vec<Mishap>) {
        let mut process = self.process();
        for mishap in mishaps {
            match mishap {
                Mishap::Crash { after, back_after } => {
                    process.run_for(after).await;
                    drop(process);
                    pause(Duration::from_millis(back_after)).await;
                    process = self.process();
                }
                Mishap::Stop { after, back_after } => {
                    process.run_for(after).await;
                    process.under_way.stop.cancel();
                    process.run_for(back_after).await;
                    process = self.process();
                }
                Mishap::Pause { after, span } => {
                    process.run_for(after).await;
                    pause(Duration::from_millis(span)).await;
                }
            }
        }
        process.running.await;
    }

    fn process(&self) -> Process {
        let world = Arc::clone(&self.world);
        let under_way = Arc::new(UnderWay::default());
        let (name, shared) = (format!("node-{}", self.index), Arc::clone(&under_way));
        let skew_ms = world.draw(|chance| chance.between(0, 20));
        let running = async move {
            let (desk, hands) =
                (SimDesk { world: Arc::clone(&world) }, SimHands { world: Arc::clone(&world) });
            let clock = SimClock { world, skew_ms };
            let driver = Driver { desk: &desk, hands: &hands, clock: &clock, node: &name };
            let schedule = Schedule {
                desk: &desk,
                drives: &driver,
                clock: &clock,
                under_way: &shared,
                at_once: 8,
                longest_sleep: Duration::from_secs(1),
            };
            schedule.run().await;
        };
        Process { under_way, running: Box::pin(running) }
    }
}

/// A process: what is not polled does not go on, and what is dropped is gone.
struct Process {
    under_way: Arc<UnderWay>,
    running: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Process {
    async fn run_for(&mut self, millis: u64) {
        let until = Duration::from_millis(millis);
        let running = Fused { running: &mut self.running };
        let _elapsed = tokio::time::timeout(until, running).await;
    }
}

/// Never ends, so that a process that ended by itself only waits.
struct Fused<'a> {
    running: &'a mut Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Future for Fused<'_> {
    type Output = std::convert::Infallible;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.running.as_mut().poll(context).is_ready() {
            *self.running = Box::pin(std::future::pending());
        }
        Poll::Pending
    }
}

/// Lets something happen beside all else, as long as its world is there.
pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    #[expect(clippy::disallowed_methods, reason = "the runtime of a world ends with it")]
    drop(tokio::spawn(work));
}

/// Lets simulated time go by.
pub(super) async fn pause(span: Duration) {
    let _elapsed = tokio::time::timeout(span, std::future::pending::<()>()).await;
}
