//! One lock for each key, as long as somebody uses it.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Locks by key. A lock without a holder or a waiter is forgotten.
#[derive(Debug)]
pub(crate) struct KeyedLocks<K> {
    locks: Mutex<BTreeMap<K, Arc<AsyncMutex<()>>>>,
}

/// The lock of one key, which stays known while this exists.
#[derive(Debug)]
pub(crate) struct KeyedLock(Arc<AsyncMutex<()>>);

/// A held lock, released when this is dropped.
pub(crate) type KeyedLockGuard = OwnedMutexGuard<()>;

impl<K> Default for KeyedLocks<K> {
    fn default() -> Self {
        Self { locks: Mutex::new(BTreeMap::new()) }
    }
}

impl<K: Ord> KeyedLocks<K> {
    /// The lock of a key.
    pub(crate) fn of(&self, key: K) -> KeyedLock {
        let mut locks = self.locks.lock();
        forget_unused(&mut locks);
        KeyedLock(Arc::clone(locks.entry(key).or_default()))
    }

    /// The lock of a key, if somebody holds it or waits for it.
    pub(crate) fn in_use(&self, key: &K) -> Option<KeyedLock> {
        let mut locks = self.locks.lock();
        forget_unused(&mut locks);
        locks.get(key).map(|lock| KeyedLock(Arc::clone(lock)))
    }
}

impl KeyedLock {
    /// Waits for the lock; waiters get it in their order.
    pub(crate) async fn acquire(self) -> KeyedLockGuard {
        self.0.lock_owned().await
    }
}

/// Only the map refers to an unused lock.
fn forget_unused<K: Ord>(locks: &mut BTreeMap<K, Arc<AsyncMutex<()>>>) {
    locks.retain(|_, lock| 1 < Arc::strong_count(lock));
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_key_has_one_holder_and_is_forgotten_after_its_last() {
        let locks = KeyedLocks::default();
        assert!(locks.in_use(&"a").is_none());
        let held = locks.of("a").acquire().await;
        assert!(locks.of("a").acquire().now_or_never().is_none());
        assert!(locks.of("b").acquire().now_or_never().is_some());
        assert!(locks.in_use(&"a").is_some());
        drop(held);
        assert!(locks.in_use(&"a").is_none());
        assert!(locks.locks.lock().is_empty());
    }
}
