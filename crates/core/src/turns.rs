//! Whose turn it is when several accounts want the same places.

use std::{collections::BTreeMap, vec::IntoIter};

use crate::id::AccountId;

/// How many places an account may hold for each that is left, so that whoever comes next finds one:
/// alone it gets seven eighths of them.
const SHARE: usize = 7;

/// Gives free places to those who wait: accounts take turns, the one that holds the fewest first, and
/// each begins with the first that it has. Of accounts that hold as many, the first is the one whose
/// own is first. No account gets more than its share.
pub fn take_turns<T: Ord>(
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
        if SHARE.saturating_mul(free - taken.len()) <= held {
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
        assert_eq!(take_turns(all.clone(), &held(&[]), 6), [0, 800, 1, 900, 2, 3]);
        // Who holds fewer comes first until both hold as many.
        assert_eq!(take_turns(all, &held(&[("a", 1)]), 3), [800, 0, 900]);
    }

    #[test]
    fn what_is_first_comes_first_where_accounts_hold_as_many() {
        let all = waiting(&[("a", &[30]), ("b", &[10]), ("c", &[20])]);
        assert_eq!(take_turns(all, &held(&[]), 9), [10, 20, 30]);
    }

    #[test]
    fn nobody_gets_all_places() {
        let many: Vec<u32> = (0..1_000).collect();
        let all = || waiting(&[("a", &many)]);
        assert_eq!(take_turns(all(), &held(&[]), 256).len(), 224);
        assert_eq!(take_turns(all(), &held(&[("a", 224)]), 32).len(), 0);
        assert_eq!(take_turns(all(), &held(&[("a", 223)]), 33).len(), 1);
        // There is one for whoever comes next, and for the one after that.
        let both = || waiting(&[("a", &many), ("b", &many)]);
        assert_eq!(take_turns(both(), &held(&[("a", 224)]), 32).len(), 28);
        // Where there are few places, one account may have all.
        for few in 1..8 {
            assert_eq!(take_turns(all(), &held(&[]), few).len(), few);
        }
    }
}
