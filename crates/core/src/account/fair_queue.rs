//! A queue for permits that accounts share fairly.

use std::collections::BTreeMap;

use super::fair_share::{FairShareRefusal, FairShares, is_in_share};
use crate::id::AccountId;

/// Permits, and the accounts that wait for one.
///
/// The account with the fewest permits comes first; a tie goes to the account that has waited longest
/// since its last permit. Within an account the oldest waiter comes first.
#[derive(Debug)]
pub struct FairQueue<W> {
    shares: FairShares,
    /// How many permits one account may hold.
    most: usize,
    /// The waiters of each account, by their numbers. Accounts without waiters have no entry.
    waiting: BTreeMap<AccountId, BTreeMap<u64, W>>,
    /// When each account got its last permit. Accounts that neither hold one nor wait are removed.
    last: BTreeMap<AccountId, u64>,
    /// Numbers permits and waiters in the order in which they come.
    next: u64,
}

/// A waiter that got a permit.
#[derive(Debug, PartialEq, Eq)]
pub struct ServedWaiter<W> {
    pub account: AccountId,
    pub number: u64,
    pub waiter: W,
}

impl<W> FairQueue<W> {
    /// A queue for so many permits, of which one account may hold at most `most`.
    pub const fn new(permits: usize, most: usize) -> Self {
        Self {
            shares: FairShares::new(permits),
            most,
            waiting: BTreeMap::new(),
            last: BTreeMap::new(),
            next: 1,
        }
    }

    /// Takes a permit without waiting.
    pub fn take(&mut self, account: &AccountId) -> Result<(), FairShareRefusal> {
        self.shares.take(account, 1, self.most)?;
        let number = self.count();
        self.last.insert(account.clone(), number);
        Ok(())
    }

    /// Returns a permit of the account.
    pub fn give_back(&mut self, account: &AccountId) {
        self.shares.give_back(account, 1);
        self.forget_idle(account);
    }

    /// Adds a waiter, and returns its number.
    pub fn enter(&mut self, account: &AccountId, waiter: W) -> u64 {
        let number = self.count();
        self.waiting.entry(account.clone()).or_default().insert(number, waiter);
        number
    }

    /// Removes a waiter; `None` if it has got a permit or has left.
    pub fn leave(&mut self, account: &AccountId, number: u64) -> Option<W> {
        let queue = self.waiting.get_mut(account)?;
        let left = queue.remove(&number);
        if queue.is_empty() {
            self.waiting.remove(account);
        }
        self.forget_idle(account);
        left
    }

    /// Takes a permit for the waiter that comes first; `None` if no waiter may have one.
    pub fn serve(&mut self) -> Option<ServedWaiter<W>> {
        let (account, number) = self.first()?;
        self.take(&account).ok()?;
        let waiter = self.leave(&account, number)?;
        Some(ServedWaiter { account, number, waiter })
    }

    /// How many waiters the account has.
    pub fn waiting_of(&self, account: &AccountId) -> usize {
        self.waiting.get(account).map_or(0, BTreeMap::len)
    }

    /// How many waiters there are.
    pub fn waiting(&self) -> usize {
        self.waiting.values().map(BTreeMap::len).sum()
    }

    /// Whether an account waits.
    pub fn is_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many permits are free. Some of them may be reserved for other accounts.
    pub const fn free(&self) -> usize {
        self.shares.free()
    }

    fn first(&self) -> Option<(AccountId, u64)> {
        let free = self.shares.free();
        let candidates = self.waiting.iter().filter_map(|(account, queue)| {
            let held = self.shares.held(account);
            let is_eligible = held < self.most && is_in_share(held, 1, free);
            let number = *queue.keys().next().filter(|_| is_eligible)?;
            let last = self.last.get(account).copied().unwrap_or(0);
            Some((held, last, number, account))
        });
        candidates.min().map(|(_, _, number, account)| (account.clone(), number))
    }

    fn count(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn forget_idle(&mut self, account: &AccountId) {
        if self.shares.held(account) == 0 && !self.waiting.contains_key(account) {
            self.last.remove(account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::parse(&format!("acct_{name}")).unwrap()
    }

    fn served(queue: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.serve()).map(|served| served.waiter).collect()
    }

    #[test]
    fn accounts_take_turns_and_keep_their_own_order() {
        let mut queue = FairQueue::new(100, 100);
        let (a, b, c) = (account("a"), account("b"), account("c"));
        for waiter in ["a1", "a2", "a3"] {
            queue.enter(&a, waiter);
        }
        queue.enter(&c, "c1");
        queue.enter(&b, "b1");
        queue.enter(&b, "b2");
        assert_eq!((queue.waiting(), queue.waiting_of(&a)), (6, 3));
        assert_eq!(served(&mut queue), ["a1", "c1", "b1", "a2", "b2", "a3"]);
        assert!(!queue.is_wanted());
    }

    #[test]
    fn an_account_at_its_limit_waits_and_others_do_not() {
        let mut queue = FairQueue::new(100, 2);
        let (a, b) = (account("a"), account("b"));
        queue.take(&a).unwrap();
        queue.take(&a).unwrap();
        assert_eq!(queue.take(&a), Err(FairShareRefusal::OfAccount));
        queue.enter(&a, "a3");
        assert_eq!(served(&mut queue), [""; 0]);
        queue.enter(&b, "b1");
        assert_eq!(served(&mut queue), ["b1"]);
        queue.give_back(&a);
        assert_eq!(served(&mut queue), ["a3"]);
    }

    #[test]
    fn a_tie_goes_to_the_account_that_waited_longest_since_its_last_permit() {
        let mut queue = FairQueue::new(1, 1);
        let (a, b) = (account("a"), account("b"));
        queue.take(&a).unwrap();
        queue.enter(&a, "a2");
        queue.enter(&b, "b1");
        queue.give_back(&a);
        assert_eq!(served(&mut queue), ["b1"]);
        queue.enter(&b, "b2");
        queue.give_back(&b);
        assert_eq!(served(&mut queue), ["a2"]);
    }

    #[test]
    fn nothing_is_kept_of_an_account_that_has_left() {
        let mut queue = FairQueue::new(1, 1);
        let (a, b) = (account("a"), account("b"));
        queue.take(&a).unwrap();
        let number = queue.enter(&b, "b1");
        assert_eq!(queue.leave(&b, number), Some("b1"));
        assert_eq!(queue.leave(&b, number), None);
        queue.give_back(&a);
        assert!(queue.waiting.is_empty() && queue.last.is_empty());
        assert_eq!(queue.free(), 1);
    }
}
