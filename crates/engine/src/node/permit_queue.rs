//! Hands out a limited number of permits fairly between accounts.

use std::sync::Arc;

use jurat_core::{account::fair_queue::FairQueue, id::AccountId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Permits, and the accounts that wait for one.
#[derive(Debug)]
pub(crate) struct PermitQueue {
    queue: Mutex<FairQueue<oneshot::Sender<QueuePermit>>>,
}

/// A permit that the account holds until this is dropped.
#[derive(Debug)]
pub(crate) struct QueuePermit {
    of: Arc<PermitQueue>,
    account: AccountId,
}

/// An entry in the queue, removed when this is dropped.
struct QueueWaiter<'a> {
    of: &'a PermitQueue,
    account: &'a AccountId,
    number: u64,
}

impl PermitQueue {
    pub(crate) fn new(permits: usize) -> Arc<Self> {
        // Without a permit nothing would ever be done.
        Arc::new(Self { queue: Mutex::new(FairQueue::new(permits.max(1), usize::MAX)) })
    }

    /// Returns a permit if the account may have one now.
    pub(crate) fn try_take(self: &Arc<Self>, account: &AccountId) -> Option<QueuePermit> {
        // If permits are free, the waiting accounts hold too many to get another one.
        self.queue.lock().take(account).ok()?;
        Some(QueuePermit { of: Arc::clone(self), account: account.clone() })
    }

    /// Waits until the account gets a permit.
    pub(crate) async fn take(self: &Arc<Self>, account: &AccountId) -> QueuePermit {
        loop {
            if let Some(permit) = self.try_take(account) {
                return permit;
            }
            let (sender, permit) = oneshot::channel();
            let number = self.queue.lock().enter(account, sender);
            let _waiter = QueueWaiter { of: self, account, number };
            // A permit may have been returned before this waiter was in the queue.
            self.serve_waiters();
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }

    /// Whether an account waits.
    pub(crate) fn is_wanted(&self) -> bool {
        self.queue.lock().is_wanted()
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.queue.lock().free()
    }

    /// Hands the free permits to the waiters that come first.
    fn serve_waiters(self: &Arc<Self>) {
        let served: Vec<_> = {
            let mut queue = self.queue.lock();
            std::iter::from_fn(|| queue.serve()).collect()
        };
        for waiter in served {
            let permit = QueuePermit { of: Arc::clone(self), account: waiter.account };
            // If the waiter has just left, the permit is dropped, which hands it to the next.
            drop(waiter.waiter.send(permit));
        }
    }
}

impl Drop for QueueWaiter<'_> {
    fn drop(&mut self) {
        self.of.queue.lock().leave(self.account, self.number);
    }
}

impl Drop for QueuePermit {
    fn drop(&mut self) {
        self.of.queue.lock().give_back(&self.account);
        self.of.serve_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Poll};

    use futures::poll;

    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::parse(&format!("acct_{name}")).unwrap()
    }

    #[tokio::test]
    async fn accounts_alternate_however_long_one_queue_is() {
        for permits in [1, 2, 8] {
            let queue = PermitQueue::new(permits);
            let (a, b) = (account("a"), account("b"));
            let mut held: Vec<QueuePermit> = std::iter::from_fn(|| queue.try_take(&a)).collect();
            held.extend(std::iter::from_fn(|| queue.try_take(&account("c"))));
            let mut waiters: Vec<_> = (0..20).map(|_| Box::pin(queue.take(&a))).collect();
            for waiting in &mut waiters {
                assert!(poll!(waiting.as_mut()).is_pending());
            }
            let mut late = pin!(queue.take(&b));
            assert!(poll!(late.as_mut()).is_pending());
            assert!(queue.is_wanted());
            drop(held.remove(0));
            let Poll::Ready(permit) = poll!(late.as_mut()) else { panic!("{permits}: {queue:?}") };
            assert!(poll!(waiters[0].as_mut()).is_pending());
            drop((permit, held));
            assert!(poll!(waiters[0].as_mut()).is_ready());
        }
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_blocks_nobody() {
        let queue = PermitQueue::new(1);
        let (a, b) = (account("a"), account("b"));
        let held = queue.take(&a).await;
        {
            let mut gone = pin!(queue.take(&a));
            assert!(poll!(gone.as_mut()).is_pending());
        }
        let mut given = Box::pin(queue.take(&b));
        assert!(poll!(given.as_mut()).is_pending());
        let mut last = pin!(queue.take(&a));
        assert!(poll!(last.as_mut()).is_pending());
        drop(held);
        // It was handed a permit that it has not received yet.
        drop(given);
        let Poll::Ready(_permit) = poll!(last.as_mut()) else { panic!("{queue:?}") };
        assert_eq!((queue.free(), queue.is_wanted()), (0, false));
    }

    #[tokio::test]
    async fn one_permit_is_left_for_an_account_that_holds_none() {
        let queue = PermitQueue::new(8);
        let (a, b) = (account("a"), account("b"));
        let held: Vec<QueuePermit> = std::iter::from_fn(|| queue.try_take(&a)).collect();
        assert_eq!((held.len(), queue.free()), (7, 1));
        let mut eighth = pin!(queue.take(&a));
        assert!(poll!(eighth.as_mut()).is_pending());
        let other = queue.take(&b).await;
        drop(other);
        assert!(poll!(eighth.as_mut()).is_pending());
        drop(held);
        assert!(poll!(eighth.as_mut()).is_ready());
    }
}
