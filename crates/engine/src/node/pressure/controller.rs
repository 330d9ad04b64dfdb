//! Sets the rate of new rounds from the lag: no limit while the lag is short, then as much as keeps
//! it short.

use std::time::Duration;

/// How often the rate is adjusted, and how long a lag must last to count.
const WINDOW: Duration = Duration::from_millis(20);
/// The minimum number of samples that tell a lag from a hiccup.
const LOOKS: usize = 3;
/// After this time without a refusal the limit is lifted.
const CALM: Duration = Duration::from_secs(1);
/// The minimum rate, in rounds per second: so few are never too many.
const LEAST: f64 = 20.0;
/// The minimum share of the recent peak, which decays by half in 14 seconds.
const FLOOR: f64 = 0.25;
const FORGETS: f64 = 0.999;
/// The maximum decrease and increase of the rate in one window.
const DOWN: f64 = 0.1;
const UP: f64 = 0.04;
/// The increase while the capacity is still unknown.
const SEARCH: f64 = 0.25;

/// The sample since the last look.
#[derive(Debug, Clone, Copy)]
pub(super) struct LagSample {
    pub(super) elapsed: Duration,
    pub(super) lag: Duration,
    pub(super) begun: u64,
    pub(super) refused: u64,
}

#[derive(Debug)]
pub(super) struct RateController {
    target: Duration,
    rate: Option<f64>,
    window: LagWindow,
    /// The rounds per second that started in earlier windows.
    usual: f64,
    /// Their peak, which decays slowly.
    most: f64,
    calm: Duration,
    search: RateSearch,
}

/// How the right rate is found after a limit is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateSearch {
    /// The backlog is worked off.
    WorksOff,
    /// The rate grows fast until the lag exceeds the target again.
    Grows,
    Done,
}

/// The samples since the rate was set.
#[derive(Debug, Default)]
struct LagWindow {
    length: Duration,
    lags: Vec<Duration>,
    begun: u64,
    refused: u64,
}

impl RateController {
    pub(super) fn new(target: Duration) -> Self {
        Self {
            target,
            rate: None,
            window: LagWindow::default(),
            usual: 0.0,
            most: 0.0,
            calm: Duration::ZERO,
            search: RateSearch::Done,
        }
    }

    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// The new rate, in rounds per second; `None` for no limit.
    pub(super) fn next(&mut self, seen: LagSample) -> Option<f64> {
        let window = &mut self.window;
        window.length += seen.elapsed;
        window.lags.push(seen.lag);
        window.begun += seen.begun;
        window.refused += seen.refused;
        if WINDOW <= window.length && LOOKS <= window.lags.len() {
            let window = std::mem::take(window);
            self.set(&window);
        }
        self.rate
    }

    fn set(&mut self, window: &LagWindow) {
        let excess = window.excess(self.target);
        let usual = 0.9 * self.usual + 0.1 * window.begun_per_second();
        self.rate = match self.rate {
            Some(rate) => self.adjusted(rate, excess, window),
            None if 0.0 < excess => {
                self.calm = Duration::ZERO;
                self.search = RateSearch::WorksOff;
                // The rate before the lag grew is close to the capacity.
                Some((self.usual * 0.8).max(LEAST))
            }
            None => None,
        };
        self.usual = usual;
        self.most = usual.max(self.most * FORGETS);
    }

    fn adjusted(&mut self, rate: f64, excess: f64, window: &LagWindow) -> Option<f64> {
        self.calm = if window.refused == 0 { self.calm + window.length } else { Duration::ZERO };
        if CALM <= self.calm {
            return None;
        }
        self.search = match self.search {
            RateSearch::WorksOff if excess < 0.0 => RateSearch::Grows,
            RateSearch::Grows if 0.0 < excess => RateSearch::Done,
            same @ (RateSearch::WorksOff | RateSearch::Grows | RateSearch::Done) => same,
        };
        let step = match self.search {
            _ if 0.0 < excess => -DOWN * excess.min(1.0),
            // A rate that is not used up does not grow.
            _ if window.refused == 0 => 0.0,
            RateSearch::Grows => -SEARCH * excess,
            RateSearch::WorksOff | RateSearch::Done => -UP * excess,
        };
        // The refusals themselves can make the node late, and then fewer rounds would not help.
        Some((rate * (1.0 + step)).max(self.most * FLOOR).max(LEAST))
    }
}

