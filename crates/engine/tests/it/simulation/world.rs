//! A simulated world: nodes that run the real scheduler and driver, with a store and executors of
//! its own, in simulated time.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use jurat_core::{
    canonical::digest_json,
    executor::session::BUILTIN_SESSION,
    id::AccountId,
    task::{Task, TaskEvent, TaskKey, TaskRole, VoterReliability, knowledge::KnowledgeKey},
    time::Timestamp,
};
use jurat_engine::{
    Clock,
    tasks::{ProposeOrder, TaskSnapshot, TasksInFlight, VoteOrder},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    chance::Chance,
    node::Node,
    plan::{BEGINNING, Before, HEALED, Order, Plan, Rule},
    shelf::Kept,
    store::SharedShelf,
    workers::right,
};

/// When a world is checked for the last time.
const END: u64 = 70_000;

/// A call of an executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) at: u64,
    pub(super) task: TaskKey,
    pub(super) role: TaskRole,
    pub(super) executor: String,
    pub(super) execution_id: String,
    /// The digest of the request.
    pub(super) content: String,
    /// How many other answers, and earlier decisions, it was shown.
    pub(super) compared: (usize, usize),
}

impl Call {
    pub(super) fn propose(order: &ProposeOrder) -> Self {
        Self {
            at: 0,
            task: order.key.clone(),
            role: TaskRole::Propose,
            executor: order.executor.clone(),
            execution_id: order.execution_id.clone(),
            content: digest_json(&order.snapshot.contract),
            compared: (0, 0),
        }
    }

    /// There may be more earlier decisions than at the first request, so they are not part of the
    /// content.
    pub(super) fn verify(
        order: &VoteOrder,
        others: &[(String, Value)],
        before: &[(String, Value)],
    ) -> Self {
        let candidate = &order.candidate;
        let others_as_json: Vec<Value> = others.iter().map(|it| json!([it.0, it.1])).collect();
        let refs: Vec<&str> = candidate.evidence.refs.iter().map(|it| it.digest.as_str()).collect();
        Self {
            at: 0,
            task: order.key.clone(),
            role: TaskRole::Verify,
            executor: order.voter.clone(),
            execution_id: order.execution_id.clone(),
            content: digest_json(&json!([
                candidate.candidate_id,
                candidate.execution_id,
                candidate.output,
                refs,
                others_as_json
            ])),
            compared: (others.len(), before.len()),
        }
    }
}

/// The fate of one message to the store.
#[derive(Debug)]
pub(super) struct Trip {
    pub(super) there: Duration,
    pub(super) back: Duration,
    /// The delay after which it arrives a second time.
    pub(super) again: Option<Duration>,
    pub(super) is_lost: bool,
}

/// A machine, as the rest of the world sees it.
#[derive(Debug, Default)]
pub(super) struct Machine {
    /// How far its clock was set ahead.
    pub(super) ahead_ms: AtomicI64,
    /// The tasks that its process drives.
    pub(super) under_way: Mutex<Arc<TasksInFlight>>,
    /// When it was suspended.
    pub(super) pauses: Mutex<Vec<(u64, u64)>>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) shelf: SharedShelf,
    pub(super) machines: Vec<Machine>,
    pub(super) calls: Mutex<Vec<Call>>,
    /// How many writes were tried.
    pub(super) writes: AtomicU64,
    /// How many times a node asked who can work.
    pub(super) asks: AtomicU64,
    chance: Mutex<Chance>,
    start: Instant,
}

