//! `/v1/peers`: the nodes that this one trusts or blocks, and what they lend it.

use axum::{Extension, extract::State, http::StatusCode, response::IntoResponse as _};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    list::ListPage,
};
use jurat_engine::{Engine, PeerOrder, PeerView};
use jurat_wire::api::{
    kit::page::PageBody,
    nodes::{self, PeerBody, PeerOffersBody, TrustNodeRequest},
};
use serde_json::{Value, json};

use super::{ID, NO_ENDPOINT, NO_NAME, PEER, peer_example};
use crate::{
    operation::{Operation, parameters},
    request::{
        decode::{MaybeJson, PathText},
        encode::{self, HandlerResult},
        page::{ListQuery, QueryFilters},
    },
    resources::NODES,
};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        list_operation(),
        show_operation(),
        trust_operation(),
        block_operation(),
        remove_operation(),
        offers_operation(),
    ]
}

fn list_operation() -> Operation {
    let page = json!({ "items": [peer_example()], "next_cursor": null });
    Operation::get("/v1/peers", "peer_list", list)
        .tag(NODES)
        .summary("List peers")
        .text("The nodes that this one trusts or blocks, in the order of their ids.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, PeerBody<'_>>>(200, "A page of peers.", page)
        .refuses([ProblemCode::ValidationError])
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let page = ListPage { after: query.text_position()?, limit: query.with_one_more() };
    let mut found = engine.peer_list(&caller, &page).await?;
    let next = query.cut(&mut found, |view| [view.peer.id.to_string()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(body), next.as_deref())))
}

fn body(view: &PeerView) -> PeerBody<'_> {
    PeerBody::new(&view.peer, view.is_connected)
}

fn show_operation() -> Operation {
    Operation::get("/v1/peers/{id}", "peer_show", show)
        .tag(NODES)
        .summary("Show a peer")
        .text("A peer with its terms, and whether a connection to it is open.")
        .in_path([PEER])
        .scope(Scope::Admin)
        .answers::<PeerBody<'_>>(200, "The peer.", peer_example())
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let view = engine.peer_show(&caller, &nodes::peer_id(&id)?).await?;
    Ok(encode::ok(&body(&view)))
}

fn trust_operation() -> Operation {
    let text = "Trusts a node from now on, whatever it was before: a node that is new, one whose terms change, or a blocked one. The terms replace the earlier ones, and a term that is left out has its default; the name, the addresses and the relays stay if they are left out. The other node must trust this one, too. A repeated request changes nothing.";
    let request = json!({
        "name": "Lab", "addresses": ["192.0.2.8:5873"], "terms": { "concurrent_jobs": 8 },
    });
    Operation::put("/v1/peers/{id}", "peer_trust", trust)
        .tag(NODES)
        .summary("Trust a node")
        .text(text)
        .in_path([PEER])
        .scope(Scope::Admin)
        .takes::<TrustNodeRequest>([("plain", request)])
        .or_nothing()
        .answers::<PeerBody<'_>>(200, "The peer.", peer_example())
        .refuses([ProblemCode::ValidationError])
        .refuses_when(ProblemCode::NotFound, NO_NAME)
        .refuses_when(ProblemCode::NotSupported, NO_ENDPOINT)
}

/// Trusts a node. A repeated request changes nothing, so it needs no idempotency key.
async fn trust(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    MaybeJson(given): MaybeJson,
) -> HandlerResult {
    let nodes::TrustOrder { name, direct, relays, terms } = nodes::decode_trust(&given)?;
    let order = PeerOrder { id: nodes::peer_id(&id)?, name, direct, relays, terms };
    let view = engine.peer_trust(&caller, order).await?;
    Ok(encode::ok(&body(&view)))
}

fn block_operation() -> Operation {
    let text = "Blocks a node, known or not: it is neither served nor asked, its connections end at once, and no invitation makes it a peer again. Its terms and its books stay. A repeated request changes nothing.";
    Operation::post("/v1/peers/{id}/block", "peer_block", block)
        .tag(NODES)
        .summary("Block a node")
        .text(text)
        .in_path([PEER])
        .scope(Scope::Admin)
        .answers::<PeerBody<'_>>(200, "The peer.", blocked_example())
        .refuses([ProblemCode::ValidationError])
        .refuses_when(ProblemCode::NotFound, NO_NAME)
        .refuses_when(ProblemCode::NotSupported, NO_ENDPOINT)
}

/// Blocks a node. A repeated request changes nothing, so it needs no idempotency key.
async fn block(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let view = engine.peer_block(&caller, &nodes::peer_id(&id)?).await?;
    Ok(encode::ok(&body(&view)))
}

fn remove_operation() -> Operation {
    let text = "Forgets a node: it is a stranger again, and an invitation can make it a peer. The jobs that were booked stay. A repeated request finds nothing to remove.";
    Operation::delete("/v1/peers/{id}", "peer_remove", remove)
        .tag(NODES)
        .summary("Remove a peer")
        .text(text)
        .in_path([PEER])
        .scope(Scope::Admin)
        .answers_nothing(204, "It is removed.")
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

/// Forgets a node. A repeated request finds nothing, so it needs no idempotency key.
async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    engine.peer_remove(&caller, &nodes::peer_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn offers_operation() -> Operation {
    let text = "Asks a peer which of its sessions it lends to this node, with their prices and the capabilities of their executors. Its executors of other nodes are not among them.";
    Operation::get("/v1/peers/{id}/offers", "peer_offers", offers)
        .tag(NODES)
        .summary("List what a peer lends")
        .text(text)
        .in_path([PEER])
        .scope(Scope::Admin)
        .answers::<PeerOffersBody<'_>>(200, "What the peer lends.", offers_example())
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
        .refuses_when(
            ProblemCode::PeerUnavailable,
            "the peer does not answer, or does not work for this node",
        )
        .refuses_when(ProblemCode::NotSupported, NO_ENDPOINT)
}

async fn offers(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let id = nodes::peer_id(&id)?;
    let offers = engine.peer_offers(&caller, &id).await?;
    Ok(encode::ok(&PeerOffersBody::new(&id, &offers)))
}

fn blocked_example() -> Value {
    let mut peer = peer_example();
    peer["standing"] = json!("blocked");
    peer["connected"] = json!(false);
    peer
}

fn offers_example() -> Value {
    json!({
        "peer": ID,
        "offers": [{
            "executor": "http://127.0.0.1:8787",
            "profile": "default",
            "price_micros": 250,
            "capabilities": {
                "ok": true,
                "task_types": ["*"],
                "profiles": ["default", "careful"],
                "provider_family": "fake",
                "model_id": "fake-1",
                "policies": [],
            },
        }],
    })
}
