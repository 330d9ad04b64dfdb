//! Tracks the writes that wait for the store.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct WritesInFlight(Mutex<WriteQueue>);

/// In the order in which they started, because the number grows.
#[derive(Debug, Default)]
struct WriteQueue {
    next: u64,
    waiting: BTreeMap<u64, Instant>,
}

/// A waiting write, until this is dropped.
#[derive(Debug)]
pub(crate) struct WriteGuard<'a>(&'a WritesInFlight, u64);

impl WritesInFlight {
    pub(crate) fn begin(&self) -> WriteGuard<'_> {
        let mut row = self.queue();
        let number = row.next;
        row.next += 1;
        row.waiting.insert(number, Instant::now());
        WriteGuard(self, number)
    }

    /// How long the oldest one has waited.
    pub(super) fn longest(&self) -> Duration {
        let oldest = self.queue().waiting.first_key_value().map(|(_, began)| *began);
        oldest.map_or(Duration::ZERO, |began| began.elapsed())
    }

    fn queue(&self) -> MutexGuard<'_, WriteQueue> {
        self.0.lock()
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        self.0.queue().waiting.remove(&self.1);
    }
}
