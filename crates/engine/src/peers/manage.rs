//! The operator's decisions about other nodes.

use std::time::Duration;

use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    list::ListPage,
    peer::{
        Peer, PeerId, PeerStanding,
        book::{BookPosition, PeerBookingRecord},
        scope::NodeScope,
        terms::PeerTerms,
    },
};
use jurat_mesh::NodeAddress;
use jurat_store::{Behalf, NotFound, PeerBookingsQuery, WriteOutcome};
use jurat_wire::mesh::SessionOffer;

use super::PeerLink;
use crate::{Engine, EngineError, access::require_scope};

const OFFERS_WITHIN: Duration = Duration::from_secs(5);

/// This node, as others reach it.
#[derive(Debug, Clone)]
pub struct NodeView {
    pub id: PeerId,
    /// Where others reach it; `None` without an endpoint.
    pub address: Option<NodeAddress>,
    pub name: Option<String>,
    pub network: Option<String>,
    pub scopes: Vec<NodeScope>,
    pub trusted_peers: usize,
    pub blocked_peers: usize,
}

/// A peer, and whether a connection to it is open.
#[derive(Debug, Clone)]
pub struct PeerView {
    pub peer: Peer,
    pub is_connected: bool,
}

/// A node to be trusted.
#[derive(Debug, Clone)]
pub struct PeerOrder {
    pub id: PeerId,
    pub name: Option<String>,
    /// Socket addresses; empty keeps the known ones.
    pub direct: Vec<String>,
    pub relays: Vec<String>,
    pub terms: PeerTerms,
}

