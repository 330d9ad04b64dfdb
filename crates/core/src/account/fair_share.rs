//! Whose turn it is when several accounts want the same places.

use std::{collections::BTreeMap, vec::IntoIter};

use crate::id::AccountId;

/// How many places an account may hold for each that is left, so that whoever comes next finds one:
/// alone it gets seven eighths of them.
const SHARE: usize = 7;

/// Whether an account that holds so many may take so many more of those that are free.
pub const fn is_in_share(held: usize, more: usize, free: usize) -> bool {
    more <= free && held.saturating_add(more) <= SHARE.saturating_mul(free - more + 1)
}

/// What accounts hold of something of which there is only so much.
#[derive(Debug)]
pub struct FairShares {
    free: usize,
    /// Accounts that hold nothing are not in it.
    held: BTreeMap<AccountId, usize>,
}

/// Why an account gets no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FairShareRefusal {
    /// It would hold more than one account may.
    OfAccount,
    /// What is free is kept for others.
    OfAll,
}

impl FairShares {
    pub const fn new(all: usize) -> Self {
        Self { free: all, held: BTreeMap::new() }
    }

    /// Takes so much more, of which an account may hold `most`.
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
        if 0 < more {
            self.held.insert(account.clone(), held + more);
        }
        Ok(())
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, account: &AccountId, less: usize) {
        self.free = self.free.saturating_add(less);
        match self.held.get_mut(account) {
            Some(held) if less < *held => *held -= less,
            Some(_) | None => {
                self.held.remove(account);
            }
        }
    }

    pub fn held(&self, account: &AccountId) -> usize {
        self.held.get(account).copied().unwrap_or(0)
    }

    /// Whether nobody holds anything.
    pub fn are_back(&self) -> bool {
        self.held.is_empty()
    }

    /// Whose turn it is of those who wait for one each. Whoever is named has yet to take it.
    pub fn next<T: Ord>(&self, waiting: BTreeMap<AccountId, Vec<T>>) -> Vec<T> {
        share_fairly(waiting, &self.held, self.free)
    }

    /// What is left, some of it perhaps for others only.
    pub const fn free(&self) -> usize {
        self.free
    }

    /// What all hold together.
    pub fn in_use(&self) -> usize {
        self.held.values().sum()
    }
}

/// Gives free places to those who wait: accounts take turns, the one that holds the fewest first, and
/// each begins with the first that it has. Of accounts that hold as many, the first is the one whose
/// own is first. No account gets more than its share.
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
        // Nobody else holds less.
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
    fn accounts_take_turns_and_begin_with_what_is_first() {
        let many: Vec<u32> = (0..100).rev().collect();
        let all = waiting(&[("a", &many), ("b", &[900, 800])]);
        assert_eq!(share_fairly(all.clone(), &held(&[]), 6), [0, 800, 1, 900, 2, 3]);
        // Who holds fewer comes first until both hold as many.
        assert_eq!(share_fairly(all, &held(&[("a", 1)]), 3), [800, 0, 900]);
    }

    #[test]
    fn what_is_first_comes_first_where_accounts_hold_as_many() {
        let all = waiting(&[("a", &[30]), ("b", &[10]), ("c", &[20])]);
        assert_eq!(share_fairly(all, &held(&[]), 9), [10, 20, 30]);
    }

    #[test]
    fn nobody_gets_all_places() {
        let many: Vec<u32> = (0..1_000).collect();
        let all = || waiting(&[("a", &many)]);
        assert_eq!(share_fairly(all(), &held(&[]), 256).len(), 224);
        assert_eq!(share_fairly(all(), &held(&[("a", 224)]), 32).len(), 0);
        assert_eq!(share_fairly(all(), &held(&[("a", 223)]), 33).len(), 1);
        // There is one for whoever comes next, and for the one after that.
        let both = || waiting(&[("a", &many), ("b", &many)]);
        assert_eq!(share_fairly(both(), &held(&[("a", 224)]), 32).len(), 28);
        // Where there are few places, one account may have all.
        for few in 1..8 {
            assert_eq!(share_fairly(all(), &held(&[]), few).len(), few);
        }
    }

    #[test]
    fn whoever_comes_next_finds_something_left() {
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
        // What is taken in large pieces leaves as much.
        assert_eq!(shares.take(&a, 900, usize::MAX), Err(FairShareRefusal::OfAll));
        assert_eq!(shares.take(&a, 800, usize::MAX), Ok(()));
        assert_eq!(shares.take(&a, 0, usize::MAX), Ok(()));
    }
}
