//! The resources `/v1/node` and `/v1/peers`: this node among others, and the nodes that it knows.

mod books;
mod requests;
mod terms;

use std::borrow::Cow;

use jurat_core::peer::{Peer, PeerId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::{
    books::{PeerBookingBody, PeerBooksBody, PeerStatementBody},
    requests::{
        InviteNodeDraft, InviteNodeRequest, InviteOrder, JoinNodeDraft, JoinNodeRequest, JoinOrder,
        TrustNodeDraft, TrustNodeRequest, TrustOrder, decode_invite, decode_join, decode_trust,
        peer_id,
    },
    terms::{PeerTermsBody, PeerTermsDraft, PeerTermsRequest},
};
use super::{
    executors::{CapabilitiesBody, capabilities_body},
    kit::{time::Time, words},
};
use crate::mesh::SessionOffer;

/// The pattern of the identity of a node.
pub(crate) const NODE_ID: &str = "^[0-9A-Fa-f]{64}$";

/// This node among others.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeBody<'a> {
    /// Its public key, in 64 hexadecimal digits.
    pub id: Cow<'a, str>,
    /// Whether it has an endpoint for other nodes. Without one, it neither hires others nor works
    /// for them.
    pub enabled: bool,
    /// Socket addresses at which others reach it, as far as it knows.
    pub addresses: Vec<String>,
    /// URLs of the relays through which others reach it.
    pub relays: Cow<'a, [String]>,
    /// The name that it proposes to others.
    #[schema(required = true)]
    pub name: Option<Cow<'a, str>>,
    /// The network that its invitations name.
    #[schema(required = true)]
    pub network: Option<Cow<'a, str>>,
    /// The scopes that it serves.
    pub scopes: Vec<String>,
    /// How many nodes it trusts.
    pub trusted_peers: u64,
    /// How many nodes it blocks.
    pub blocked_peers: u64,
}

/// An invitation for one node.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = NodeInvitation)]
pub struct NodeInvitationBody<'a> {
    /// The invitation as one line of text, shown only in this reply. Whoever has it becomes a
    /// trusted peer, once.
    pub ticket: Cow<'a, str>,
    pub expires_at: Time,
}

/// Another node that this one knows.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Peer)]
pub struct PeerBody<'a> {
    /// Its public key, in 64 hexadecimal digits.
    pub id: Cow<'a, str>,
    /// The operator's label.
    #[schema(required = true)]
    pub name: Option<Cow<'a, str>>,
    pub standing: words::PeerStanding,
    /// Whether a connection to it is open now. A connection is opened when it is needed.
    pub connected: bool,
    /// Socket addresses at which it may be reached.
    pub addresses: Cow<'a, [String]>,
    /// URLs of relays through which it may be reached.
    pub relays: Cow<'a, [String]>,
    /// The network of the invitation that made it a peer.
    #[schema(required = true)]
    pub network: Option<Cow<'a, str>>,
    pub terms: PeerTermsBody<'a>,
    pub added_at: Time,
    pub changed_at: Time,
}

/// What a peer lends this node now.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PeerOffers)]
pub struct PeerOffersBody<'a> {
    /// The id of the peer.
    pub peer: Cow<'a, str>,
    pub offers: Vec<PeerOfferBody<'a>>,
}

/// A session that a peer lends.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PeerOffer)]
pub struct PeerOfferBody<'a> {
    /// The address of the executor as the peer knows it: the `url` with which to register it here.
    pub executor: Cow<'a, str>,
    /// The profile of the session.
    pub profile: Cow<'a, str>,
    /// The price of a job in millionths of a credit, which is booked.
    pub price_micros: u64,
    /// What the executor can do, or why it cannot be asked.
    pub capabilities: CapabilitiesBody<'a>,
}

impl<'a> PeerBody<'a> {
    /// A peer, and whether a connection to it is open.
    pub fn new(peer: &'a Peer, is_connected: bool) -> Self {
        let Peer { id, name, standing, direct, relays, network, terms, added_at, changed_at } =
            peer;
        Self {
            id: Cow::Borrowed(id.as_str()),
            name: name.as_deref().map(Cow::Borrowed),
            standing: words::PeerStanding(*standing),
            connected: is_connected,
            addresses: Cow::Borrowed(direct),
            relays: Cow::Borrowed(relays),
            network: network.as_deref().map(Cow::Borrowed),
            terms: PeerTermsBody::from(terms),
            added_at: Time(*added_at),
            changed_at: Time(*changed_at),
        }
    }
}

impl<'a> PeerOffersBody<'a> {
    pub fn new(peer: &'a PeerId, offers: &'a [SessionOffer]) -> Self {
        let offers = offers.iter().map(PeerOfferBody::from).collect();
        Self { peer: Cow::Borrowed(peer.as_str()), offers }
    }
}

impl<'a> From<&'a SessionOffer> for PeerOfferBody<'a> {
    fn from(offer: &'a SessionOffer) -> Self {
        Self {
            executor: Cow::Borrowed(&offer.executor),
            profile: Cow::Borrowed(&offer.profile),
            price_micros: offer.price_micros,
            capabilities: capabilities_body(&offer.capabilities),
        }
    }
}
