//! Turns settings into those of the endpoint for other nodes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use jurat_engine::PeerSettings;

use crate::settings::{
    NODE_FIND_LOCAL, NODE_LISTEN, NODE_NAME, NODE_NETWORK, NODE_RELAYS, NODE_SCOPES, Settings,
    listed, node_scope,
};

/// The port for other nodes, beside 5872 for callers.
const PORT: u16 = 5873;

/// The endpoint for other nodes.
#[derive(Debug, Clone)]
pub(crate) struct NodeEndpoint {
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) relays: Vec<String>,
    pub(crate) finds_local: bool,
    /// What the node says of itself.
    pub(crate) peers: PeerSettings,
}

/// The endpoint, if any setting of it is set. The values have already been checked.
pub(super) fn endpoint(settings: &Settings) -> Option<NodeEndpoint> {
    let text = |setting| settings.text(setting).map(str::to_owned);
    let list = |setting| settings.text(setting).map(listed).into_iter().flatten();
    let finds_local = settings.text(&NODE_FIND_LOCAL) == Some("on");
    let given = [&NODE_LISTEN, &NODE_NAME, &NODE_NETWORK, &NODE_SCOPES, &NODE_RELAYS];
    let is_wanted = finds_local || given.iter().any(|it| settings.text(it).is_some());
    is_wanted.then(|| NodeEndpoint {
        listen: match settings.text(&NODE_LISTEN) {
            Some(_) => list(&NODE_LISTEN).filter_map(|it| it.parse().ok()).collect(),
            None => loopback(),
        },
        relays: list(&NODE_RELAYS).map(str::to_owned).collect(),
        finds_local,
        peers: PeerSettings {
            name: text(&NODE_NAME),
            network: text(&NODE_NETWORK),
            scopes: list(&NODE_SCOPES).filter_map(node_scope).collect(),
        },
    })
}

/// The usual addresses, without the one of a family that this machine does not have.
fn loopback() -> Vec<SocketAddr> {
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, PORT));
    let has_v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    std::iter::once(v4).chain(has_v6.then_some(v6)).collect()
}
