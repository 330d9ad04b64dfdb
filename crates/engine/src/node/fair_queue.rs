//! Hands out a limited number of permits fairly between accounts. The account with the fewest
//! permits comes first; a tie goes to the account that has waited longest since its last permit.

use std::{collections::BTreeMap, sync::Arc};

use jurat_core::{
    account::fair_share::{FairShareRefusal, FairShares},
    id::AccountId,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Permits, and the accounts that wait for one.
#[derive(Debug)]
pub(crate) struct FairQueue {
    state: Mutex<FairQueueState>,
}

#[derive(Debug)]
struct FairQueueState {
    shares: FairShares,
    /// The waiters of each account, the oldest first.
    waiting: BTreeMap<AccountId, BTreeMap<u64, oneshot::Sender<QueuePermit>>>,
    /// When each account got its last permit. Accounts that neither hold one nor wait are removed.
    last: BTreeMap<AccountId, u64>,
    /// Numbers permits and waiters in their order.
    next: u64,
}

/// A permit that the account holds until this is dropped.
#[derive(Debug)]
pub(crate) struct QueuePermit {
    of: Arc<FairQueue>,
    account: AccountId,
}

/// An entry in the queue, removed when this is dropped.
struct QueueWaiter<'a> {
    queue: &'a FairQueue,
    account: &'a AccountId,
    number: u64,
}

impl FairQueue {
    pub(crate) fn new(permits: usize) -> Arc<Self> {
        // Without a permit nothing would ever be done.
        let shares = FairShares::new(permits.max(1));
        let (waiting, last) = (BTreeMap::new(), BTreeMap::new());
        Arc::new(Self { state: Mutex::new(FairQueueState { shares, waiting, last, next: 1 }) })
    }

    /// Returns a permit if the account may have one now.
    pub(crate) fn try_take(self: &Arc<Self>, account: &AccountId) -> Option<QueuePermit> {
        // If permits are free, the waiting accounts hold too many to get another one.
        self.state.lock().take(account).ok()?;
        Some(QueuePermit { of: Arc::clone(self), account: account.clone() })
    }

    /// Waits until the account gets a permit.
    pub(crate) async fn take(self: &Arc<Self>, account: &AccountId) -> QueuePermit {
        loop {
            if let Some(permit) = self.try_take(account) {
                return permit;
            }
            let (tell, told) = oneshot::channel();
            let _waiter = self.enter(account, tell);
            // A permit may have been returned before this waiter was in the queue.
            self.give();
            if let Ok(permit) = told.await {
                return permit;
            }
        }
    }

    /// Whether an account waits.
    pub(crate) fn are_wanted(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.state.lock().shares.free()
    }

    fn enter<'a>(
        &'a self,
        account: &'a AccountId,
        tell: oneshot::Sender<QueuePermit>,
    ) -> QueueWaiter<'a> {
        let mut state = self.state.lock();
        let number = state.count();
        state.waiting.entry(account.clone()).or_default().insert(number, tell);
        QueueWaiter { queue: self, account, number }
    }

    /// Hands the free permits to the first waiters.
    fn give(self: &Arc<Self>) {
        let called = self.state.lock().called();
        for (account, tell) in called {
            // If the waiter has just left, the permit is dropped, which hands it to the next.
            drop(tell.send(QueuePermit { of: Arc::clone(self), account }));
        }
    }
}

impl FairQueueState {
    fn count(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn take(&mut self, account: &AccountId) -> Result<(), FairShareRefusal> {
        self.shares.take(account, 1, usize::MAX)?;
        let number = self.count();
        self.last.insert(account.clone(), number);
        Ok(())
    }

    /// Removes the waiters that get a permit now, and takes one for each.
    fn called(&mut self) -> Vec<(AccountId, oneshot::Sender<QueuePermit>)> {
        let free = self.shares.free();
        let mut waiting = BTreeMap::new();
        for (account, queue) in &self.waiting {
            let last = self.last.get(account).copied().unwrap_or(0);
            // No account can get more than all free permits.
            let first = queue.keys().take(free).map(|number| (last, *number, account.clone()));
            waiting.insert(account.clone(), first.collect());
        }
        let mut called = Vec::new();
        for (_, number, account) in self.shares.next(waiting) {
            if self.take(&account).is_ok()
                && let Some(tell) = self.leave(&account, number)
            {
                called.push((account, tell));
            }
        }
        called
    }

    fn leave(&mut self, account: &AccountId, number: u64) -> Option<oneshot::Sender<QueuePermit>> {
        let queue = self.waiting.get_mut(account)?;
        let left = queue.remove(&number);
        if queue.is_empty() {
            self.waiting.remove(account);
        }
        self.forget(account);
        left
    }

    fn give_back(&mut self, account: &AccountId) {
        self.shares.give_back(account, 1);
        self.forget(account);
    }

    fn forget(&mut self, account: &AccountId) {
        if self.shares.held(account) == 0 && !self.waiting.contains_key(account) {
            self.last.remove(account);
        }
    }
}

impl Drop for QueueWaiter<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().leave(self.account, self.number);
    }
}

impl Drop for QueuePermit {
    fn drop(&mut self) {
        self.of.state.lock().give_back(&self.account);
        self.of.give();
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
            let queue = FairQueue::new(permits);
            let (a, b) = (account("a"), account("b"));
            let mut held: Vec<QueuePermit> = std::iter::from_fn(|| queue.try_take(&a)).collect();
            held.extend(std::iter::from_fn(|| queue.try_take(&account("c"))));
            let mut waiters: Vec<_> = (0..20).map(|_| Box::pin(queue.take(&a))).collect();
            for waiting in &mut waiters {
                assert!(poll!(waiting.as_mut()).is_pending());
            }
            let mut late = pin!(queue.take(&b));
            assert!(poll!(late.as_mut()).is_pending());
            assert!(queue.are_wanted());
            drop(held.remove(0));
            let Poll::Ready(permit) = poll!(late.as_mut()) else { panic!("{permits}: {queue:?}") };
            assert!(poll!(waiters[0].as_mut()).is_pending());
            drop((permit, held));
            assert!(poll!(waiters[0].as_mut()).is_ready());
        }
    }

    #[tokio::test]
    async fn a_waiter_that_leaves_blocks_nobody() {
        let queue = FairQueue::new(1);
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
        assert_eq!((queue.free(), queue.are_wanted()), (0, false));
    }

    #[tokio::test]
    async fn one_permit_is_left_for_an_account_that_holds_none() {
        let queue = FairQueue::new(8);
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
