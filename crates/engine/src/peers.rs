//! Other nodes: this node hires their executors, and does jobs for them.
//!
//! A job for another node is a call of a seat like any other, and a job of another node is a round
//! like any other. All messages are signed documents; the transport only carries them.

mod answer;
mod call;
mod invite;
mod job;
mod manage;
mod message;
mod presence;
mod serve;
mod statement;

use std::{collections::BTreeMap, sync::Arc};

use jurat_core::{
    code::ProblemCode,
    list::ListPage,
    peer::{Peer, PeerId, PeerStanding, scope::NodeScope},
};
use jurat_mesh::{Mesh, MeshGate, MeshRequests};
use jurat_store::Behalf;
use parking_lot::Mutex;

pub(crate) use self::{answer::earned, call::PeerCall};
pub use self::{
    invite::{IssuedInvitation, PeerInvitationOrder},
    manage::{NodeView, PeerOrder, PeerView},
    statement::{PeerStatement, StatedBooks},
};
use crate::{Engine, EngineError};

/// More peers than this are not read.
const MOST_PEERS: u32 = 10_000;

/// What a node says of itself to others.
#[derive(Debug, Clone, Default)]
pub struct PeerSettings {
    /// The name that it proposes.
    pub name: Option<String>,
    /// The network that its invitations name.
    pub network: Option<String>,
    /// The scopes that it serves.
    pub scopes: Vec<NodeScope>,
}

/// The endpoint for other nodes, with what arrives there.
#[derive(Debug)]
pub struct PeerParts {
    pub mesh: Mesh,
    pub requests: MeshRequests,
    pub settings: PeerSettings,
}

/// The endpoint of a running node.
#[derive(Debug)]
pub(crate) struct PeerLink {
    pub(crate) mesh: Mesh,
    pub(crate) settings: PeerSettings,
    /// Taken by the loop that serves them.
    requests: Mutex<Option<MeshRequests>>,
}

impl From<PeerParts> for PeerLink {
    fn from(parts: PeerParts) -> Self {
        let PeerParts { mesh, requests, settings } = parts;
        Self { mesh, settings, requests: Mutex::new(Some(requests)) }
    }
}

impl PeerLink {
    /// What arrives from other nodes; only the first caller gets it.
    fn take_requests(&self) -> Option<MeshRequests> {
        self.requests.lock().take()
    }
}

impl Engine {
    /// The endpoint for other nodes, if this node has one.
    pub(crate) fn peer_link(&self) -> Result<&PeerLink, EngineError> {
        self.inner.peers.as_ref().ok_or_else(|| {
            let detail = "this server has no endpoint for other nodes; set `node.listen`, and start it again";
            EngineError::refused(ProblemCode::NotSupported, detail)
        })
    }

    /// The identity of this node: the public key with which it signs.
    pub(crate) fn own_peer_id(&self) -> PeerId {
        let mut key = [0; 32];
        let (_, bytes) = self.node_key();
        if bytes.len() == key.len() {
            key.copy_from_slice(bytes);
        }
        PeerId::of_key(&key)
    }

    /// All known nodes, by their ids.
    pub(crate) async fn known_peers(&self) -> Result<BTreeMap<PeerId, Arc<Peer>>, EngineError> {
        if self.inner.peers.is_none() {
            return Ok(BTreeMap::new());
        }
        let page = ListPage { after: None, limit: MOST_PEERS };
        let peers = self.inner.store.peers().list(&Behalf::Platform, &page).await?;
        Ok(peers.into_iter().map(|peer| (peer.id.clone(), Arc::new(peer))).collect())
    }

    /// A known node, as it is now.
    pub(crate) async fn peer_of(&self, id: &PeerId) -> Result<Option<Arc<Peer>>, EngineError> {
        Ok(self.pool_view().await?.peers.get(id).cloned())
    }

    /// Refuses connections of blocked nodes at once. Others are known only by their messages:
    /// a stranger may have an invitation.
    pub(crate) fn guard_connections(&self) {
        let Some(link) = &self.inner.peers else { return };
        let engine = Arc::downgrade(&self.inner);
        link.mesh.set_gate(Arc::new(move |id: &str| {
            let Some(inner) = engine.upgrade() else { return MeshGate::Refuse };
            let known = inner.pool.last_view();
            let peer = PeerId::parse(id).ok().and_then(|id| known?.peers.get(&id).cloned());
            let is_blocked = peer.is_some_and(|peer| peer.standing == PeerStanding::Blocked);
            if is_blocked { MeshGate::Refuse } else { MeshGate::Admit }
        }));
    }
}
