//! The driver and the scheduler in simulated worlds: everything that can go wrong does, in an order
//! that a seed repeats.
//!
//! A seed that fails is replayed with
//! `JURAT_SIMULATE=<seed> cargo nextest run -p jurat-engine -E 'test(one_world)' --no-capture`.

mod caller;
mod chance;
mod check;
mod evidence;
mod node;
mod plan;
mod shelf;
mod store;
mod workers;
mod world;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jurat_core::task::{BudgetRenewal, DecisionMode};

use self::{
    check::{Report, check},
    plan::{BEGINNING, Matter, Plan, Rule, Weather},
    world::World,
};

/// How many worlds every run of the tests simulates; `just simulate` simulates more.
const WORLDS: u64 = 500;

/// A number that the environment may set.
fn told() -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test is told how many worlds to visit")]
    let told = std::env::var("JURAT_SIMULATE");
    told.ok()?.parse().ok()
}

fn visit(seed: u64) -> (Plan, Result<Report, String>, String) {
    let plan = Plan::new(seed);
    let world = live(plan.clone());
    let story = world.story();
    (plan, check(&world), story)
}

fn live(plan: Plan) -> Arc<World> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let world = runtime.block_on(World::run(plan));
    // Work in progress is dropped before the world is checked.
    drop(runtime);
    world
}

/// One node, one plain task with a minute of time, and a store that is always available.
fn quiet() -> Plan {
    let mut plan = Plan::new(4);
    plan.nodes = vec![Vec::new()];
    plan.tasks.truncate(1);
    plan.matters = vec![Matter { rule: Rule::Plain, before: None }; 2];
    (plan.slow, plan.lost, plan.twice) = (0, 0, 0);
    let task = &mut plan.tasks[0];
    task.at = 0;
    task.wishes.clear();
    task.terms.mode = DecisionMode::OneShot;
    task.terms.budget.renewal = BudgetRenewal::Lifetime;
    task.terms.budget.time_ms = 60_000;
    task.terms.expires_at = BEGINNING.plus_millis(62_000);
    plan
}

/// How the worlds of each weather ended, and their faults.
#[derive(Default)]
struct Visited {
    by_weather: [Report; 3],
    wrongs: Vec<String>,
}

impl Visited {
    fn add(&mut self, other: Self) {
        self.by_weather.iter_mut().zip(&other.by_weather).for_each(|(sum, it)| sum.add(it));
        self.wrongs.extend(other.wrongs);
    }
}

/// Simulates worlds on all cores.
fn visit_all(seeds: std::ops::Range<u64>) -> Visited {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let one = || {
        let mut visited = Visited::default();
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seeds.end <= seed {
                return visited;
            }
            let (plan, checked, _) = visit(seed);
            match checked {
                Ok(report) => visited.by_weather[plan.weather as usize].add(&report),
                Err(wrong) => visited.wrongs.push(format!("world {seed}: {wrong}")),
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let mut all = Visited::default();
        for worker in workers {
            all.add(worker.join().unwrap());
        }
        all
    })
}

#[test]
fn whatever_goes_wrong_tasks_end_once_and_within_their_contract() {
    many(told().unwrap_or(WORLDS));
}

/// Simulates this many worlds, prints how they ended, and checks that everything happened often
/// enough.
#[expect(clippy::print_stdout, reason = "whoever visits many worlds wants to know how they ended")]
fn many(worlds: u64) {
    let Visited { by_weather, wrongs } = visit_all(0..worlds);
    let (mut all, mut is_fair) = (Report::default(), true);
    for (weather, least) in [(Weather::Calm, 95), (Weather::Showers, 45), (Weather::Storm, 18)] {
        let report = &by_weather[weather as usize];
        let Report { tasks, finalized, events, calls, .. } = report;
        println!("{weather:?}: {tasks} tasks, {finalized} decided, {events} events, {calls} calls");
        is_fair &= tasks * least <= finalized * 100;
        all.add(report);
    }
    for (what, worlds) in &all.seen {
        println!("{worlds:>6} of {}: {what}", all.worlds);
    }
    assert!(
        wrongs.is_empty(),
        "{}\nreplay one with JURAT_SIMULATE=<world> cargo nextest run -p jurat-engine -E \
         'test(one_world_by_its_seed)' --no-capture",
        wrongs.join("\n")
    );
    if worlds < WORLDS {
        // A single world is not a sample.
        return;
    }
    assert!(is_fair, "too few tasks were decided");
    let missed = all.missed();
    assert!(missed.is_empty(), "what happens too seldom is not tested:\n{}", missed.join("\n"));
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in 0..16 {
        let (first, again) = (visit(seed), visit(seed));
        assert_eq!(first.2, again.2, "world {seed}");
        let seen = [first.1, again.1].map(|it| it.map(|report| report.seen));
        assert_eq!(seen[0], seen[1], "world {seed}");
    }
}

#[test]
fn a_read_only_store_is_not_flooded() {
    let world = live(Plan { is_read_only: true, ..quiet() });
    let writes = world.writes.load(Ordering::SeqCst);
    // It is tried repeatedly, but only a few times in each of its seventy seconds.
    assert!((30..250).contains(&writes), "{writes} tries");
}

#[test]
fn leases_hold_however_long_it_takes_to_learn_who_can_work() {
    let mut plan = Plan { probe_ms: 3_000, ..quiet() };
    plan.executors.iter_mut().for_each(|it| it.slowest_ms = 6_000);
    let terms = &mut plan.tasks[0].terms;
    (terms.lease_ms, terms.quorum, terms.max_verifiers) = (1_000, 2, 2);
    (terms.propose_at_once, terms.verify_at_once, terms.max_proposers) = (2, 1, 3);
    (terms.topk, terms.no_new_evidence_rounds) = (3, 3);
    let world = live(plan);
    let story = world.story();
    assert!(check(&world).is_ok(), "{story}");
    assert!(story.contains("Finalized"), "{story}");
    assert!(!story.contains("LeaseRanOut"), "{story}");
    // Nobody asks who can work if there is no work.
    let asks = world.asks.load(Ordering::SeqCst);
    let renewals = story.matches("Renewed").count();
    assert!(asks <= 8 && 20 <= renewals, "{asks} questions, {renewals} renewals\n{story}");
}

/// For debugging one world: prints its story.
#[test]
fn one_world_by_its_seed() {
    one(told().unwrap_or(0));
}

#[expect(clippy::print_stdout, reason = "its story is what it is for")]
fn one(seed: u64) {
    let (plan, checked, story) = visit(seed);
    println!("{plan:#?}\n{story}\n{checked:?}");
    assert!(checked.is_ok(), "{checked:?}");
}
