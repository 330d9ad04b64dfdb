//! Decides which addresses are public: anybody on the internet could reach them as well as we can.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses, such as `10.0.0.0/8`.
pub use ipnet::IpNet as Range;

/// The addresses that we may connect to.
#[derive(Debug, Default)]
pub(super) struct AddressFilter {
    ranges: Vec<Range>,
}

impl AddressFilter {
    pub(super) fn new(ranges: &[Range]) -> Self {
        Self { ranges: ranges.to_vec() }
    }

    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Without TLS, only ranges that the operator allowed.
    pub(super) fn allows(&self, address: IpAddr, is_plain: bool) -> bool {
        let address = address.to_canonical();
        let is_allowed = self.ranges.iter().any(|range| range.contains(&address));
        is_allowed || (!is_plain && is_public(address))
    }
}

/// Whether an address is public.
pub fn is_public(address: IpAddr) -> bool {
    // An IPv4 address mapped into IPv6 is judged as IPv4.
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Ranges that are not public, as first address and prefix length.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared between a provider and its customers.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, where clouds serve the secrets of their machines.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation, here and below.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // 6to4 relays.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast and reserved.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Ranges of global unicast that are not public: many of them embed an IPv4 address.
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    // Protocol assignments, including Teredo.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let differs = |first: Ipv4Addr| address.to_bits() ^ first.to_bits();
    SPECIAL_V4.iter().all(|(first, prefix)| differs(*first) >> (32 - prefix) != 0)
}

/// Only global unicast is public, which is one eighth of all addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let differs = |first: Ipv6Addr| address.to_bits() ^ first.to_bits();
    let is_special =
        SPECIAL_V6.iter().any(|(first, prefix)| differs(*first) >> (128 - prefix) == 0);
    address.to_bits() >> 125 == 0b001 && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:a9fe:a9fe",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn global_addresses_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450::1",
            "3ffe::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn only_ranges_that_the_operator_allows_work_without_tls() {
        let permitted = AddressFilter::new(&["127.0.0.0/8".parse().unwrap()]);
        let allows = |address: &str, is_plain| permitted.allows(address.parse().unwrap(), is_plain);
        assert!(allows("127.0.0.1", true) && allows("::ffff:127.0.0.1", true));
        assert!(allows("8.8.8.8", false) && !allows("8.8.8.8", true));
        assert!(!allows("10.0.0.1", false) && !allows("::1", false));
    }
}