impl Engine {
    /// This node, as others reach it.
    pub async fn node_show(&self, caller: &Caller) -> Result<NodeView, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let peers = self.pool_view().await?.peers.clone();
        let count = |standing| peers.values().filter(|peer| peer.standing == standing).count();
        let link = self.inner.peers.as_ref();
        let settings = link.map(|link| link.settings.clone()).unwrap_or_default();
        Ok(NodeView {
            id: self.own_peer_id(),
            address: link.map(|link| link.mesh.address()),
            name: settings.name,
            network: settings.network,
            scopes: settings.scopes,
            trusted_peers: count(PeerStanding::Trusted),
            blocked_peers: count(PeerStanding::Blocked),
        })
    }

    pub async fn peer_list(
        &self,
        caller: &Caller,
        page: &ListPage,
    ) -> Result<Vec<PeerView>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let peers = self.inner.store.peers().list(&Behalf::Platform, page).await?;
        Ok(peers.into_iter().map(|peer| self.peer_view(peer)).collect())
    }

    pub async fn peer_show(&self, caller: &Caller, id: &PeerId) -> Result<PeerView, EngineError> {
        require_scope(caller, Scope::Admin)?;
        Ok(self.peer_view(self.stored_peer(id).await?))
    }

    /// What a peer lends this node now, as the peer signs it.
    pub async fn peer_offers(
        &self,
        caller: &Caller,
        id: &PeerId,
    ) -> Result<Vec<SessionOffer>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        self.peer_link()?;
        let peer = self.stored_peer(id).await?;
        let offers = self.offers_of(&peer, None, OFFERS_WITHIN).await;
        offers.map_err(|problem| {
            let detail = format!("the node {} does not say what it lends: {problem}", id.short());
            EngineError::refused(ProblemCode::PeerUnavailable, detail)
        })
    }

    /// The jobs that this node and a peer did for each other, newest first.
    pub async fn peer_bookings(
        &self,
        caller: &Caller,
        id: &PeerId,
        before: Option<BookPosition>,
        limit: u32,
    ) -> Result<Vec<PeerBookingRecord>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let query = PeerBookingsQuery { peer: id.clone(), before, limit };
        Ok(self.inner.store.peers().bookings(&Behalf::Platform, &query).await?)
    }

    /// Trusts a node under these terms, from now on and whatever it was before.
    pub async fn peer_trust(
        &self,
        caller: &Caller,
        order: PeerOrder,
    ) -> Result<PeerView, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let link = self.peer_link()?;
        if order.id == self.own_peer_id() {
            return Err(EngineError::invalid("id", "is this node itself"));
        }
        let now = self.inner.clock.now();
        let known = self.inner.store.peers().get(&Behalf::Platform, &order.id).await?;
        let keep = |new: Vec<String>, old: Option<&Vec<String>>| {
            if new.is_empty() { old.cloned().unwrap_or_default() } else { new }
        };
        let peer = Peer {
            name: order.name.or_else(|| known.as_ref()?.name.clone()),
            standing: PeerStanding::Trusted,
            direct: keep(order.direct, known.as_ref().map(|it| &it.direct)),
            relays: keep(order.relays, known.as_ref().map(|it| &it.relays)),
            network: known.as_ref().and_then(|it| it.network.clone()),
            terms: order.terms,
            added_at: known.as_ref().map_or(now, |it| it.added_at),
            changed_at: now,
            id: order.id,
        };
        self.keep_peer(&peer).await?;
        // A connection that is open would go on to the old address.
        if known
            .is_some_and(|it| (it.direct, it.relays) != (peer.direct.clone(), peer.relays.clone()))
        {
            disconnect(link, &peer.id);
        }
        tracing::info!(peer.id = peer.id.as_str(), "trusts another node");
        Ok(self.peer_view(peer))
    }

    /// Blocks a node: it is not served, not asked, and its connections end at once.
    pub async fn peer_block(&self, caller: &Caller, id: &PeerId) -> Result<PeerView, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let link = self.peer_link()?;
        if *id == self.own_peer_id() {
            return Err(EngineError::invalid("id", "is this node itself"));
        }
        let now = self.inner.clock.now();
        let known = self.inner.store.peers().get(&Behalf::Platform, id).await?;
        let fresh = || Peer {
            id: id.clone(),
            name: None,
            standing: PeerStanding::Blocked,
            direct: Vec::new(),
            relays: Vec::new(),
            network: None,
            terms: PeerTerms::default(),
            added_at: now,
            changed_at: now,
        };
        let known = known.unwrap_or_else(fresh);
        let peer = Peer { standing: PeerStanding::Blocked, changed_at: now, ..known };
        self.keep_peer(&peer).await?;
        disconnect(link, id);
        tracing::info!(peer.id = id.as_str(), "blocks another node");
        Ok(self.peer_view(peer))
    }

    /// Forgets a node. What was booked stays.
    pub async fn peer_remove(&self, caller: &Caller, id: &PeerId) -> Result<(), EngineError> {
        require_scope(caller, Scope::Admin)?;
        match self.inner.store.peers().remove(&Behalf::Platform, id, None).await? {
            WriteOutcome::Done(()) | WriteOutcome::Repeated => {}
            WriteOutcome::Refused(NotFound) => return Err(unknown_peer(id)),
        }
        self.inner.pool.forget();
        self.pool_view().await?;
        if let Some(link) = &self.inner.peers {
            disconnect(link, id);
        }
        tracing::info!(peer.id = id.as_str(), "removed another node");
        Ok(())
    }

    /// Stores a peer, and reads all of them again, so that the change holds at once.
    pub(super) async fn keep_peer(&self, peer: &Peer) -> Result<(), EngineError> {
        self.inner.store.peers().put(&Behalf::Platform, peer, None).await?;
        self.inner.pool.forget();
        self.pool_view().await?;
        Ok(())
    }

    pub(super) async fn stored_peer(&self, id: &PeerId) -> Result<Peer, EngineError> {
        let found = self.inner.store.peers().get(&Behalf::Platform, id).await?;
        found.ok_or_else(|| unknown_peer(id))
    }

    fn peer_view(&self, peer: Peer) -> PeerView {
        let link = self.inner.peers.as_ref();
        let is_connected = link.is_some_and(|link| link.mesh.is_connected(peer.id.as_str()));
        PeerView { peer, is_connected }
    }
}

/// Ends the connections with a node, if there are any.
fn disconnect(link: &PeerLink, id: &PeerId) {
    if let Err(error) = link.mesh.disconnect(id.as_str()) {
        tracing::debug!(peer.id = id.as_str(), error = %error, "no node has this id");
    }
}

fn unknown_peer(id: &PeerId) -> EngineError {
    EngineError::NotFound { what: "peer", id: id.to_string() }
}
