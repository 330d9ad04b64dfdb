//! Limits the connections whose peer has not yet proved its id, in total and per source.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use iroh::endpoint::IncomingAddr;
use parking_lot::Mutex;

/// How many handshakes may be in progress.
const MOST: usize = 64;
/// From here on a source has to show that it receives what is sent to it.
const MANY: usize = MOST / 2;
/// How many of them may come from one source.
const MOST_PER_SOURCE: usize = 8;

/// How much of an IPv6 address its owner chooses.
const V6_HOST_BITS: u32 = 64;

/// Who begins a handshake, as far as it is known by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HandshakeSource {
    V4([u8; 4]),
    /// The network, because the rest of the address costs its owner nothing.
    V6(u128),
    Relayed([u8; 32]),
    Other,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Handshakes {
    in_progress: Arc<Mutex<BTreeMap<HandshakeSource, usize>>>,
}

/// What to do with the first packet of a connection.
#[derive(Debug)]
pub(crate) enum HandshakeChoice {
    Begin(HandshakePermit),
    Validate,
    Refuse,
}

/// One handshake that is in progress.
#[derive(Debug)]
pub(crate) struct HandshakePermit {
    handshakes: Handshakes,
    source: HandshakeSource,
}

impl Handshakes {
    pub(crate) fn choose(&self, from: &IncomingAddr, is_validated: bool) -> HandshakeChoice {
        let source = HandshakeSource::from(from);
        let mut in_progress = self.in_progress.lock();
        let total: usize = in_progress.values().sum();
        if MOST <= total {
            return HandshakeChoice::Refuse;
        }
        if MANY <= total && !is_validated {
            return HandshakeChoice::Validate;
        }
        let of_source = in_progress.entry(source).or_default();
        if MOST_PER_SOURCE <= *of_source {
            return HandshakeChoice::Refuse;
        }
        *of_source += 1;
        HandshakeChoice::Begin(HandshakePermit { handshakes: self.clone(), source })
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut in_progress = self.handshakes.in_progress.lock();
        if let Some(of_source) = in_progress.get_mut(&self.source) {
            *of_source = of_source.saturating_sub(1);
            if *of_source == 0 {
                in_progress.remove(&self.source);
            }
        }
    }
}

impl From<&IncomingAddr> for HandshakeSource {
    fn from(address: &IncomingAddr) -> Self {
        match address {
            IncomingAddr::Ip(address) => match address.ip().to_canonical() {
                IpAddr::V4(ip) => Self::V4(ip.octets()),
                IpAddr::V6(ip) => Self::V6(ip.to_bits() >> V6_HOST_BITS),
            },
            IncomingAddr::Relay { endpoint_id, .. } => Self::Relayed(*endpoint_id.as_bytes()),
            IncomingAddr::Custom(_) | _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> IncomingAddr {
        IncomingAddr::Ip(text.parse().unwrap())
    }

    #[track_caller]
    fn begin(handshakes: &Handshakes, source: &IncomingAddr) -> HandshakePermit {
        let HandshakeChoice::Begin(permit) = handshakes.choose(source, true) else {
            panic!("the handshake was not begun");
        };
        permit
    }

    #[test]
    fn one_source_cannot_take_every_handshake() {
        let handshakes = Handshakes::default();
        let (greedy, neighbour) = (from("[2001:db8::1]:1"), from("[2001:db8::2]:2"));
        let permits: Vec<_> = (0..MOST_PER_SOURCE).map(|_| begin(&handshakes, &greedy)).collect();
        assert!(matches!(handshakes.choose(&neighbour, true), HandshakeChoice::Refuse));
        let _other = begin(&handshakes, &from("[2001:db8:1::1]:1"));
        drop(permits);
        let _later = begin(&handshakes, &neighbour);
    }

    #[test]
    fn many_sources_are_validated_first_and_refused_in_the_end() {
        let handshakes = Handshakes::default();
        let source = |index: usize| from(&format!("192.0.2.{index}:9"));
        let mut permits: Vec<_> = (0..MANY).map(|it| begin(&handshakes, &source(it))).collect();
        let next = source(MANY);
        assert!(matches!(handshakes.choose(&next, false), HandshakeChoice::Validate));
        permits.extend((MANY..MOST).map(|it| begin(&handshakes, &source(it))));
        assert!(matches!(handshakes.choose(&next, true), HandshakeChoice::Refuse));
        drop(permits);
        assert!(handshakes.in_progress.lock().is_empty());
    }
}
