//! Permits of which each key may hold a limited number.

use std::sync::Arc;

use jurat_core::key_counts::KeyCounts;
use parking_lot::Mutex;

/// How many permits each key holds.
#[derive(Debug)]
pub struct KeyedPermits<K> {
    held: Mutex<KeyCounts<K>>,
}

/// A permit that its key holds until this is dropped.
#[derive(Debug)]
pub struct KeyedPermit<K: Ord + Clone> {
    of: Arc<KeyedPermits<K>>,
    key: K,
}

impl<K: Ord + Clone> KeyedPermits<K> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { held: Mutex::new(KeyCounts::new()) })
    }

    /// Takes a permit for a key that may hold at most `most`.
    pub fn take(self: &Arc<Self>, key: &K, most: usize) -> Option<KeyedPermit<K>> {
        let mut held = self.held.lock();
        if most <= held.of(key) {
            return None;
        }
        held.add(key, 1);
        Some(KeyedPermit { of: Arc::clone(self), key: key.clone() })
    }

    /// Whether no key holds a permit.
    pub fn is_empty(&self) -> bool {
        self.held.lock().is_empty()
    }
}

impl<K: Ord + Clone> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        self.of.held.lock().remove(&self.key, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_limit_and_idle_keys_take_no_memory() {
        let permits = KeyedPermits::new();
        let (first, second) = (permits.take(&"a", 2), permits.take(&"a", 2));
        assert!(first.is_some() && second.is_some());
        assert!(permits.take(&"a", 2).is_none());
        assert!(permits.take(&"b", 0).is_none());
        let other = permits.take(&"b", 1);
        assert!(other.is_some());
        drop(first);
        let third = permits.take(&"a", 2);
        assert!(third.is_some());
        drop((second, third, other));
        assert!(permits.is_empty());
    }
}
