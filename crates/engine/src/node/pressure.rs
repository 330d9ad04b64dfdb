//! Measures how late this process is, and limits new rounds accordingly.
//!
//! The measure is how long ready work waits to run, never how many rounds wait for executors: those
//! may take a minute, and cost nothing meanwhile. Two waits are watched: that of a task for a
//! thread, as far as this process causes it, and that of a write for the store.

mod controller;
mod writes;

use std::{
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use tokio::{sync::Notify, time::Instant};

use self::controller::{LagSample, RateController};
pub(crate) use self::writes::WritesInFlight;
use crate::{Engine, EngineError};

/// How often the lag is sampled while rounds start.
const SAMPLE_EVERY: Duration = Duration::from_millis(2);
/// After this many idle samples the watch sleeps until a round starts.
const LOOKS_AT_NOTHING: u32 = 250;
/// How many rounds may start together while the rate is limited.
const ROUND_BURST: u64 = 8;
/// A longer wait of a write means that the store has stalled.
const STALLED_AFTER: Duration = Duration::from_millis(500);

/// Whether many rounds are in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadLevel {
    Light,
    Heavy,
}

/// Decides whether a round may start. Cheap to ask.
#[derive(Debug)]
pub(crate) struct Pressure {
    started: Instant,
    rounds_begun: AtomicU64,
    refused: AtomicU64,
    is_stalled: AtomicBool,
    is_asleep: AtomicBool,
    round_wake: Notify,
    /// Nanoseconds between two rounds; zero while there is no limit.
    gap: AtomicU64,
    /// When the next round is due, in nanoseconds since the start.
    due: AtomicU64,
    writes: Arc<WritesInFlight>,
}

impl Pressure {
    pub(crate) fn new(writes: Arc<WritesInFlight>) -> Self {
        Self {
            started: Instant::now(),
            rounds_begun: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_stalled: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            round_wake: Notify::new(),
            gap: AtomicU64::new(0),
            due: AtomicU64::new(0),
            writes,
        }
    }

    /// Whether a round would be refused now. Asking takes no slot.
    pub(crate) fn is_full(&self, load: LoadLevel) -> bool {
        if self.is_stalled.load(Ordering::Relaxed) {
            return true;
        }
        if load == LoadLevel::Light {
            return false;
        }
        let gap = self.gap.load(Ordering::Relaxed);
        gap != 0 && self.nanos() < self.due.load(Ordering::Relaxed)
    }

    /// Counts a round that was refused without asking for a slot.
    pub(crate) fn note_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether one more round may start now.
    pub(crate) fn admit(&self, load: LoadLevel) -> Result<(), EngineError> {
        if self.is_asleep.load(Ordering::Relaxed) {
            self.round_wake.notify_one();
        }
        let admitted = if self.is_stalled.load(Ordering::Relaxed) {
            Err(EngineError::Busy("the store cannot keep up"))
        } else if self.is_in_rate() || load == LoadLevel::Light {
            Ok(())
        } else {
            Err(EngineError::Busy("this node is busy with its current rounds"))
        };
        let count = if admitted.is_ok() { &self.rounds_begun } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        admitted
    }

    /// Takes a slot in a sequence of rounds that are a gap apart, unless that slot is still in the
    /// future.
    fn is_in_rate(&self) -> bool {
        let gap = self.gap.load(Ordering::Relaxed);
        if gap == 0 {
            return true;
        }
        let now = self.nanos();
        let take = |due: u64| {
            // Only a few unused slots are kept.
            let due = due.max(now.saturating_sub(gap.saturating_mul(ROUND_BURST)));
            (due <= now).then(|| due.saturating_add(gap))
        };
        self.due.try_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Lets this many rounds start per second, or any number.
    pub(crate) fn limit(&self, rate: Option<f64>) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float that is too large becomes the largest integer, and none is negative"
        )]
        let gap = rate.map_or(0, |rate| (1e9 / rate) as u64 + 1);
        self.gap.store(gap, Ordering::Relaxed);
    }

    async fn watch(&self, target: Duration) {
        let mut controller = RateController::new(target);
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
        let workers = u32::try_from(workers).unwrap_or(u32::MAX);
        let mut last = Instant::now();
        let mut nothing = 0;
        loop {
            ticks.tick().await;
            let (ready, had) = (Instant::now(), cpu_time());
            // Resumes once all work that was ready before has run.
            tokio::task::yield_now().await;
            let now = Instant::now();
            // Ready work of this process, not time that other processes took.
            let own = cpu_time().saturating_sub(had) / workers;
            let seen = LagSample {
                elapsed: now - last,
                lag: own.min(now - ready),
                begun: self.rounds_begun.swap(0, Ordering::Relaxed),
                refused: self.refused.swap(0, Ordering::Relaxed),
            };
            last = now;
            let was_limited = controller.rate().is_some();
            self.limit(controller.next(seen));
            log_change(was_limited, controller.rate());
            let stalled = STALLED_AFTER < self.writes.longest();
            self.is_stalled.store(stalled, Ordering::Relaxed);
            let is_quiet = seen.begun + seen.refused == 0 && !stalled;
            nothing = if is_quiet && controller.rate().is_none() { nothing + 1 } else { 0 };
            if LOOKS_AT_NOTHING <= nothing {
                self.sleep().await;
                (last, nothing) = (Instant::now(), 0);
            }
        }
    }

    /// Waits until a round is requested.
    async fn sleep(&self) {
        self.is_asleep.store(true, Ordering::Relaxed);
        self.round_wake.notified().await;
        self.is_asleep.store(false, Ordering::Relaxed);
    }
}

