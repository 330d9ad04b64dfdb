//! Answers the requests of other nodes.

use std::sync::Arc;

use bytes::Bytes;
use jurat_core::peer::{Peer, PeerId};
use jurat_mesh::{IncomingRequest, MeshMessage};
use jurat_wire::mesh::{
    Envelope, EnvelopeFault, NodeRefusal, NodeReply, NodeRequest, RefusalCode, SignedMessage,
    body_digest,
};

use super::message::is_signed_by;
use crate::{Engine, EngineError};

/// Why a request of another node is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerRefusal {
    pub(crate) code: RefusalCode,
    pub(crate) detail: String,
}

impl PeerRefusal {
    pub(crate) fn new(code: RefusalCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(RefusalCode::BadMessage, detail)
    }
}

impl Engine {
    /// Serves other nodes until shutdown, if this node has an endpoint for them.
    pub(crate) fn serve_peers(&self) {
        let Some(link) = &self.inner.peers else { return };
        let Some(mut requests) = link.take_requests() else { return };
        self.guard_connections();
        let engine = self.clone();
        self.inner.background.until_shutdown(async move {
            while let Some(incoming) = requests.next().await {
                let answering = engine.clone();
                engine.inner.background.spawn(async move { answering.answer_node(incoming).await });
            }
        });
    }

    async fn answer_node(&self, mut incoming: IncomingRequest) {
        let Ok(from) = PeerId::parse(&incoming.peer) else { return };
        let asked = body_digest(&incoming.head);
        let (reply, body) = match self.reply_to(&from, &mut incoming).await {
            Ok(reply) => reply,
            Err((request, refusal)) => {
                self.inner.metrics.peers.refused(refusal.code);
                tracing::debug!(
                    peer.id = from.as_str(),
                    code = ?refusal.code,
                    detail = refusal.detail,
                    "refused a request of another node"
                );
                let PeerRefusal { code, detail } = refusal;
                let request = request.unwrap_or(asked);
                let route = self.route_to(&from);
                let detail = detail.chars().take(500).collect();
                (NodeReply::Refused(NodeRefusal { route, request, code, detail }), Bytes::new())
            }
        };
        let envelope = Envelope::seal(&reply, |document| self.node_signature(document));
        let message = MeshMessage { head: envelope.to_head(), body };
        if let Err(error) = incoming.reply.send(message).await {
            tracing::debug!(peer.id = from.as_str(), error = %error, "a reply did not reach another node");
        }
    }

    /// The reply; a refusal comes with the digest of the request, if that could be read.
    async fn reply_to(
        &self,
        from: &PeerId,
        incoming: &mut IncomingRequest,
    ) -> Result<(NodeReply, Bytes), (Option<String>, PeerRefusal)> {
        let head: SignedMessage<NodeRequest> =
            Envelope::read(&incoming.head).map_err(|fault| (None, unread(&fault)))?;
        let digest = head.digest.clone();
        let replied = self.serve_node(from, head, incoming).await;
        replied.map_err(|refusal| (Some(digest), refusal))
    }

    async fn serve_node(
        &self,
        from: &PeerId,
        head: SignedMessage<NodeRequest>,
        incoming: &mut IncomingRequest,
    ) -> Result<(NodeReply, Bytes), PeerRefusal> {
        let SignedMessage { message, document, signature, digest } = head;
        let route = message.route();
        if !is_signed_by(from, document.as_bytes(), &signature) || route.from != from.as_str() {
            return Err(PeerRefusal::bad("the message is not signed by the node that sent it"));
        }
        if route.to != self.own_peer_id().as_str() {
            return Err(PeerRefusal::bad("the message is for another node"));
        }
        if let NodeRequest::Join(join) = &message {
            return Ok((self.accept_join(from, join, digest).await?, Bytes::new()));
        }
        let peer = self.admitted_peer(from).await?;
        self.inner.metrics.peers.request(&message);
        match &message {
            NodeRequest::Join(_) => Err(PeerRefusal::bad("a join is answered before")),
            NodeRequest::Presence(asked) => Ok(self.presence_reply(&peer, asked, digest).await?),
            NodeRequest::Statement(_) => {
                Ok((self.statement_reply(&peer, digest).await?, Bytes::new()))
            }
            NodeRequest::Job(job) => {
                let head = SignedMessage { message: (), document, signature, digest };
                self.do_job(&peer, &head, job, incoming).await
            }
        }
    }

    /// A peer that this node works for, within its rate.
    async fn admitted_peer(&self, from: &PeerId) -> Result<Arc<Peer>, PeerRefusal> {
        let not_trusted = || {
            let detail = "the operator of this node does not work for yours";
            PeerRefusal::new(RefusalCode::NotTrusted, detail)
        };
        let known = self.peer_of(from).await?;
        let peer = known.filter(|peer| peer.may_ask()).ok_or_else(not_trusted)?;
        let now = self.inner.clock.now();
        let rate = Some(peer.terms.requests_per_minute);
        let within = self.inner.keys_in_use.request_of_account(&peer.account(), rate, now);
        within.map_err(|limit| PeerRefusal::from(EngineError::from(limit)))?;
        Ok(peer)
    }
}

fn unread(fault: &EnvelopeFault) -> PeerRefusal {
    let code = match fault {
        EnvelopeFault::Unreadable(_) => RefusalCode::BadMessage,
        EnvelopeFault::UnknownVersion(_) | EnvelopeFault::UnknownType => RefusalCode::Unsupported,
    };
    PeerRefusal::new(code, fault.to_string())
}
