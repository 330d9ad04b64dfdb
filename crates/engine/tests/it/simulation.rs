//! The driver and the scheduler in simulated worlds: everything that can go wrong does, in an order
//! that a seed repeats.
//!
//! A seed that fails is replayed with
//! `JURAT_SIMULATE=<seed> cargo nextest run -p jurat-engine -E 'test(one_world)' --no-capture`.

mod chance;
mod check;
mod desk;
mod hands;
mod plan;
mod world;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use self::{
    check::{Report, check},
    plan::{BEGINNING, Plan, Weather},
    world::World,
};

/// How many worlds every run of the tests visits; `just simulate` visits more.
const WORLDS: u64 = 500;

/// A number that whoever runs the tests may set.
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
    // What is still under way is gone before the world is looked at.
    drop(runtime);
    world
}

/// One node, one task that has a minute, and a desk that is always there.
fn quiet() -> Plan {
    let mut plan = Plan::new(4);
    plan.nodes = vec![Vec::new()];
    plan.tasks.truncate(1);
    (plan.slow, plan.lost, plan.twice) = (0, 0, 0);
    let terms = &mut plan.tasks[0].terms;
    terms.budget.time_ms = 60_000;
    terms.expires_at = BEGINNING.plus_millis(62_000);
    plan
}

/// Visits worlds on all cores and returns how calm and stormy ones ended.
fn visit_all(seeds: std::ops::Range<u64>) -> [Report; 2] {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let one = || {
        let mut sums = [Report::default(); 2];
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seeds.end <= seed {
                return sums;
            }
            let (plan, checked, _) = visit(seed);
            let report = checked.unwrap_or_else(|wrong| {
                panic!(
                    "world {seed}: {wrong}\nreplay it with JURAT_SIMULATE={seed} cargo nextest run \
                     -p jurat-engine -E 'test(one_world_that_is_named)' --no-capture"
                )
            });
            sums[usize::from(plan.weather == Weather::Storm)].add(&report);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let mut sums = [Report::default(); 2];
        for worker in workers {
            let [calm, storm] = worker.join().unwrap();
            sums[0].add(&calm);
            sums[1].add(&storm);
        }
        sums
    })
}

#[test]
fn whatever_goes_wrong_tasks_end_once_and_within_their_contract() {
    many(told().unwrap_or(WORLDS));
}

/// Visits so many worlds, and says how many of their tasks ended well.
#[expect(clippy::print_stdout, reason = "whoever visits many worlds wants to know how they ended")]
fn many(worlds: u64) {
    let [calm, storm] = visit_all(0..worlds);
    println!("calm: {calm:?}\nstorm: {storm:?}");
    assert!(calm.tasks * 95 <= calm.finalized * 100, "too few ended well: {calm:?}");
    assert!(storm.tasks * 25 <= storm.finalized * 100, "too few ended well: {storm:?}");
    assert!(0 < storm.equivocations, "nobody was seen to say two things: {storm:?}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in [1, 2, 3, 5, 8, 13, 21] {
        assert_eq!(visit(seed).2, visit(seed).2, "world {seed}");
    }
}

#[test]
fn a_desk_that_takes_nothing_is_not_besieged() {
    let world = live(Plan { is_read_only: true, ..quiet() });
    let writes = world.writes.load(Ordering::SeqCst);
    // It is tried again and again, and no more than a few times in each of its seventy seconds.
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
    // Nobody asks for those who can work where there is nothing to give out.
    let asks = world.asks.load(Ordering::SeqCst);
    let renewals = story.matches("Renewed").count();
    assert!(asks <= 8 && 20 <= renewals, "{asks} questions, {renewals} renewals\n{story}");
}

/// For whoever looks into one world: prints its story.
#[test]
fn one_world_that_is_named() {
    one(told().unwrap_or(0));
}

#[expect(clippy::print_stdout, reason = "its story is what it is for")]
fn one(seed: u64) {
    let (plan, checked, story) = visit(seed);
    println!("{plan:#?}\n{story}\n{checked:?}");
    assert!(checked.is_ok(), "{checked:?}");
}