impl World {
    /// Runs a world until all its tasks have ended, or its time has.
    pub(super) async fn run(plan: Plan) -> Arc<Self> {
        let world = Arc::new(Self {
            chance: Mutex::new(Chance::new(plan.seed)),
            machines: plan.nodes.iter().map(|_| Machine::default()).collect(),
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
            world.remember(&order);
            spawn(Arc::clone(&world).submit(index, order));
        }
        while world.millis() < END && !world.is_all_over() {
            pause(Duration::from_millis(250)).await;
        }
        world
    }

    pub(super) fn millis(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap()
    }

    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.chance.lock())
    }

    pub(super) fn note(&self, call: Call) {
        self.calls.lock().push(Call { at: self.millis(), ..call });
    }

    pub(super) fn is_desk_down(&self) -> bool {
        let now = self.millis();
        self.plan.outages.iter().any(|(from, until)| (*from..*until).contains(&now))
    }

    pub(super) fn rule_of(&self, filed: &TaskSnapshot) -> Rule {
        self.plan.matters[usize::try_from(matter_of(filed)).unwrap()].rule
    }

    /// How often each voter is right.
    pub(super) fn weights(&self) -> VoterReliability {
        let executors = self.plan.executors.iter().map(|it| it.name.clone());
        executors.chain([BUILTIN_SESSION.to_owned()]).map(|it| (it, 0.8)).collect()
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

    /// Everything that happened, a line for each event and each call.
    pub(super) fn story(&self) -> String {
        let shelf = self.shelf.lock();
        let line = |key: &TaskKey, at: &Timestamp, event: &TaskEvent| {
            format!("{:>6} {} {event:?}\n", at.millis() - BEGINNING.millis(), key.id)
        };
        let tasks = shelf.tasks.iter();
        let events =
            tasks.flat_map(|(key, kept)| kept.events.iter().map(move |(at, it)| line(key, at, it)));
        let calls = self.calls.lock();
        let calls = calls.iter().map(|it| {
            let Call { at, task, role, executor, execution_id, compared, .. } = it;
            format!("{at:>6} {} {role} {executor} {execution_id} {compared:?}\n", task.id)
        });
        events.chain(calls).collect()
    }

    fn is_all_over(&self) -> bool {
        let shelf = self.shelf.lock();
        let is_over = |it: &Kept| it.filed.task.is_over() && it.due_at.is_none();
        shelf.tasks.len() == self.plan.tasks.len() && shelf.tasks.values().all(is_over)
    }

    /// Stores the earlier decision on the matter of a task.
    fn remember(self: &Arc<Self>, order: &Order) {
        let matter = &self.plan.matters[order.matter];
        let Some(Before { is_right, deprecated_at }) = matter.before else { return };
        let task = format!("before-{}", order.matter);
        let key = KnowledgeKey { task_id: task.clone(), epoch: 1 };
        let mut shelf = self.shelf.lock();
        if shelf.output(&key).is_some() {
            return;
        }
        let answer = if is_right { right(order.matter as u64) } else { 1 };
        shelf.remember(&task, &order.contract(matter.rule), answer);
        let (world, Some(after)) = (Arc::clone(self), deprecated_at) else { return };
        spawn(async move {
            pause(Duration::from_millis(after)).await;
            world.shelf.lock().deprecate(&key, BEGINNING.plus_millis(after));
        });
    }

    async fn submit(self: Arc<Self>, index: usize, order: Order) {
        pause(Duration::from_millis(order.at)).await;
        let key = TaskKey { account: AccountId::admin(), id: format!("task-{index}") };
        let now = BEGINNING.plus_millis(self.millis());
        let contract = order.contract(self.plan.matters[order.matter].rule);
        let filed = TaskSnapshot {
            task: Task::created(&key.id, order.terms, now),
            seq: 1,
            contract: Arc::new(contract),
            roster: order.panel,
            submitted_by: None,
        };
        self.shelf.lock().tasks.insert(key.clone(), Kept::new(filed, now));
        for (place, wish) in order.wishes.into_iter().enumerate() {
            spawn(Arc::clone(&self).grant(key.clone(), place, wish));
        }
    }
}

/// The clock of a node, which is slightly wrong, and sometimes very wrong.
#[derive(Debug)]
pub(super) struct SimClock {
    pub(super) world: Arc<World>,
    pub(super) node: usize,
    pub(super) skew_ms: u64,
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let millis = self.world.millis();
        let ahead = self.world.machines[self.node].ahead_ms.load(Ordering::SeqCst);
        let ahead = if millis < HEALED { ahead } else { 0 };
        let now = BEGINNING.plus_millis(millis + self.skew_ms).millis();
        Timestamp::from_millis(now + ahead)
    }

    fn bits(&self) -> u128 {
        self.world.draw(Chance::bits)
    }
}

/// The matter of a task.
pub(super) fn matter_of(filed: &TaskSnapshot) -> u64 {
    filed.contract["inputs"]["matter"].as_u64().unwrap_or_default()
}

/// Runs work in the background, as long as its world exists.
pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    #[expect(clippy::disallowed_methods, reason = "the runtime of a world ends with it")]
    drop(tokio::spawn(work));
}

/// Lets simulated time pass.
pub(super) async fn pause(span: Duration) {
    jurat_engine::pause(span).await;
}
