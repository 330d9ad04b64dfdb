//! The only source of time and random bits.

use std::{fmt, sync::OnceLock, time::Duration};

use jurat_core::time::Timestamp;

pub trait Clock: fmt::Debug + Send + Sync {
    fn now(&self) -> Timestamp;
    /// Monotonic time since some start, to measure durations.
    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.now().micros().unsigned_abs())
    }
    /// The time as if nobody had set the clock since this process started: for leases that only
    /// this process measures.
    fn steady(&self) -> Timestamp {
        self.now()
    }
    /// Random bits.
    fn bits(&self) -> u128;
}

/// The clock and the random generator of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the clock")]
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// The system clock can be set; that must not lock anyone out of a limit.
    fn elapsed(&self) -> Duration {
        static START: OnceLock<std::time::Instant> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "this is the clock")]
        let now = std::time::Instant::now();
        now.saturating_duration_since(*START.get_or_init(|| now))
    }

    fn steady(&self) -> Timestamp {
        static START: OnceLock<(Timestamp, Duration)> = OnceLock::new();
        let elapsed = self.elapsed();
        let (began, before) = START.get_or_init(|| (self.now(), elapsed));
        let passed = elapsed.saturating_sub(*before).as_millis();
        began.plus_millis(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    fn bits(&self) -> u128 {
        rand::random()
    }
}
