//! What happens in a simulated world: who is there, what they are asked, and what goes wrong when.

use jurat_core::{
    task::{Aggregation, Budget, Mode, Renewal, Terms},
    time::Timestamp,
};

use super::chance::Chance;

/// When the worlds begin.
pub(super) const BEGINNING: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// How bad a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// Honest executors, and little goes wrong.
    Calm,
    /// Everything goes wrong.
    Storm,
}

#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) weather: Weather,
    pub(super) executors: Vec<Character>,
    pub(super) nodes: Vec<Vec<Mishap>>,
    pub(super) tasks: Vec<Order>,
    /// From when to when the desk does not answer.
    pub(super) outages: Vec<(u64, u64)>,
    /// Of a hundred messages to the desk so many are slow, lost on the way back, or come twice.
    pub(super) slow: u64,
    pub(super) lost: u64,
    pub(super) twice: u64,
    /// How long it takes to learn who can work.
    pub(super) probe_ms: u64,
    /// Whether nothing is ever written at the desk.
    pub(super) is_read_only: bool,
}

/// What an executor is like. The numbers are chances in a hundred.
#[derive(Debug, Clone)]
pub(super) struct Character {
    pub(super) name: String,
    pub(super) independence: String,
    pub(super) fails: u64,
    pub(super) hangs: u64,
    pub(super) wrong: u64,
    pub(super) lies: u64,
    pub(super) inconclusive: u64,
    pub(super) equivocates: u64,
    pub(super) slowest_ms: u64,
    pub(super) dies_at: Option<u64>,
    /// From when to when nobody asks it, because it failed too often.
    pub(super) rests: (u64, u64),
}

/// What happens to a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mishap {
    /// It is gone from one moment to the next, and comes back after so long.
    Crash { after: u64, back_after: u64 },
    /// It is told to end, and comes back.
    Stop { after: u64, back_after: u64 },
    /// It does nothing for so long, and knows nothing of it.
    Pause { after: u64, span: u64 },
}

#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) at: u64,
    pub(super) terms: Terms,
    pub(super) cancelled_after: Option<u64>,
}

/// By when all mishaps are over.
pub(super) const HEALED: u64 = 20_000;

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed.wrapping_mul(0x5851_F42D_4C95_7F2D) ^ 0x1405_7B7E);
        let weather = if seed.is_multiple_of(4) { Weather::Calm } else { Weather::Storm };
        let is_storm = weather == Weather::Storm;
        let some =
            |chance: &mut Chance, most: u64| if is_storm { chance.between(0, most) } else { 0 };
        let count = if is_storm { chance.between(2, 6) } else { chance.between(4, 6) };
        let executors = (0..count).map(|index| character(&mut chance, index, is_storm)).collect();
        let nodes = (0..chance.between(1, 3)).map(|_| mishaps(&mut chance, is_storm)).collect();
        let tasks =
            (0..chance.between(1, 3)).map(|_| order(&mut chance, is_storm, count)).collect();
        let outages = (0..some(&mut chance, 3)).map(|_| {
            let from = chance.between(0, 12_000);
            (from, from + chance.between(10, 3_000))
        });
        let outages = outages.collect();
        let (slow, lost, twice) =
            (some(&mut chance, 20) + 1, some(&mut chance, 10) + 1, some(&mut chance, 10) + 1);
        let probe_ms = if is_storm && seed.is_multiple_of(5) { 1_500 } else { 0 };
        let mut plan = Self {
            seed,
            weather,
            executors,
            nodes,
            tasks,
            outages,
            slow,
            lost,
            twice,
            probe_ms,
            is_read_only: false,
        };
        if is_storm && seed % 8 == 3 {
            plan.be_two_faced(&mut chance);
        }
        plan
    }

    /// Nodes that stand still while verifiers answer, and verifiers that answer each node otherwise.
    fn be_two_faced(&mut self, chance: &mut Chance) {
        for executor in &mut self.executors {
            (executor.fails, executor.hangs, executor.wrong, executor.dies_at) = (0, 0, 0, None);
            (executor.equivocates, executor.slowest_ms) = (50, 800);
        }
        self.nodes.resize(3, Vec::new());
        for mishaps in &mut self.nodes {
            let pause = |_| Mishap::Pause {
                after: chance.between(100, 900),
                span: chance.between(400, 1_500),
            };
            *mishaps = (0..6).map(pause).collect();
        }
        for task in &mut self.tasks {
            task.terms.lease_ms = 300;
            task.cancelled_after = None;
        }
    }
}

