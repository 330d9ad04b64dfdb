//! The push notifications that wait for the end of their rounds: one wait for each.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The waits of this node, by the ids of their push notifications.
#[derive(Debug, Default)]
pub(super) struct PushWaits(Mutex<BTreeMap<String, CancellationToken>>);

/// A wait, which is listed until this is dropped.
#[derive(Debug)]
pub(super) struct PushWait {
    waits: Arc<PushWaits>,
    id: String,
    over: CancellationToken,
}

impl PushWaits {
    /// Lists a wait, and ends an earlier one for the same push notification.
    pub(super) fn begin(self: &Arc<Self>, id: &str) -> PushWait {
        let over = CancellationToken::new();
        let mut waits = self.0.lock();
        if let Some(earlier) = waits.insert(id.to_owned(), over.clone()) {
            earlier.cancel();
        }
        PushWait { waits: Arc::clone(self), id: id.to_owned(), over }
    }

    /// Ends the wait for a push notification that was removed.
    pub(super) fn end(&self, id: &str) {
        if let Some(wait) = self.0.lock().remove(id) {
            wait.cancel();
        }
    }
}

impl PushWait {
    /// The result of the work, or `None` if the wait is ended before.
    pub(super) async fn until<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.over.run_until_cancelled(work).await
    }
}

impl Drop for PushWait {
    fn drop(&mut self) {
        let mut waits = self.waits.0.lock();
        // The entry belongs to the wait that ended this one.
        if !self.over.is_cancelled() {
            waits.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_push_notification_has_one_wait() {
        let waits = Arc::new(PushWaits::default());
        let is_over = |wait: &PushWait| wait.until(std::future::pending::<()>()).now_or_never();
        let (first, other) = (waits.begin("a"), waits.begin("b"));
        let second = waits.begin("a");
        assert_eq!((is_over(&first), is_over(&second)), (Some(None), None));
        drop(first);
        assert_eq!(waits.0.lock().len(), 2);
        waits.end("a");
        assert_eq!((is_over(&second), is_over(&other)), (Some(None), None));
        drop((second, other));
        assert!(waits.0.lock().is_empty());
    }
}
