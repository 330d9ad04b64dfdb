//! Limits connections in total and for each address.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use ipnet::IpNet;
use jurat_engine::{KeyedPermit, KeyedPermits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::inbound::InboundLimits;

#[derive(Debug)]
pub(crate) struct ConnectionPermits {
    all: Arc<Semaphore>,
    per_address: usize,
    addresses: Arc<KeyedPermits<IpAddr>>,
    /// Proxies, which carry the connections of many clients.
    trusted: Arc<[IpNet]>,
}

/// The permit of a connection, which is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    _of_all: OwnedSemaphorePermit,
    _of_address: Option<KeyedPermit<IpAddr>>,
}

impl ConnectionPermits {
    pub(crate) fn new(inbound: &InboundLimits, trusted: Arc<[IpNet]>) -> Self {
        Self {
            all: Arc::new(Semaphore::new(inbound.max_connections)),
            per_address: inbound.max_connections_per_address,
            addresses: KeyedPermits::new(),
            trusted,
        }
    }

    /// A permit, if there is one left for this address.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let is_proxy = self.trusted.iter().any(|range| range.contains(&peer.to_canonical()));
        let of_address = match counted(peer).filter(|_| !is_proxy) {
            Some(address) => Some(self.addresses.take(&address, self.per_address)?),
            None => None,
        };
        Some(ConnectionPermit { _of_all: of_all, _of_address: of_address })
    }
}

/// The network that counts as one address; `None` for this machine itself.
fn counted(peer: IpAddr) -> Option<IpAddr> {
    match peer.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(IpAddr::V4(address)),
        // An IPv6 user has all 2^64 addresses of its network.
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Some(IpAddr::V6(Ipv6Addr::from(network)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(all: usize, per_address: usize) -> ConnectionPermits {
        let inbound = InboundLimits {
            max_connections: all,
            max_connections_per_address: per_address,
            ..InboundLimits::default()
        };
        ConnectionPermits::new(&inbound, Arc::new(["198.51.100.0/24".parse().unwrap()]))
    }

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_proxy_may_have_the_connections_of_many_clients() {
        let places = permits(3, 1);
        let taken = [(); 3].map(|()| places.take(at("::ffff:198.51.100.7")));
        assert!(taken.iter().all(Option::is_some));
        assert!(places.take(at("198.51.100.7")).is_none(), "all are taken");
    }

    #[test]
    fn one_address_gets_its_share_without_affecting_another() {
        let places = permits(10, 2);
        let (first, second) = (places.take(at("192.0.2.1")), places.take(at("192.0.2.1")));
        assert!(first.is_some() && second.is_some());
        assert!(places.take(at("192.0.2.1")).is_none());
        assert!(places.take(at("::ffff:192.0.2.1")).is_none(), "the same in another spelling");
        assert!(places.take(at("192.0.2.2")).is_some());
        drop(first);
        assert!(places.take(at("192.0.2.1")).is_some());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let places = permits(10, 1);
        let _first = places.take(at("2001:db8::1")).unwrap();
        assert!(places.take(at("2001:db8::2")).is_none());
        assert!(places.take(at("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn this_machine_may_use_every_connection_slot() {
        let places = permits(3, 1);
        let kept: Vec<_> = (0..3).filter_map(|_| places.take(at("127.0.0.1"))).collect();
        assert_eq!(kept.len(), 3);
        assert!(places.take(at("::1")).is_none());
        assert!(places.take(at("192.0.2.1")).is_none());
        drop(kept);
        assert!(places.take(at("192.0.2.1")).is_some());
        assert!(places.addresses.is_empty(), "nothing is kept of who is gone");
    }
}
