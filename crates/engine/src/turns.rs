//! Places that accounts take turns for: whoever holds the fewest comes first, and of those that hold
//! as many, the one whose last turn is longest ago.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jurat_core::{
    id::AccountId,
    turns::{NoShare, Shares},
};
use tokio::sync::oneshot;

/// Places of which there are only so many, and who waits for one.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shares: Shares,
    /// Who waits, each account in the order in which it came. Accounts that do not are not in it.
    waiting: BTreeMap<AccountId, BTreeMap<u64, oneshot::Sender<Turn>>>,
    /// When accounts had their last turn. Those that neither hold a place nor wait are not in it.
    last: BTreeMap<AccountId, u64>,
    /// Counts turns and those who wait, in the order in which they come.
    next: u64,
}

/// A place that an account holds until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    of: Arc<Turns>,
    account: AccountId,
}

/// Somebody in the queue. Dropped, it leaves the queue.
struct Waiter<'a> {
    turns: &'a Turns,
    account: &'a AccountId,
    number: u64,
}

impl Turns {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        // Without any place nothing would ever be done.
        let shares = Shares::new(places.max(1));
        let (waiting, last) = (BTreeMap::new(), BTreeMap::new());
        Arc::new(Self { state: Mutex::new(State { shares, waiting, last, next: 1 }) })
    }

    /// A place for the account, if there is one that it may have at once.
    pub(crate) fn try_take(self: &Arc<Self>, account: &AccountId) -> Option<Turn> {
        // As long as places are left, those who wait hold too many to get another one.
        self.lock().take(account).ok()?;
        Some(Turn { of: Arc::clone(self), account: account.clone() })
    }

    /// A place for the account, when it is its turn.
    pub(crate) async fn take(self: &Arc<Self>, account: &AccountId) -> Turn {
        loop {
            if let Some(turn) = self.try_take(account) {
                return turn;
            }
            let (tell, told) = oneshot::channel();
            let _waiter = self.enter(account, tell);
            // Somebody may have left before this one was in the queue.
            self.give();
            if let Ok(turn) = told.await {
                return turn;
            }
        }
    }

    /// Whether anybody waits.
    pub(crate) fn are_wanted(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.lock().shares.free()
    }

    fn enter<'a>(&'a self, account: &'a AccountId, tell: oneshot::Sender<Turn>) -> Waiter<'a> {
        let mut state = self.lock();
        let number = state.count();
        state.waiting.entry(account.clone()).or_default().insert(number, tell);
        Waiter { turns: self, account, number }
    }

    /// Gives what is free to those whose turn it is.
    fn give(self: &Arc<Self>) {
        let called = self.lock().called();
        for (account, tell) in called {
            // Whoever has just gone drops it, which gives it to the next.
            drop(tell.send(Turn { of: Arc::clone(self), account }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock leaves it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn take(&mut self, account: &AccountId) -> Result<(), NoShare> {
        self.shares.take(account, 1, usize::MAX)?;
        let number = self.count();
        self.last.insert(account.clone(), number);
        Ok(())
    }

    /// Takes those out of the queue whose turn it is, each with a place.
    fn called(&mut self) -> Vec<(AccountId, oneshot::Sender<Turn>)> {
        let free = self.shares.free();
        let mut waiting = BTreeMap::new();
        for (account, queue) in &self.waiting {
            let last = self.last.get(account).copied().unwrap_or(0);
            // No account gets more than all that is free.
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

    fn leave(&mut self, account: &AccountId, number: u64) -> Option<oneshot::Sender<Turn>> {
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

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.turns.lock().leave(self.account, self.number);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.of.lock().give_back(&self.account);
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
    async fn accounts_take_turns_however_long_the_queue_of_one_is() {
        for places in [1, 2, 8] {
            let turns = Turns::new(places);
            let (a, b) = (account("a"), account("b"));
            let mut held: Vec<Turn> = std::iter::from_fn(|| turns.try_take(&a)).collect();
            held.extend(std::iter::from_fn(|| turns.try_take(&account("c"))));
            let mut queue: Vec<_> = (0..20).map(|_| Box::pin(turns.take(&a))).collect();
            for waiting in &mut queue {
                assert!(poll!(waiting.as_mut()).is_pending());
            }
            let mut late = pin!(turns.take(&b));
            assert!(poll!(late.as_mut()).is_pending());
            assert!(turns.are_wanted());
            drop(held.remove(0));
            let Poll::Ready(turn) = poll!(late.as_mut()) else { panic!("{places}: {turns:?}") };
            assert!(poll!(queue[0].as_mut()).is_pending());
            drop((turn, held));
            assert!(poll!(queue[0].as_mut()).is_ready());
        }
    }

    #[tokio::test]
    async fn whoever_leaves_holds_nobody_up() {
        let turns = Turns::new(1);
        let (a, b) = (account("a"), account("b"));
        let held = turns.take(&a).await;
        {
            let mut gone = pin!(turns.take(&a));
            assert!(poll!(gone.as_mut()).is_pending());
        }
        let mut given = Box::pin(turns.take(&b));
        assert!(poll!(given.as_mut()).is_pending());
        let mut last = pin!(turns.take(&a));
        assert!(poll!(last.as_mut()).is_pending());
        drop(held);
        // It has a place that it has not seen yet.
        drop(given);
        let Poll::Ready(_turn) = poll!(last.as_mut()) else { panic!("{turns:?}") };
        assert_eq!((turns.free(), turns.are_wanted()), (0, false));
    }

    #[tokio::test]
    async fn one_place_is_left_for_an_account_that_holds_none() {
        let turns = Turns::new(8);
        let (a, b) = (account("a"), account("b"));
        let held: Vec<Turn> = std::iter::from_fn(|| turns.try_take(&a)).collect();
        assert_eq!((held.len(), turns.free()), (7, 1));
        let mut eighth = pin!(turns.take(&a));
        assert!(poll!(eighth.as_mut()).is_pending());
        let other = turns.take(&b).await;
        drop(other);
        assert!(poll!(eighth.as_mut()).is_pending());
        drop(held);
        assert!(poll!(eighth.as_mut()).is_ready());
    }
}
