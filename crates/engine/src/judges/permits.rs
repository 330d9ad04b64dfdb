//! Limits concurrent requests to one provider, and lets abandoned ones give way.

use std::{pin::pin, sync::Arc, task::Poll};

use futures::poll;
use jurat_core::id::AccountId;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::node::permit_queue::{PermitQueue, QueuePermit};

/// The permits for requests to one provider, shared fairly between accounts.
#[derive(Debug)]
pub(super) struct ProviderPermits {
    permits: Arc<PermitQueue>,
    wanted: Notify,
}

impl ProviderPermits {
    pub(super) fn new(count: usize) -> Self {
        Self { permits: PermitQueue::new(count), wanted: Notify::new() }
    }

    /// Waits for a permit until the deadline.
    pub(super) async fn permit(
        &self,
        account: &AccountId,
        deadline: Instant,
    ) -> Option<QueuePermit> {
        if let Some(permit) = self.permits.try_take(account) {
            return Some(permit);
        }
        let mut waiting = pin!(self.permits.take(account));
        // It is in the queue before abandoned requests are asked to give way.
        if let Poll::Ready(permit) = poll!(waiting.as_mut()) {
            return Some(permit);
        }
        self.wanted.notify_waiters();
        timeout_at(deadline, waiting).await.ok()
    }

    /// Resolves when another request waits for a permit, so that an abandoned request can end.
    pub(super) async fn wanted(&self) {
        let wanted = self.wanted.notified();
        if !self.permits.is_wanted() {
            wanted.await;
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.permits.free()
    }
}
