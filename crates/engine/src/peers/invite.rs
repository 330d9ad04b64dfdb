//! Two nodes become each other's peers by one line of text.

use std::time::Duration;

use bytes::Bytes;
use jurat_core::{
    account::caller::{Caller, Scope},
    canonical::digest,
    code::ProblemCode,
    id::AccountId,
    peer::{Peer, PeerId, PeerStanding, invitation::PeerInvitation, terms::PeerTerms},
    time::Timestamp,
};
use jurat_mesh::MeshInvitation;
use jurat_store::{Behalf, PeerInvitationRefusal, PeerInvitationUse, WriteOutcome};
use jurat_wire::mesh::{JoinReply, JoinRequest, NodeReply, NodeRequest, RefusalCode};

use super::{message::ReplyLimits, serve::PeerRefusal};
use crate::{Engine, EngineError, access::require_scope};

/// How long a join may take.
const JOIN_WITHIN: Duration = Duration::from_secs(15);
/// The longest life of an invitation.
const LONGEST_LIFE_S: u64 = 30 * 24 * 60 * 60;
/// The longest name of a node, and the most addresses.
const LONGEST_NAME: usize = 100;
const MOST_ADDRESSES: usize = 8;

/// How often all strangers together may try an invitation.
const JOINS_PER_MINUTE: Option<u32> = Some(60);
const NO_INVITATION: &str = "the invitation is unknown, used or expired";

/// An invitation to be written.
#[derive(Debug, Clone)]
pub struct PeerInvitationOrder {
    /// The label of the peer that will use it.
    pub name: Option<String>,
    pub terms: PeerTerms,
    pub valid_s: u64,
}

/// An invitation, whose text is shown once.
#[derive(Debug, Clone)]
pub struct IssuedInvitation {
    pub ticket: String,
    pub expires_at: Timestamp,
}

