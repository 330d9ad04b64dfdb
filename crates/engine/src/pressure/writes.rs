//! The writes that wait for the store, and since when.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<Row>);

/// In the order in which they began, because the number grows.
#[derive(Debug, Default)]
struct Row {
    next: u64,
    waiting: BTreeMap<u64, Instant>,
}

/// A write that waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Writes, u64);

impl Writes {
    pub(crate) fn begin(&self) -> Waiting<'_> {
        let mut row = self.row();
        let number = row.next;
        row.next += 1;
        row.waiting.insert(number, Instant::now());
        Waiting(self, number)
    }

    /// For how long the oldest one has waited.
    pub(super) fn longest(&self) -> Duration {
        let oldest = self.row().waiting.first_key_value().map(|(_, began)| *began);
        oldest.map_or(Duration::ZERO, |began| began.elapsed())
    }

    fn row(&self) -> MutexGuard<'_, Row> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.row().waiting.remove(&self.1);
    }
}
