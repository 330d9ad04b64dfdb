//! The requests that a provider may have at once, and which of them give way.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// The places for the requests to one provider.
#[derive(Debug)]
pub(super) struct Calls {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    wanted: Notify,
}

impl Calls {
    pub(super) fn new(count: usize) -> Self {
        let places = Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        Self { places, waiting: AtomicUsize::new(0), wanted: Notify::new() }
    }

    /// A place, as soon as there is one; `None` when there is none until the deadline.
    pub(super) async fn place(&self, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let _waits = Waits::begin(self);
        self.wanted.notify_waiters();
        timeout_at(deadline, Arc::clone(&self.places).acquire_owned()).await.ok()?.ok()
    }

    /// Done when somebody waits for a place, so that a request that nobody waits for ends.
    pub(super) async fn wanted(&self) {
        let wanted = self.wanted.notified();
        if self.waiting.load(Ordering::SeqCst) == 0 {
            wanted.await;
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.places.available_permits()
    }
}

/// Counts as waiting until it is dropped.
struct Waits<'a>(&'a Calls);

impl<'a> Waits<'a> {
    fn begin(calls: &'a Calls) -> Self {
        calls.waiting.fetch_add(1, Ordering::SeqCst);
        Self(calls)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