fn character(chance: &mut Chance, index: u64, is_storm: bool) -> Character {
    let mut some = |one_in: u64, most: u64| {
        if is_storm && chance.percent(100 / one_in) { chance.between(1, most) } else { 0 }
    };
    let (fails, hangs, wrong) = (some(3, 60), some(5, 30), some(3, 100));
    let (lies, inconclusive, equivocates) = (some(4, 100), some(4, 60), some(4, 100));
    Character {
        name: format!("executor-{index}"),
        independence: format!("model-{}", chance.between(0, if is_storm { 3 } else { 9 })),
        fails,
        hangs,
        wrong,
        lies,
        inconclusive,
        equivocates,
        slowest_ms: if is_storm && chance.percent(25) { 6_000 } else { 150 },
        dies_at: (is_storm && chance.percent(15)).then(|| chance.between(0, 8_000)),
        rests: if is_storm && chance.percent(20) {
            let from = chance.between(0, 5_000);
            (from, from + chance.between(100, 5_000))
        } else {
            (0, 0)
        },
    }
}

/// The times are spans: each mishap comes so long after the one before.
fn mishaps(chance: &mut Chance, is_storm: bool) -> Vec<Mishap> {
    let count = if is_storm { chance.between(0, 4) } else { 0 };
    let mishap = |_| {
        let after = chance.between(1, 3_000);
        match chance.between(0, 2) {
            0 => Mishap::Crash { after, back_after: chance.between(1, 1_500) },
            1 => Mishap::Stop { after, back_after: chance.between(1, 1_500) },
            _ => Mishap::Pause { after, span: chance.between(1, 2_000) },
        }
    };
    (0..count).map(mishap).collect()
}

/// What a panel of so many can do.
fn order(chance: &mut Chance, is_storm: bool, executors: u64) -> Order {
    let quorum = u32::try_from(chance.between(1, 3.min(executors - 1))).unwrap();
    let more = u32::try_from(chance.between(0, 2)).unwrap();
    let small = |chance: &mut Chance, most| u32::try_from(chance.between(1, most)).unwrap();
    let at = chance.between(0, 2_000);
    let time_ms = chance.between(10_000, 30_000);
    let steps = u32::try_from(chance.between(0, 20)).unwrap() + quorum + 1;
    let verify = u64::from(quorum) + chance.between(0, 12);
    let (explore, finalize) = (chance.between(1, 8), chance.between(1, 3));
    let aggregations =
        [Aggregation::Quorum, Aggregation::ConfidenceWeighted, Aggregation::ReputationWeighted];
    let pick = usize::try_from(chance.between(0, 2)).unwrap();
    let terms = Terms {
        mode: Mode::OneShot,
        lease_ms: chance.between(200, 2_000),
        propose_at_once: small(chance, 2),
        verify_at_once: small(chance, 3),
        max_proposers: small(chance, 3),
        topk: small(chance, 3),
        no_new_evidence_rounds: small(chance, 3),
        max_verifiers: quorum + more,
        max_finalizers: 1,
        quorum,
        da_quorum: u32::from(chance.percent(30)),
        reveal_ms: chance.between(300, 4_000),
        max_repeats: 2,
        max_retries: u32::try_from(chance.between(0, 4)).unwrap(),
        backoff_ms: chance.between(50, 500),
        aggregation: aggregations[pick],
        budget: Budget {
            time_ms,
            max_steps: if is_storm { steps } else { 40 },
            cost_units: if is_storm { explore + verify + finalize } else { 100 },
            explore: if is_storm { explore } else { 20 },
            verify: if is_storm { verify } else { 40 },
            finalize,
            reuse_verify_time_ms: 1_000,
            reuse_verify_cost_units: 4,
            reuse_max_attempts: 1,
            renewal: Renewal::Lifetime,
        },
        window_ms: 1_000,
        expires_at: BEGINNING.plus_millis(at + chance.between(12_000, 40_000)),
    };
    let cancelled_after = (is_storm && chance.percent(10)).then(|| chance.between(0, 4_000));
    Order { at, terms, cancelled_after }
}