/// The CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

fn log_change(was_limited: bool, rate: Option<f64>) {
    match (was_limited, rate) {
        (false, Some(rate)) => {
            tracing::warn!(rate, "node is overloaded; limiting new rounds");
        }
        (true, None) => tracing::info!("node is no longer overloaded; new rounds are not limited"),
        (true, Some(_)) | (false, None) => {}
    }
}

impl Engine {
    /// Watches the lag until the node stops, if a limit is set.
    pub(crate) fn watch_pressure(&self) {
        let Some(target) = self.inner.limits.lag else { return };
        let engine = self.clone();
        self.inner
            .background
            .until_shutdown(async move { engine.inner.pressure.watch(target).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressure() -> Pressure {
        Pressure::new(Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_start_at_the_limited_rate_or_without_limit() {
        let pressure = pressure();
        assert_eq!((0..1_000).filter(|_| pressure.admit(LoadLevel::Heavy).is_ok()).count(), 1_000);
        pressure.limit(Some(100.0));
        tokio::time::advance(Duration::from_secs(1)).await;
        // A few together, for the time without requests.
        let at_once = (0..1_000).filter(|_| pressure.admit(LoadLevel::Heavy).is_ok()).count();
        assert_eq!(at_once, usize::try_from(ROUND_BURST).unwrap() + 1);
        let mut taken = 0;
        for _ in 0..1_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            taken += (0..5).filter(|_| pressure.admit(LoadLevel::Heavy).is_ok()).count();
        }
        assert!((99..=101).contains(&taken), "{taken}");
        let refusal = pressure.admit(LoadLevel::Heavy).unwrap_err();
        assert_eq!(refusal.code(), jurat_core::code::ProblemCode::Overloaded);
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_rounds_start_however_low_the_limit() {
        let pressure = pressure();
        pressure.limit(Some(0.001));
        assert_eq!((0..100).filter(|_| pressure.admit(LoadLevel::Light).is_ok()).count(), 100);
        assert!(!pressure.is_full(LoadLevel::Light));
        assert!((0..100).any(|_| pressure.admit(LoadLevel::Heavy).is_err()));
        assert!(pressure.is_full(LoadLevel::Heavy));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_write_stops_new_rounds_until_it_is_done() {
        let pressure = Arc::new(pressure());
        let waiting = pressure.writes.begin();
        let mut watch = Box::pin(pressure.watch(Duration::from_millis(1)));
        let mut pass = async |time| {
            drop(tokio::time::timeout(time, watch.as_mut()).await);
        };
        pass(Duration::from_millis(400)).await;
        assert!(pressure.admit(LoadLevel::Heavy).is_ok());
        pass(Duration::from_millis(200)).await;
        assert!(pressure.admit(LoadLevel::Heavy).unwrap_err().to_string().contains("store"));
        drop(waiting);
        pass(Duration::from_millis(10)).await;
        assert!(pressure.admit(LoadLevel::Heavy).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_watch_sleeps_until_a_round_is_requested() {
        let pressure = Arc::new(pressure());
        let mut watch = Box::pin(pressure.watch(Duration::from_millis(1)));
        drop(tokio::time::timeout(Duration::from_secs(2), watch.as_mut()).await);
        assert!(pressure.is_asleep.load(Ordering::Relaxed));
        pressure.admit(LoadLevel::Heavy).unwrap();
        drop(tokio::time::timeout(Duration::from_millis(20), watch.as_mut()).await);
        assert!(!pressure.is_asleep.load(Ordering::Relaxed));
    }
}
