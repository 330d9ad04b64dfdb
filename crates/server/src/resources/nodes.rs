//! `/v1/node`: this node among others.

mod books;
mod peers;

use std::borrow::Cow;

use axum::{
    Extension,
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
};
use jurat_engine::{Engine, IssuedInvitation, NodeView, PeerInvitationOrder};
use jurat_wire::api::{
    kit::time::Time,
    nodes::{self, InviteNodeRequest, JoinNodeRequest, NodeBody, NodeInvitationBody, PeerBody},
};
use serde_json::{Value, json};

use crate::{
    operation::{Operation, parameters::PathParameter},
    request::{
        decode::{Json, MaybeJson},
        encode::{self, HandlerResult},
        page::QueryFilters,
    },
    resources::NODES,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    let mut all = vec![show_operation(), invite_operation(), join_operation()];
    all.extend(peers::operations());
    all.extend(books::operations());
    all
}

const ID: &str = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
const PEER: PathParameter =
    PathParameter::new("id", "The public key of the node, in 64 hexadecimal digits.", ID);

const NO_ENDPOINT: &str = "this server has no endpoint for other nodes; `node.listen` sets one up";

const NO_NAME: &str = "the path contains characters that are not allowed in an id";

fn show_operation() -> Operation {
    let text = "The identity of this node, where others reach it, and how many nodes it trusts and blocks. Without an endpoint for other nodes, `enabled` is false.";
    Operation::get("/v1/node", "node_show", show)
        .tag(NODES)
        .summary("Show this node")
        .text(text)
        .scope(Scope::Admin)
        .answers::<NodeBody<'_>>(200, "This node.", node_example())
        .refuses([ProblemCode::ValidationError])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let view = engine.node_show(&caller).await?;
    Ok(encode::ok(&body(&view)))
}

fn body(view: &NodeView) -> NodeBody<'_> {
    let address = view.address.as_ref();
    NodeBody {
        id: Cow::Borrowed(view.id.as_str()),
        enabled: address.is_some(),
        addresses: address
            .map(|it| it.direct.iter().map(ToString::to_string).collect())
            .unwrap_or_default(),
        relays: address.map(|it| Cow::Borrowed(it.relays.as_slice())).unwrap_or_default(),
        name: view.name.as_deref().map(Cow::Borrowed),
        network: view.network.as_deref().map(Cow::Borrowed),
        scopes: view.scopes.iter().map(ToString::to_string).collect(),
        trusted_peers: view.trusted_peers as u64,
        blocked_peers: view.blocked_peers as u64,
    }
}

fn invite_operation() -> Operation {
    let text = "Writes an invitation for one node. Whoever has its text becomes a trusted peer under `terms`, once, and before it expires; this node and the other one trust each other afterwards. Only this reply has the text. A repeated request writes another invitation, so it needs no idempotency key: an invitation that nobody uses expires.";
    let request = json!({ "name": "Lab", "valid_seconds": 600, "terms": { "concurrent_jobs": 4 } });
    Operation::post("/v1/node/invitations", "node_invite", invite)
        .tag(NODES)
        .summary("Invite a node")
        .text(text)
        .scope(Scope::Admin)
        .takes::<InviteNodeRequest>([("plain", request)])
        .or_nothing()
        .answers::<NodeInvitationBody<'_>>(201, "The invitation, shown once.", invitation_example())
        .and_header("Cache-Control", "`no-store`.")
        .refuses([ProblemCode::ValidationError])
        .refuses_when(ProblemCode::NotSupported, NO_ENDPOINT)
}

/// Writes an invitation. It is not stored with its secret, so its reply could not be repeated under
/// an idempotency key.
async fn invite(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let nodes::InviteOrder { name, valid_s, terms } = nodes::decode_invite(&body)?;
    let issued = engine.node_invite(&caller, PeerInvitationOrder { name, valid_s, terms }).await?;
    Ok(shown_once(&issued))
}

fn shown_once(issued: &IssuedInvitation) -> Response {
    let mut response = encode::created(&NodeInvitationBody {
        ticket: Cow::Borrowed(&issued.ticket),
        expires_at: Time(issued.expires_at),
    });
    // A secret that is shown once must not reappear from a cache.
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    response
}

fn join_operation() -> Operation {
    let text = "Takes an invitation of another node: this node connects to it and shows the secret of the invitation, and both trust each other afterwards. `terms` are those of this node for the other one. The node that took an invitation may take it again, so a repeated request needs no idempotency key.";
    let request = json!({ "ticket": "jurataahmqzd4kexample", "name": "Lab" });
    Operation::post("/v1/node/join", "node_join", join)
        .tag(NODES)
        .summary("Join a node")
        .text(text)
        .scope(Scope::Admin)
        .takes::<JoinNodeRequest>([("plain", request)])
        .answers::<PeerBody<'_>>(200, "The node that invited this one.", peer_example())
        .refuses_when(
            ProblemCode::ValidationError,
            "a field is invalid, or the ticket cannot be read, is of this node itself, or is for another network",
        )
        .refuses_when(
            ProblemCode::PeerUnavailable,
            "the other node does not answer, or the invitation is unknown, used or expired",
        )
        .refuses_when(ProblemCode::NotSupported, NO_ENDPOINT)
}

/// Takes an invitation. The other node accepts it again from the node that took it.
async fn join(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> HandlerResult {
    let nodes::JoinOrder { ticket, name, terms } = nodes::decode_join(&body)?;
    let peer = engine.node_join(&caller, &ticket, name, terms).await?;
    // Its reply came over a connection that stays open.
    Ok(encode::ok(&PeerBody::new(&peer, true)))
}

const AT: &str = "2026-09-21T14:13:20Z";

fn node_example() -> Value {
    json!({
        "id": "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c",
        "enabled": true,
        "addresses": ["192.0.2.7:5873"],
        "relays": [],
        "name": "example",
        "network": null,
        "scopes": [],
        "trusted_peers": 1,
        "blocked_peers": 0,
    })
}

fn invitation_example() -> Value {
    json!({ "ticket": "jurataahmqzd4kexample", "expires_at": "2026-09-21T14:23:20Z" })
}

fn peer_example() -> Value {
    json!({
        "id": ID,
        "name": "Lab",
        "standing": "trusted",
        "connected": true,
        "addresses": ["192.0.2.8:5873"],
        "relays": [],
        "network": null,
        "terms": {
            "works_for": true,
            "hires": true,
            "requests_per_minute": 600,
            "concurrent_jobs": 8,
            "payload_bytes": 4_194_304,
            "most_price_micros": null,
            "task_types": [],
        },
        "added_at": AT,
        "changed_at": AT,
    })
}
