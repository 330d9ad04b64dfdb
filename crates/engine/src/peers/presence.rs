//! What a node lends: asks another node for it, and answers such questions.

use std::time::Duration;

use bytes::Bytes;
use jurat_core::{executor::Capabilities, peer::Peer};
use jurat_wire::mesh::{
    MOST_OFFERS, NodeReply, NodeRequest, Presence, PresenceRequest, SessionOffer, body_digest,
    decode_offers, encode_offers,
};

use super::message::{ReplyLimits, address_of};
use crate::{Engine, EngineError, executors::pool::PeerRoute};

/// The largest list of offers.
const MOST_PRESENCE_BYTES: usize = 4 * 1024 * 1024;
/// How long offers hold.
const VALID_MS: u64 = 30_000;

impl Engine {
    /// The capabilities of an executor of another node, as that node signs them.
    pub(crate) async fn ask_presence(
        &self,
        route: &PeerRoute,
        within: Duration,
    ) -> Result<Capabilities, String> {
        let peer = self.hireable(&route.node).await.map_err(|error| error.to_string())?;
        let offers = self.offers_of(&peer, Some(&route.executor), within).await?;
        let mut of_executor =
            offers.into_iter().filter(|offer| offer.executor == route.executor).peekable();
        if of_executor.peek().is_none() {
            let (node, executor) = (peer.id.short(), &route.executor);
            return Err(format!("the node {node} does not lend an executor at `{executor}`"));
        }
        // Each session of the executor is an offer of its own.
        let mut found = Err("the node says nothing about it".to_owned());
        for offer in of_executor {
            found = match (found, offer.capabilities) {
                (Ok(known), _) => Ok(known),
                (Err(_), declared) => declared,
            };
        }
        found.map_err(|problem| format!("its node says: {problem}"))
    }

    /// What another node lends this one.
    pub(crate) async fn offers_of(
        &self,
        peer: &Peer,
        executor: Option<&str>,
        within: Duration,
    ) -> Result<Vec<SessionOffer>, String> {
        let request = NodeRequest::Presence(PresenceRequest {
            route: self.route_to(&peer.id),
            executor: executor.map(str::to_owned),
        });
        let limits = ReplyLimits { within, most_body: MOST_PRESENCE_BYTES };
        let replied = self.ask_node(&address_of(peer), &request, Bytes::new(), limits).await;
        let replied = replied.map_err(|error| error.to_string())?;
        if !matches!(replied.reply, NodeReply::Presence(_)) {
            return Err("the reply is no list of offers".to_owned());
        }
        decode_offers(&replied.body).map_err(|error| error.to_string())
    }

    /// What this node lends a peer: the sessions to its own executors. Executors of others are not
    /// lent on, so that no job travels in a circle.
    pub(crate) async fn lent_to(
        &self,
        peer: &Peer,
        executor: Option<&str>,
    ) -> Result<Vec<SessionOffer>, EngineError> {
        let view = self.pool_view().await?;
        let standings = self.pool_health_for(&peer.account());
        let mut offers = Vec::new();
        for session in view.pool.sessions.values() {
            let Some(known) = view.pool.executors.get(&session.executor) else { continue };
            let is_asked = executor.is_none_or(|url| known.url == url);
            if known.remote.is_some() || !is_asked || MOST_OFFERS <= offers.len() {
                continue;
            }
            offers.push(SessionOffer {
                executor: known.url.clone(),
                profile: session.profile.clone(),
                price_micros: session.price_micros,
                capabilities: standings.of(&known.name).map(|can| lent(can, peer)),
            });
        }
        Ok(offers)
    }

    /// The reply to a question about offers, with its body.
    pub(super) async fn presence_reply(
        &self,
        peer: &Peer,
        asked: &PresenceRequest,
        request: String,
    ) -> Result<(NodeReply, Bytes), EngineError> {
        let offers = self.lent_to(peer, asked.executor.as_deref()).await?;
        let body = encode_offers(&offers);
        let scopes = &self.peer_link()?.settings.scopes;
        let presence = Presence {
            route: self.route_to(&peer.id),
            request,
            valid_ms: VALID_MS,
            scopes: scopes.iter().map(ToString::to_string).collect(),
            body_digest: body_digest(&body),
        };
        Ok((NodeReply::Presence(presence), body.into()))
    }
}

/// The capabilities of an executor, without the types of tasks that the peer may not ask for.
fn lent(capabilities: &Capabilities, peer: &Peer) -> Capabilities {
    let may_ask = |task_type: &String| {
        let plain = task_type.split_once(':').map_or(task_type.as_str(), |(plain, _)| plain);
        peer.terms.takes_task_type(plain)
    };
    let terms = &peer.terms.task_types;
    let is_any = capabilities.task_types.iter().any(|it| it == "*");
    let task_types = if is_any && !terms.is_empty() {
        terms.iter().cloned().collect()
    } else {
        capabilities.task_types.iter().filter(|it| may_ask(it)).cloned().collect()
    };
    Capabilities { task_types, ..capabilities.clone() }
}
