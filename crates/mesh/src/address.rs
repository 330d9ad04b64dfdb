//! Where a node is reached, and by which id it proves that it is the node.

use std::{
    collections::BTreeSet,
    net::{SocketAddr, SocketAddrV6},
};

use iroh::{EndpointAddr, EndpointId, RelayUrl, SecretKey, TransportAddr};

/// How many addresses of a node are tried; more would make it a tool against third parties.
pub(crate) const MOST_ADDRESSES: usize = 8;

/// A node, and the ways to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeAddress {
    /// The Ed25519 public key, in 64 lower-case hexadecimal digits.
    pub id: String,
    /// The UDP addresses it listens on.
    pub direct: Vec<SocketAddr>,
    /// The URLs of the relays it is reached through.
    pub relays: Vec<String>,
}

/// The text is not the id of a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a node id, which is a public key in 64 lower-case hexadecimal digits")]
pub struct NodeIdError {
    /// The beginning of the text.
    text: String,
}

/// The id of the node that has this seed.
pub fn node_id(seed: &[u8; 32]) -> String {
    SecretKey::from_bytes(seed).public().to_string()
}

/// An address that was checked, with the relays that this node may use.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) id: EndpointId,
    direct: Vec<SocketAddr>,
    relays: Vec<RelayUrl>,
}

impl Destination {
    pub(crate) fn new(
        address: &NodeAddress,
        allowed_relays: &BTreeSet<RelayUrl>,
    ) -> Result<Self, NodeIdError> {
        let id = parse_id(&address.id)?;
        let direct = address.direct.iter().take(MOST_ADDRESSES).map(|it| plain(*it)).collect();
        let relays = address.relays.iter().take(MOST_ADDRESSES);
        let relays = relays.filter_map(|url| url.parse().ok());
        let relays = relays.filter(|url| allowed_relays.contains(url)).collect();
        Ok(Self { id, direct, relays })
    }

    pub(crate) fn to_endpoint_addr(&self) -> EndpointAddr {
        let direct = self.direct.iter().copied().map(TransportAddr::Ip);
        let relays = self.relays.iter().cloned().map(TransportAddr::Relay);
        EndpointAddr::from_parts(self.id, direct.chain(relays))
    }
}

/// Reads the one spelling of an id that is used: elsewhere it is compared as text.
pub(crate) fn parse_id(text: &str) -> Result<EndpointId, NodeIdError> {
    let mut bytes = [0; 32];
    let is_lower = !text.bytes().any(|it| it.is_ascii_uppercase());
    let id = hex::decode_to_slice(text, &mut bytes).ok().filter(|()| is_lower);
    let id = id.and_then(|()| EndpointId::from_bytes(&bytes).ok());
    id.ok_or_else(|| NodeIdError { text: text.chars().take(80).collect() })
}

/// An IPv6 address without what only the machine that wrote it understands.
fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(it) => SocketAddrV6::new(*it.ip(), it.port(), 0, it.scope_id()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = node_id(&[7; 32]);
        assert_eq!(parse_id(&id).unwrap().to_string(), id);
        for wrong in [id.to_uppercase(), format!("{id}00"), id.replacen('a', "g", 1), String::new()]
        {
            assert_eq!(parse_id(&wrong).unwrap_err().text, wrong);
        }
    }

    #[test]
    fn a_relay_that_the_operator_did_not_name_is_not_used() {
        let ours: RelayUrl = "https://relay.example".parse().unwrap();
        let address = NodeAddress {
            id: node_id(&[7; 32]),
            direct: Vec::new(),
            relays: vec!["https://relay.example".into(), "http://169.254.169.254/".into()],
        };
        let allowed = Destination::new(&address, &BTreeSet::from([ours.clone()])).unwrap();
        assert_eq!(allowed.to_endpoint_addr().relay_urls().collect::<Vec<_>>(), [&ours]);
        let without = Destination::new(&address, &BTreeSet::new()).unwrap();
        assert!(without.to_endpoint_addr().is_empty());
    }
}
