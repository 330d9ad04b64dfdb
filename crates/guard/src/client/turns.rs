//! Turns for large replies, so that many at once from one host take little memory.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use http::uri::Authority;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Large replies that are read from one host at once.
const AT_ONCE: usize = 2;
/// Hosts are told apart by a hash, so that their number costs no memory.
const HOSTS: usize = 256;

/// Whoever waits for a turn does not read, so that what was not read yet waits at its sender. A
/// host that never comes to an end of its reply holds up only itself.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    hosts: Arc<[Arc<Semaphore>]>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { hosts: (0..HOSTS).map(|_| Arc::new(Semaphore::new(AT_ONCE))).collect() }
    }
}

impl Turns {
    /// Waits for a turn, which ends when it is dropped.
    pub(super) async fn next(&self, host: Option<&Authority>) -> Option<OwnedSemaphorePermit> {
        let mut hash = DefaultHasher::new();
        host.map(Authority::as_str).hash(&mut hash);
        let index = usize::try_from(hash.finish() % HOSTS as u64).unwrap_or_default();
        let turns = Arc::clone(self.hosts.get(index)?);
        // These are never closed.
        turns.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_host_that_takes_all_its_turns_holds_up_no_other() {
        let turns = Turns::default();
        let (one, other) = (Authority::from_static("a:1"), Authority::from_static("b:1"));
        let held = [turns.next(Some(&one)).await, turns.next(Some(&one)).await];
        assert!(turns.next(Some(&one)).now_or_never().is_none());
        assert!(turns.next(Some(&other)).now_or_never().is_some());
        drop(held);
        assert!(turns.next(Some(&one)).now_or_never().is_some());
    }
}
