//! Permits to read large replies, so that many replies from one host take little memory.

use std::{collections::BTreeMap, sync::Arc};

use http::uri::Authority;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many large replies are read from one host concurrently.
const AT_ONCE: usize = 2;
/// Beyond this many hosts, idle hosts are forgotten.
const HOSTS: usize = 1_024;

/// A call without a permit does not read, so that unread data stays with its sender. Each host and
/// port has its own permits, so a host that never finishes its reply delays only itself. There are
/// never more entries than calls in progress, or `HOSTS` plus one.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadPermits {
    hosts: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
}

impl ReadPermits {
    /// Waits for a permit, which is returned when it is dropped.
    pub(super) async fn acquire(&self, host: Option<&Authority>) -> Option<OwnedSemaphorePermit> {
        // The semaphores are never closed.
        self.of(host.map_or("", Authority::as_str)).acquire_owned().await.ok()
    }

    fn of(&self, host: &str) -> Arc<Semaphore> {
        // The map is consistent at any time, even if another thread panicked with it.
        let mut hosts = self.hosts.lock();
        if HOSTS < hosts.len() {
            // A holder or waiter has a reference of its own besides the map's.
            hosts.retain(|_, permits| 1 < Arc::strong_count(permits));
        }
        let permits =
            hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE)));
        Arc::clone(permits)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// A permit, if one is free. No runtime is involved, whose cooperative budget would make a task
    /// with many permits yield.
    fn at_once(permits: &ReadPermits, host: &Authority) -> Option<OwnedSemaphorePermit> {
        permits.acquire(Some(host)).now_or_never().flatten()
    }

    /// All permits of a host.
    fn all_of(permits: &ReadPermits, host: &Authority) -> Vec<OwnedSemaphorePermit> {
        let held: Vec<_> =
            std::iter::from_fn(|| at_once(permits, host)).take(AT_ONCE + 1).collect();
        assert_eq!(held.len(), AT_ONCE, "{host} waits for another, or for nobody");
        held
    }

    fn hosts() -> impl Iterator<Item = Authority> {
        (1..=3_000).map(|port| format!("host:{port}").parse().unwrap())
    }

    #[test]
    fn a_host_that_holds_all_its_permits_delays_no_other() {
        let permits = ReadPermits::default();
        let (one, other) = (Authority::from_static("a:1"), Authority::from_static("b:1"));
        let held = all_of(&permits, &one);
        assert!(at_once(&permits, &other).is_some());
        drop(held);
        assert!(at_once(&permits, &one).is_some());
    }

    #[test]
    fn among_thousands_of_hosts_none_waits_for_another() {
        let permits = ReadPermits::default();
        let held: Vec<_> = hosts().map(|host| all_of(&permits, &host)).collect();
        // All of them are held, so none was forgotten, however many there are.
        for host in hosts() {
            assert!(at_once(&permits, &host).is_none(), "{host} was forgotten");
        }
        drop(held);
    }

    #[test]
    fn idle_hosts_are_forgotten() {
        let permits = ReadPermits::default();
        let busy = Authority::from_static("busy:1");
        let held = all_of(&permits, &busy);
        for host in hosts() {
            assert!(at_once(&permits, &host).is_some(), "{host}");
            assert!(permits.hosts.lock().len() <= HOSTS + 1);
        }
        assert!(at_once(&permits, &busy).is_none(), "what is held stays known");
        drop(held);
        assert!(at_once(&permits, &busy).is_some());
    }
}
