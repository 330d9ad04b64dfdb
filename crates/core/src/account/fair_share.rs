//! The fair-share rule: which account gets the next permit when several compete for them.

use std::{collections::BTreeMap, vec::IntoIter};

use crate::{id::AccountId, key_counts::KeyCounts};

/// How many permits an account may hold for each permit that stays free. The next account always
/// finds one: an account that is alone gets seven eighths of the permits.
const SHARE: usize = 7;

/// Whether an account that holds `held` permits may take `more` of the `free` ones.
pub const fn is_in_share(held: usize, more: usize, free: usize) -> bool {
    more <= free && held.saturating_add(more) <= SHARE.saturating_mul(free - more + 1)
}

/// The permits of a limited capacity, and how many each account holds.
#[derive(Debug)]
pub struct FairShares {
    free: usize,
    held: KeyCounts<AccountId>,
}

/// Why an account gets no more permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FairShareRefusal {
    /// The account would exceed its own limit.
    OfAccount,
    /// The free permits are reserved for other accounts.
    OfAll,
}

impl FairShares {
    /// A capacity of `all` permits, none of them held.
    pub const fn new(all: usize) -> Self {
        Self { free: all, held: KeyCounts::new() }
    }

    /// Takes `more` permits for an account that may hold at most `most`.
    pub fn take(
        &mut self,
        account: &AccountId,
        more: usize,
        most: usize,
    ) -> Result<(), FairShareRefusal> {
        let held = self.held(account);
        if most < held.saturating_add(more) {
            return Err(FairShareRefusal::OfAccount);
        }
        if !is_in_share(held, more, self.free) {
            return Err(FairShareRefusal::OfAll);
        }
        self.free -= more;
        self.held.add(account, more);
        Ok(())
    }

    /// Returns permits that the account took.
    pub fn give_back(&mut self, account: &AccountId, less: usize) {
        self.free = self.free.saturating_add(less);
        self.held.remove(account, less);
    }

    /// How many permits the account holds.
    pub fn held(&self, account: &AccountId) -> usize {
        self.held.of(account)
    }

    /// Whether all permits are free.
    pub fn are_back(&self) -> bool {
        self.held.is_empty()
    }

    /// How many permits are free. Some of them may be reserved for other accounts.
    pub const fn free(&self) -> usize {
        self.free
    }

    /// How many permits all accounts hold together.
    pub fn in_use(&self) -> usize {
        self.held.total()
    }
}

/// Hands each free permit to the account that holds the fewest; a tie goes to the account whose
/// oldest waiter is oldest. Within an account the oldest waiter comes first. No account gets more
/// than its share.
pub fn share_fairly<T: Ord>(
    waiting: BTreeMap<AccountId, Vec<T>>,
    held: &BTreeMap<AccountId, usize>,
    free: usize,
) -> Vec<T> {
    let mut queues: BTreeMap<(usize, T, AccountId), IntoIter<T>> = BTreeMap::new();
    for (account, mut items) in waiting {
        items.sort();
        let mut rest = items.into_iter();
        if let Some(first) = rest.next() {
            queues.insert((held.get(&account).copied().unwrap_or(0), first, account), rest);
        }
    }
    let mut taken = Vec::new();
    while taken.len() < free
        && let Some(((held, first, account), mut rest)) = queues.pop_first()
    {
        // Every other account holds at least as many, so all of them are at their share.
        if !is_in_share(held, 1, free - taken.len()) {
            break;
        }
        taken.push(first);
        if let Some(next) = rest.next() {
            queues.insert((held + 1, next, account), rest);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::parse(&format!("acct_{name}")).unwrap()
    }

    fn waiting(all: &[(&str, &[u32])]) -> BTreeMap<AccountId, Vec<u32>> {
        all.iter().map(|(name, items)| (account(name), items.to_vec())).collect()
    }

    fn held(all: &[(&str, usize)]) -> BTreeMap<AccountId, usize> {
        all.iter().map(|(name, held)| (account(name), *held)).collect()
    }

    #[test]
    fn accounts_alternate_and_start_with_their_oldest_waiter() {
        let many: Vec<u32> = (0..100).rev().collect();
        let all = waiting(&[("a", &many), ("b", &[900, 800])]);
        assert_eq!(share_fairly(all.clone(), &held(&[]), 6), [0, 800, 1, 900, 2, 3]);
        // The account with fewer permits comes first until both hold the same number.
        assert_eq!(share_fairly(all, &held(&[("a", 1)]), 3), [800, 0, 900]);
    }

    #[test]
    fn the_oldest_waiter_wins_if_accounts_hold_the_same_number() {
        let all = waiting(&[("a", &[30]), ("b", &[10]), ("c", &[20])]);
        assert_eq!(share_fairly(all, &held(&[]), 9), [10, 20, 30]);
    }

    #[test]
    fn no_account_gets_every_permit() {
        let many: Vec<u32> = (0..1_000).collect();
        let all = || waiting(&[("a", &many)]);
        assert_eq!(share_fairly(all(), &held(&[]), 256).len(), 224);
        assert_eq!(share_fairly(all(), &held(&[("a", 224)]), 32).len(), 0);
        assert_eq!(share_fairly(all(), &held(&[("a", 223)]), 33).len(), 1);
        // One permit stays free for the next account, and one for the account after that.
        let both = || waiting(&[("a", &many), ("b", &many)]);
        assert_eq!(share_fairly(both(), &held(&[("a", 224)]), 32).len(), 28);
        // If there are few permits, one account may have all of them.
        for few in 1..8 {
            assert_eq!(share_fairly(all(), &held(&[]), few).len(), few);
        }
    }

    #[test]
    fn the_next_account_finds_a_free_permit() {
        let mut shares = FairShares::new(1_024);
        let (a, b) = (account("a"), account("b"));
        let taken = (0..2_000).take_while(|_| shares.take(&a, 1, usize::MAX).is_ok()).count();
        assert_eq!((taken, shares.take(&a, 1, usize::MAX)), (896, Err(FairShareRefusal::OfAll)));
        assert_eq!(shares.take(&b, 1, usize::MAX), Ok(()));
        assert_eq!(shares.take(&b, 10, 10), Err(FairShareRefusal::OfAccount));
        for _ in 0..896 {
            shares.give_back(&a, 1);
        }
        assert_eq!((shares.held(&a), shares.in_use()), (0, 1));
        shares.give_back(&b, 1);
        assert!(shares.are_back());
        // Permits taken in large batches leave the same reserve.
        assert_eq!(shares.take(&a, 900, usize::MAX), Err(FairShareRefusal::OfAll));
        assert_eq!(shares.take(&a, 800, usize::MAX), Ok(()));
        assert_eq!(shares.take(&a, 0, usize::MAX), Ok(()));
    }
}
