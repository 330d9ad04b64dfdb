//! Pauses that grow with each failed try.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// The first and the longest pause between two reads of another node's work.
const FIRST_READ: Duration = Duration::from_millis(50);
const READ_EVERY: Duration = Duration::from_secs(1);

/// An endless series of pauses, each a multiple of the one before, up to the longest.
#[derive(Debug)]
pub(crate) struct Pauses {
    backoff: ExponentialBackoff,
    next: Duration,
    longest: Duration,
}

impl Pauses {
    /// Pauses that grow by a factor.
    pub(crate) fn growing(first: Duration, longest: Duration, factor: f32) -> Self {
        let backoff = ExponentialBuilder::default()
            .with_factor(factor)
            .with_min_delay(first)
            .with_max_delay(longest)
            .without_max_times();
        let mut backoff = backoff.build();
        let next = backoff.next().unwrap_or(first);
        Self { backoff, next, longest }
    }

    /// Pauses that double.
    pub(crate) fn doubling(first: Duration, longest: Duration) -> Self {
        Self::growing(first, longest, 2.0)
    }

    /// Pauses between two reads of another node's work.
    pub(crate) fn between_reads() -> Self {
        Self::doubling(FIRST_READ, READ_EVERY)
    }

    /// The next pause.
    pub(crate) fn advance(&mut self) -> Duration {
        let next = self.next;
        self.next = self.backoff.next().unwrap_or(self.longest);
        next
    }

    /// Whether the next pause is the longest.
    pub(crate) fn is_longest(&self) -> bool {
        self.next == self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let mut pauses = Pauses::growing(Duration::from_millis(250), Duration::from_secs(3), 4.0);
        assert!(!pauses.is_longest());
        let taken: Vec<u128> = (0..4).map(|_| pauses.advance().as_millis()).collect();
        assert_eq!(taken, [250, 1_000, 3_000, 3_000]);
        assert!(pauses.is_longest());
    }
}