impl Engine {
    /// Writes an invitation: whoever has its text becomes a trusted peer under its terms, once.
    pub async fn node_invite(
        &self,
        caller: &Caller,
        order: PeerInvitationOrder,
    ) -> Result<IssuedInvitation, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let link = self.peer_link()?;
        if order.valid_s == 0 || LONGEST_LIFE_S < order.valid_s {
            let reason = format!("must be between 1 and {LONGEST_LIFE_S}");
            return Err(EngineError::invalid("valid_seconds", reason));
        }
        let mut secret = [0; 32];
        secret[..16].copy_from_slice(&self.inner.clock.bits().to_be_bytes());
        secret[16..].copy_from_slice(&self.inner.clock.bits().to_be_bytes());
        let created_at = self.inner.clock.now();
        let expires_at = created_at.plus_millis(order.valid_s.saturating_mul(1_000));
        let invitation = PeerInvitation {
            secret_digest: digest(&secret),
            terms: order.terms,
            name: order.name,
            created_at,
            expires_at,
            used_by: None,
        };
        let peers = self.inner.store.peers();
        peers.invite(&Behalf::Platform, &invitation, None).await?;
        let network = link.settings.network.clone();
        let mut address = link.mesh.address();
        address.direct.truncate(MOST_ADDRESSES);
        let invitation = MeshInvitation { address, secret, network };
        let ticket = invitation.to_text().map_err(|error| {
            let detail = format!("this node cannot be invited to: {error}");
            EngineError::refused(ProblemCode::NotSupported, detail)
        })?;
        tracing::info!(valid_s = order.valid_s, "wrote an invitation for another node");
        Ok(IssuedInvitation { ticket, expires_at })
    }

    /// Takes an invitation: both nodes trust each other afterwards.
    pub async fn node_join(
        &self,
        caller: &Caller,
        ticket: &str,
        name: Option<String>,
        terms: PeerTerms,
    ) -> Result<Peer, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let link = self.peer_link()?;
        let ticket = MeshInvitation::from_text(ticket.trim())
            .map_err(|error| EngineError::invalid("ticket", format!("is wrong: {error}")))?;
        let id = PeerId::parse(&ticket.address.id)
            .map_err(|error| EngineError::invalid("ticket", format!("is wrong: {error}")))?;
        if id == self.own_peer_id() {
            return Err(EngineError::invalid("ticket", "is an invitation of this node itself"));
        }
        self.check_network(ticket.network.as_deref())?;
        let own = link.mesh.address();
        let request = NodeRequest::Join(JoinRequest {
            route: self.route_to(&id),
            secret: hex::encode(ticket.secret),
            name: link.settings.name.clone(),
            direct: own.direct.iter().map(ToString::to_string).take(MOST_ADDRESSES).collect(),
            relays: own.relays.into_iter().take(MOST_ADDRESSES).collect(),
        });
        let limits = ReplyLimits { within: JOIN_WITHIN, most_body: 0 };
        let replied = self.ask_node(&ticket.address, &request, Bytes::new(), limits).await;
        let unjoined = |problem: String| {
            let detail = format!("the node {} could not be joined: {problem}", id.short());
            EngineError::refused(ProblemCode::PeerUnavailable, detail).at("ticket")
        };
        let replied = replied.map_err(|error| unjoined(error.to_string()))?;
        let NodeReply::Joined(joined) = replied.reply else {
            return Err(unjoined("the reply does not fit".to_owned()));
        };
        let now = self.inner.clock.now();
        let known = self.inner.store.peers().get(&Behalf::Platform, &id).await?;
        let peer = Peer {
            name: name.or_else(|| proposed_name(joined.name)),
            standing: PeerStanding::Trusted,
            direct: ticket.address.direct.iter().map(ToString::to_string).collect(),
            relays: ticket.address.relays.clone(),
            network: ticket.network,
            terms,
            added_at: known.map_or(now, |known| known.added_at),
            changed_at: now,
            id,
        };
        self.keep_peer(&peer).await?;
        tracing::info!(peer.id = peer.id.as_str(), "joined another node");
        Ok(peer)
    }

    /// Accepts a node that has an invitation.
    pub(super) async fn accept_join(
        &self,
        from: &PeerId,
        join: &JoinRequest,
        request: String,
    ) -> Result<NodeReply, PeerRefusal> {
        let refused = |detail: &str| PeerRefusal::new(RefusalCode::BadInvitation, detail);
        let link = self.peer_link()?;
        let secret = hex::decode(&join.secret).map_err(|_| refused("the secret is not hex"))?;
        let addresses = join.direct.iter().chain(&join.relays);
        let is_long = |text: &String| LONGEST_NAME * 3 < text.len();
        if MOST_ADDRESSES < join.direct.len()
            || MOST_ADDRESSES < join.relays.len()
            || addresses.clone().any(is_long)
        {
            return Err(PeerRefusal::bad("there are too many addresses"));
        }
        // All strangers share one rate, and none of them gets to write without an invitation.
        let now = self.inner.clock.now();
        let strangers = AccountId::peer(0);
        let within = self.inner.keys_in_use.request_of_account(&strangers, JOINS_PER_MINUTE, now);
        within.map_err(|limit| PeerRefusal::from(EngineError::from(limit)))?;
        let secret_digest = digest(&secret);
        let peers = self.inner.store.peers();
        let known = peers.invitation(&Behalf::Platform, &secret_digest).await;
        if known.map_err(EngineError::from)?.is_none() {
            return Err(refused(NO_INVITATION));
        }
        let used = PeerInvitationUse {
            secret_digest,
            peer: from.clone(),
            direct: join.direct.clone(),
            relays: join.relays.clone(),
            network: link.settings.network.clone(),
            now,
        };
        let accepted = peers.accept_invitation(&Behalf::Platform, &used, None).await;
        match accepted.map_err(EngineError::from)? {
            WriteOutcome::Done(peer) => {
                self.inner.pool.forget();
                self.pool_view().await?;
                tracing::info!(peer.id = peer.id.as_str(), "another node took an invitation");
            }
            WriteOutcome::Refused(PeerInvitationRefusal::Blocked) => {
                let detail = "the operator of this node blocks yours";
                return Err(PeerRefusal::new(RefusalCode::NotTrusted, detail));
            }
            WriteOutcome::Refused(_) | WriteOutcome::Repeated => {
                return Err(refused(NO_INVITATION));
            }
        }
        let (route, name) = (self.route_to(from), link.settings.name.clone());
        Ok(NodeReply::Joined(JoinReply { route, request, name }))
    }

    /// A node that names its network trades only within it.
    fn check_network(&self, named: Option<&str>) -> Result<(), EngineError> {
        let own = self.peer_link()?.settings.network.as_deref();
        match (own, named) {
            (Some(own), Some(named)) if own != named => {
                let reason = format!("is for the network `{named}`, and this node is in `{own}`");
                Err(EngineError::invalid("ticket", reason))
            }
            _ => Ok(()),
        }
    }
}

/// A name that another node proposes, as a plain text of one line.
fn proposed_name(name: Option<String>) -> Option<String> {
    let plain: String = name?.chars().filter(|it| !it.is_control()).take(LONGEST_NAME).collect();
    let plain = plain.trim();
    (!plain.is_empty()).then(|| plain.to_owned())
}
