//! The requests that a provider may have at once, and which of them give way.

use std::{pin::pin, sync::Arc, task::Poll};

use futures::poll;
use jurat_core::id::AccountId;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::turns::{Turn, Turns};

/// The places for the requests to one provider, for which accounts take turns.
#[derive(Debug)]
pub(super) struct Calls {
    places: Arc<Turns>,
    wanted: Notify,
}

impl Calls {
    pub(super) fn new(count: usize) -> Self {
        Self { places: Turns::new(count), wanted: Notify::new() }
    }

    /// A place, when it is the account's turn; `None` when it is not until the deadline.
    pub(super) async fn place(&self, account: &AccountId, deadline: Instant) -> Option<Turn> {
        if let Some(place) = self.places.try_take(account) {
            return Some(place);
        }
        let mut waiting = pin!(self.places.take(account));
        // It is in the queue before those are told who might give way.
        if let Poll::Ready(place) = poll!(waiting.as_mut()) {
            return Some(place);
        }
        self.wanted.notify_waiters();
        timeout_at(deadline, waiting).await.ok()
    }

    /// Done when somebody waits for a place, so that a request that nobody waits for ends.
    pub(super) async fn wanted(&self) {
        let wanted = self.wanted.notified();
        if !self.places.are_wanted() {
            wanted.await;
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.places.free()
    }
}
