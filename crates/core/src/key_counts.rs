//! Counts by key.

use std::collections::{BTreeMap, btree_map};

/// How many units each key holds. A key that holds none has no entry, so idle keys take no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCounts<K> {
    counts: BTreeMap<K, usize>,
}

impl<K> Default for KeyCounts<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> KeyCounts<K> {
    /// No key holds anything.
    pub const fn new() -> Self {
        Self { counts: BTreeMap::new() }
    }

    /// The keys that hold something, with their counts.
    pub fn iter(&self) -> btree_map::Iter<'_, K, usize> {
        self.counts.iter()
    }

    /// How many units all keys hold together.
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// Whether no key holds anything.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

impl<K: Ord + Clone> KeyCounts<K> {
    /// How many units the key holds.
    pub fn of(&self, key: &K) -> usize {
        self.counts.get(key).copied().unwrap_or(0)
    }

    /// Adds units to a key.
    pub fn add(&mut self, key: &K, more: usize) {
        if more == 0 {
            return;
        }
        match self.counts.get_mut(key) {
            Some(count) => *count = count.saturating_add(more),
            None => {
                self.counts.insert(key.clone(), more);
            }
        }
    }

    /// Removes units from a key; no count falls below zero.
    pub fn remove(&mut self, key: &K, less: usize) {
        match self.counts.get_mut(key) {
            Some(count) if less < *count => *count -= less,
            Some(_) => {
                self.counts.remove(key);
            }
            None => {}
        }
    }
}

impl<'a, K> IntoIterator for &'a KeyCounts<K> {
    type Item = (&'a K, &'a usize);
    type IntoIter = btree_map::Iter<'a, K, usize>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_holds_nothing_has_no_entry() {
        let mut counts = KeyCounts::new();
        counts.add(&"a", 2);
        counts.add(&"a", 1);
        counts.add(&"b", 1);
        counts.add(&"c", 0);
        assert_eq!((counts.of(&"a"), counts.of(&"c"), counts.total()), (3, 0, 4));
        counts.remove(&"a", 1);
        counts.remove(&"b", 5);
        counts.remove(&"c", 1);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(&"a", &2)]);
        counts.remove(&"a", 2);
        assert!(counts.is_empty());
    }
}
