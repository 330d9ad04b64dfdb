//! Signs messages to other nodes, and checks theirs.

use std::time::Duration;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use bytes::Bytes;
use jurat_core::{
    peer::{Peer, PeerId},
    round::replica::{FailureCode, ReplicaFailure},
};
use jurat_mesh::{MeshCallError, MeshMessage, NodeAddress};
use jurat_wire::mesh::{
    Envelope, EnvelopeFault, NodeRefusal, NodeReply, NodeRequest, Route, SignedMessage, body_digest,
};

use crate::{Engine, EngineError, rounds::ask::excerpt};

/// A reply that another node signed, for this request and this node.
#[derive(Debug)]
pub(crate) struct SignedReply {
    pub(crate) reply: NodeReply,
    /// The head as it arrived, which proves what the other node said.
    pub(crate) proof: String,
    pub(crate) body: Bytes,
}

/// Why there is no reply of another node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerCallError {
    #[error("this node has no endpoint for other nodes")]
    NoEndpoint,
    #[error("the node is not trusted, or may not be hired")]
    NotTrusted,
    #[error(transparent)]
    Transport(#[from] MeshCallError),
    #[error("{0}")]
    Unreadable(String),
    #[error("the reply does not have the signature of the node")]
    Forged,
    #[error("{0}")]
    Foreign(&'static str),
    #[error("the reply is for another request")]
    Replayed,
    #[error("the node refused: {}", refusal_text(.0))]
    Refused(NodeRefusal),
}

impl PeerCallError {
    /// What it means for a replica.
    pub(crate) fn failure(&self) -> ReplicaFailure {
        let code = match self {
            Self::NoEndpoint | Self::NotTrusted => FailureCode::Unavailable,
            Self::Transport(MeshCallError::Timeout) => FailureCode::Timeout,
            Self::Transport(MeshCallError::TooLarge { .. }) => FailureCode::TooLarge,
            Self::Transport(MeshCallError::Disconnected { .. }) => FailureCode::Disconnected,
            Self::Transport(MeshCallError::Refused) | Self::Refused(_) => FailureCode::PeerRefused,
            Self::Transport(_) => FailureCode::Unreachable,
            Self::Unreadable(_) => FailureCode::BadShape,
            Self::Forged => FailureCode::ForgedAnswer,
            Self::Foreign(_) => FailureCode::ForeignAnswer,
            Self::Replayed => FailureCode::ReplayedAnswer,
        };
        ReplicaFailure::new(code, self.to_string())
    }
}

/// What the other node wrote is shortened, and cannot break a line.
fn refusal_text(refusal: &NodeRefusal) -> String {
    let code = serde_json::to_value(refusal.code).unwrap_or_default();
    let code = code.as_str().unwrap_or("unknown").to_owned();
    format!("{code}: {}", excerpt(refusal.detail.as_bytes()))
}

/// The address at which a peer is called.
pub(crate) fn address_of(peer: &Peer) -> NodeAddress {
    NodeAddress {
        id: peer.id.to_string(),
        direct: peer.direct.iter().filter_map(|it| it.parse().ok()).collect(),
        relays: peer.relays.clone(),
    }
}

/// Whether a node signed these bytes.
pub(crate) fn is_signed_by(peer: &PeerId, document: &[u8], signature: &[u8]) -> bool {
    let Ok(key) = hex::decode(peer.as_str()) else { return false };
    UnparsedPublicKey::new(&ED25519, key).verify(document, signature).is_ok()
}

impl Engine {
    /// The route of a message from here.
    pub(crate) fn route_to(&self, peer: &PeerId) -> Route {
        let at_ms = self.inner.clock.now().millis().unsigned_abs();
        Route::new(self.own_peer_id().as_str(), peer.as_str(), at_ms)
    }

    /// Sends a request to a peer, and returns its reply if the peer signed it for this request.
    pub(crate) async fn ask_node(
        &self,
        address: &NodeAddress,
        request: &NodeRequest,
        body: Bytes,
        limits: ReplyLimits,
    ) -> Result<SignedReply, PeerCallError> {
        let link = self.inner.peers.as_ref().ok_or(PeerCallError::NoEndpoint)?;
        let envelope = Envelope::seal(request, |document| self.node_signature(document));
        let asked = body_digest(envelope.document.as_bytes());
        let message = MeshMessage { head: envelope.to_head(), body };
        let ReplyLimits { within, most_body } = limits;
        let arrived = link.mesh.request(address, message, within, most_body).await?;
        let head: SignedMessage<NodeReply> =
            Envelope::read(&arrived.head).map_err(|fault| unreadable(&fault))?;
        let from = PeerId::parse(&address.id).map_err(|_| PeerCallError::Forged)?;
        if !is_signed_by(&from, head.document.as_bytes(), &head.signature) {
            return Err(PeerCallError::Forged);
        }
        let reply = head.message;
        let route = reply.route();
        if route.from != from.as_str() || route.to != self.own_peer_id().as_str() {
            return Err(PeerCallError::Foreign("the reply is of another node, or for another"));
        }
        if reply.request() != asked {
            return Err(PeerCallError::Replayed);
        }
        let digest = match &reply {
            NodeReply::Presence(it) => Some(&it.body_digest),
            NodeReply::Answer(it) => Some(&it.body_digest),
            NodeReply::Refused(refusal) => return Err(PeerCallError::Refused(refusal.clone())),
            NodeReply::Joined(_) | NodeReply::Statement(_) => None,
        };
        if digest.is_some_and(|digest| *digest != body_digest(&arrived.body)) {
            return Err(PeerCallError::Forged);
        }
        let proof = String::from_utf8(arrived.head).unwrap_or_default();
        Ok(SignedReply { reply, proof, body: arrived.body })
    }

    /// A trusted peer that may be asked for work.
    pub(crate) async fn hireable(
        &self,
        id: &PeerId,
    ) -> Result<std::sync::Arc<Peer>, PeerCallError> {
        if self.inner.peers.is_none() {
            return Err(PeerCallError::NoEndpoint);
        }
        let known = self.peer_of(id).await.map_err(|error| store_fault(&error))?;
        known.filter(|peer| peer.may_be_asked()).ok_or(PeerCallError::NotTrusted)
    }
}

/// How long and how large a reply may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyLimits {
    pub(crate) within: Duration,
    pub(crate) most_body: usize,
}

fn store_fault(error: &EngineError) -> PeerCallError {
    PeerCallError::Unreadable(format!("the node could not be looked up: {error}"))
}

fn unreadable(fault: &EnvelopeFault) -> PeerCallError {
    PeerCallError::Unreadable(excerpt(fault.to_string().as_bytes()))
}