impl LagWindow {
    /// How far the median lag exceeds the target, as a multiple of it; negative below.
    fn excess(&self, target: Duration) -> f64 {
        let mut lags = self.lags.clone();
        lags.sort_unstable();
        let middle = lags.get(lags.len() / 2).copied().unwrap_or_default();
        middle.as_secs_f64() / target.as_secs_f64().max(1e-6) - 1.0
    }

    #[expect(clippy::cast_precision_loss, reason = "rounds in a moment are few")]
    fn begun_per_second(&self) -> f64 {
        self.begun as f64 / self.length.as_secs_f64().max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(1);
    const STEP: Duration = Duration::from_millis(2);

    /// A node with this capacity, in which each round waits for a thread ten times.
    struct SimulatedNode {
        controller: RateController,
        capacity: f64,
        waiting: f64,
        tokens: f64,
    }

    struct SimulatedSecond {
        done: f64,
        refused: f64,
        longest: f64,
    }

    impl SimulatedNode {
        fn new(capacity: f64) -> Self {
            Self { controller: RateController::new(TARGET), capacity, waiting: 0.0, tokens: 0.0 }
        }

        /// Simulates a second of offered load.
        fn second(&mut self, offered: f64) -> SimulatedSecond {
            let mut second = SimulatedSecond { done: 0.0, refused: 0.0, longest: 0.0 };
            for _ in 0..500 {
                let step = STEP.as_secs_f64();
                let come = offered * step;
                let begun = match self.controller.rate() {
                    None => come,
                    Some(rate) => {
                        self.tokens = (self.tokens + rate * step).min(rate * step + 8.0);
                        come.min(self.tokens)
                    }
                };
                self.tokens -= begun.min(self.tokens);
                let done = (self.capacity * step).min(self.waiting + begun);
                self.waiting = (self.waiting + begun - done).max(0.0);
                second.done += done;
                second.refused += come - begun;
                let wait = self.waiting / self.capacity;
                second.longest = second.longest.max(wait);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a few rounds in two milliseconds"
                )]
                self.controller.next(LagSample {
                    elapsed: STEP,
                    lag: Duration::from_secs_f64(wait / 10.0),
                    begun: begun.round() as u64,
                    refused: (come - begun).ceil() as u64,
                });
            }
            second
        }
    }

    #[test]
    fn load_within_the_capacity_is_never_limited() {
        let mut node = SimulatedNode::new(2_000.0);
        for _ in 0..10 {
            assert!(node.second(1_900.0).refused < 0.5);
        }
        assert_eq!(node.controller.rate(), None);
    }

    #[test]
    fn five_times_the_capacity_costs_no_throughput_and_no_long_wait() {
        for capacity in [200.0, 2_000.0, 20_000.0] {
            let mut node = SimulatedNode::new(capacity);
            node.second(0.7 * capacity);
            node.second(5.0 * capacity);
            for _ in 0..5 {
                let second = node.second(5.0 * capacity);
                let share = second.done / capacity;
                assert!(0.9 < share, "{share} of {capacity}");
                assert!(second.longest < 0.05, "{} s at {capacity}", second.longest);
            }
        }
    }

    #[test]
    fn a_sudden_burst_finds_the_rate_soon() {
        let mut node = SimulatedNode::new(2_000.0);
        node.second(10_000.0);
        assert!(0.8 * 2_000.0 < node.second(10_000.0).done);
    }

    #[test]
    fn the_limit_is_lifted_when_the_load_ends() {
        let mut node = SimulatedNode::new(2_000.0);
        node.second(10_000.0);
        node.second(10_000.0);
        for _ in 0..3 {
            node.second(1_000.0);
        }
        assert_eq!(node.controller.rate(), None);
        assert!(node.second(1_000.0).refused < 0.5);
    }

    #[test]
    fn a_hiccup_refuses_nobody() {
        let mut controller = RateController::new(TARGET);
        for look in 0..1_000 {
            let lag = if look % 10 < 2 { 50 } else { 0 };
            let lag = Duration::from_millis(lag);
            let seen = LagSample { elapsed: STEP, lag, begun: 2, refused: 0 };
            assert_eq!(controller.next(seen), None);
        }
    }
}
