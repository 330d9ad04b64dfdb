//! The plan of a simulated world: its executors, its tasks, and its faults.

mod order;

use jurat_core::time::Timestamp;

pub(super) use self::order::{Asked, Order, Wish};
use super::chance::Chance;

/// When the worlds start.
pub(super) const BEGINNING: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// When all mishaps are over.
pub(super) const HEALED: u64 = 20_000;

/// How bad a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// Honest executors, and few faults.
    Calm,
    /// Some faults.
    Showers,
    /// All kinds of faults.
    Storm,
}

impl Weather {
    /// A percentage, scaled by the weather.
    pub(super) const fn of_hundred(self, in_storm: u64) -> u64 {
        match self {
            Self::Calm => 0,
            Self::Showers => in_storm / 3,
            Self::Storm => in_storm,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) weather: Weather,
    pub(super) executors: Vec<Character>,
    pub(super) nodes: Vec<Vec<Mishap>>,
    pub(super) matters: Vec<Matter>,
    pub(super) tasks: Vec<Order>,
    /// When the store does not answer.
    pub(super) outages: Vec<(u64, u64)>,
    /// The percentages of messages to the store that are slow, lost on the way back, or repeated.
    pub(super) slow: u64,
    pub(super) lost: u64,
    pub(super) twice: u64,
    /// The percentage of calls that fail because of their node.
    pub(super) ours: u64,
    /// How long it takes to learn who can work.
    pub(super) probe_ms: u64,
    /// Whether the store refuses all writes.
    pub(super) is_read_only: bool,
}

/// The subject of tasks: tasks on the same matter may reuse each other's decisions.
#[derive(Debug, Clone)]
pub(super) struct Matter {
    pub(super) rule: Rule,
    /// The decision on it before the world started.
    pub(super) before: Option<Before>,
}

/// How a candidate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Everybody can see whether it is right.
    Plain,
    /// It is compared with other answers, and with earlier decisions.
    Compared { prior: bool },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    pub(super) is_right: bool,
    /// When it is disputed.
    pub(super) deprecated_at: Option<u64>,
}

/// The character of an executor. The numbers are percentages.
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
    /// When it is paused, because it failed too often.
    pub(super) rests: (u64, u64),
}

impl Character {
    /// An executor without faults.
    pub(super) fn honest(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            independence: name.to_owned(),
            fails: 0,
            hangs: 0,
            wrong: 0,
            lies: 0,
            inconclusive: 0,
            equivocates: 0,
            slowest_ms: 0,
            dies_at: None,
            rests: (0, 0),
        }
    }
}

/// What happens to a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mishap {
    /// It disappears suddenly, and returns after this time.
    Crash { after: u64, back_after: u64 },
    /// It is told to stop, and returns.
    Stop { after: u64, back_after: u64 },
    /// It is suspended for this time, without noticing.
    Pause { after: u64, span: u64 },
    /// Its clock is set ahead or back.
    Clock { after: u64, ahead_ms: i64 },
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed.wrapping_mul(0x5851_F42D_4C95_7F2D) ^ 0x1405_7B7E);
        let weather = match seed % 4 {
            0 => Weather::Calm,
            1 => Weather::Showers,
            _ => Weather::Storm,
        };
        let is_calm = weather == Weather::Calm;
        let some = |chance: &mut Chance, most: u64| chance.between(0, weather.of_hundred(most));
        let few = if chance.percent(20) { 1 } else { 2 };
        let count = chance.between(if is_calm { 4 } else { few }, 6);
        let executors: Vec<_> =
            (0..count).map(|index| character(&mut chance, index, weather)).collect();
        let nodes: Vec<_> =
            (0..chance.between(1, 3)).map(|_| mishaps(&mut chance, weather)).collect();
        let matters: Vec<_> = (0..2).map(|_| matter(&mut chance, is_calm)).collect();
        let outages = (0..some(&mut chance, 3)).map(|_| {
            let from = chance.between(0, 12_000);
            (from, from + chance.between(10, 3_000))
        });
        let outages = outages.collect();
        let (slow, lost, twice) =
            (some(&mut chance, 20) + 1, some(&mut chance, 10) + 1, some(&mut chance, 10) + 1);
        let mut plan = Self {
            seed,
            weather,
            executors,
            nodes,
            matters,
            tasks: Vec::new(),
            outages,
            slow,
            lost,
            twice,
            ours: some(&mut chance, 15),
            probe_ms: if !is_calm && seed.is_multiple_of(5) { 1_500 } else { 0 },
            is_read_only: false,
        };
        plan.tasks = (0..chance.between(1, 3)).map(|_| plan.order(&mut chance)).collect();
        if weather == Weather::Storm && seed % 8 == 3 {
            plan.be_two_faced(&mut chance);
        }
        plan
    }

    /// Nodes that pause while voters answer, and voters that answer each node differently.
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
            task.wishes.retain(|it| it.what != Asked::Cancel);
        }
    }
}

fn matter(chance: &mut Chance, is_calm: bool) -> Matter {
    let rule = match chance.between(0, 9) {
        0..5 => Rule::Plain,
        5..7 => Rule::Compared { prior: false },
        _ => Rule::Compared { prior: true },
    };
    let is_right = is_calm || chance.percent(60);
    let deprecated_at = chance.percent(30).then(|| chance.between(0, 6_000));
    let before = chance.percent(35).then_some(Before { is_right, deprecated_at });
    Matter { rule, before }
}

fn character(chance: &mut Chance, index: u64, weather: Weather) -> Character {
    let is_calm = weather == Weather::Calm;
    let mut some = |one_in: u64, most: u64| {
        if chance.percent(weather.of_hundred(100 / one_in)) { chance.between(1, most) } else { 0 }
    };
    let (fails, hangs, wrong) = (some(3, 60), some(5, 30), some(3, 100));
    let (lies, inconclusive, equivocates) = (some(4, 100), some(4, 60), some(4, 100));
    let mut is_so = |in_storm: u64| chance.percent(weather.of_hundred(in_storm));
    let (is_slow, dies, rests) = (is_so(25), is_so(15), is_so(20));
    Character {
        name: format!("executor-{index}"),
        independence: format!("model-{}", chance.between(0, if is_calm { 9 } else { 3 })),
        fails,
        hangs,
        wrong,
        lies,
        inconclusive,
        equivocates,
        slowest_ms: if is_slow { 6_000 } else { 150 },
        dies_at: dies.then(|| chance.between(0, 8_000)),
        rests: if rests {
            let from = chance.between(0, 5_000);
            (from, from + chance.between(100, 5_000))
        } else {
            (0, 0)
        },
    }
}

/// The times are relative: each mishap follows the previous one after its span.
fn mishaps(chance: &mut Chance, weather: Weather) -> Vec<Mishap> {
    let count = match weather {
        Weather::Calm => 0,
        Weather::Showers => chance.between(0, 2),
        Weather::Storm => chance.between(0, 4),
    };
    let mishap = |_| {
        let after = chance.between(1, 3_000);
        match chance.between(0, 3) {
            0 => Mishap::Crash { after, back_after: chance.between(1, 1_500) },
            1 => Mishap::Stop { after, back_after: chance.between(1, 1_500) },
            2 => Mishap::Pause { after, span: chance.between(1, 2_500) },
            _ => {
                let far = i64::try_from(chance.between(100, 3_000)).unwrap();
                Mishap::Clock { after, ahead_ms: if chance.percent(50) { far } else { -far } }
            }
        }
    };
    (0..count).map(mishap).collect()
}
