//! `/v1/shares`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    workflow::share::{Share, ShareAction, ShareFilter},
};
use jurat_engine::Engine;
use jurat_wire::api::{
    kit::page::PageBody,
    shares::{self, AnswerShareRequest, ShareBody},
};
use serde_json::{Value, json};

use crate::{
    mcp::render,
    operation::{
        Operation, TextAuthor, Tool,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{MaybeJson, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::ListQuery,
    },
    resources::PEOPLE,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![list_operation(), accept_operation(), decline_operation(), block_operation()]
}

const SHARE: PathParameter =
    PathParameter::new("id", "The id of the workflow.", "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70");

fn list_operation() -> Operation {
    let text = "Workflows of other owners that were granted to the caller, directly or through a team, newest workflow first, each with the verifiers that it names.";
    let about = "Lists workflows that others granted to the account, each with its full name `@owner/slug`. A bare name never refers to one of them.";
    Operation::get("/v1/shares", "share_list", list)
        .tag(PEOPLE)
        .summary("List shares")
        .text(text)
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_list())
        .with([parameters::of_shares()])
        .answers::<PageBody<'_, ShareBody<'_>>>(
            200,
            "A page of shares.",
            json!({ "items": [share_example("pending", false)], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_shares", "List shares", about)
                .query(&["state", "limit", "cursor"])
                .summary(render::counted)
                .author(TextAuthor::Others),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["state"])?;
    let filter = ShareFilter {
        state: shares::state(query.filters.get("state"))?,
        before: query.text_position()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.share_list(&caller, &filter).await?;
    let next = query.cut(&mut found, |share| [share.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(shares::share), next.as_deref())))
}

fn accept_operation() -> Operation {
    let text = "Accepts a granted workflow, so that searches find it. Reading or running it by its id or as `@owner/name` accepts it too. Accepting a declined share restores it and unblocks its owner.";
    let about = "Accepts a workflow granted to the account, so that searches find it. First ask the person who owns the account.";
    answers_share(
        Operation::post("/v1/shares/{id}/accept", "share_accept", accept)
            .tag(PEOPLE)
            .summary("Accept a share")
            .text(text)
            .in_path([SHARE]),
        "accepted",
        false,
    )
    .tool(
        Tool::adds("accept_share", "Accept a share", about)
            .path("share_id", "The id of a share, which is the id of its workflow.")
            .author(TextAuthor::Others),
    )
}

async fn accept(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    shares::decode_answer(&body)?;
    let keyed = idempotency.write_for("share_accept", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareAction::Accept, keyed).await?;
    Ok(idempotency::reply(done, |share| encode::ok(&shown(share))))
}

fn decline_operation() -> Operation {
    let text = "Declines a granted workflow, which the caller cannot use until accepting it. The owner is not notified.";
    let about = "Declines a workflow granted to the account; its owner is not notified.";
    answers_share(
        Operation::post("/v1/shares/{id}/decline", "share_decline", decline)
            .tag(PEOPLE)
            .summary("Decline a share")
            .text(text)
            .in_path([SHARE]),
        "declined",
        false,
    )
    .refuses([ProblemCode::Conflict])
    .tool(
        Tool::ends("decline_share", "Decline a share", about)
            .path("share_id", "The id of a share, which is the id of its workflow.")
            .author(TextAuthor::Others),
    )
}

async fn decline(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    shares::decode_answer(&body)?;
    let keyed = idempotency.write_for("share_decline", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareAction::Decline, keyed).await?;
    Ok(idempotency::reply(done, |share| encode::ok(&shown(share))))
}

fn block_operation() -> Operation {
    let text = "Declines everything that the owner has granted to the caller or will grant. The owner is not notified. Team grants stay.";
    let about =
        "Declines everything that the owner of a share has granted to the account or will grant.";
    answers_share(
        Operation::post("/v1/shares/{id}/block", "share_block", block)
            .tag(PEOPLE)
            .summary("Block the owner of a share")
            .text(text)
            .in_path([SHARE]),
        "declined",
        true,
    )
    .tool(
        Tool::ends("block_share", "Block the owner of a share", about)
            .path("share_id", "The id of a share, which is the id of its workflow.")
            .author(TextAuthor::Others),
    )
}

async fn block(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    shares::decode_answer(&body)?;
    let keyed = idempotency.write_for("share_block", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareAction::Block, keyed).await?;
    Ok(idempotency::reply(done, |share| encode::ok(&shown(share))))
}

fn shown(share: &Share) -> Value {
    json!(shares::share(share))
}

const OFFER: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
const AT: &str = "2026-09-21T14:13:20Z";

fn share_example(state: &str, is_blocked: bool) -> Value {
    json!({
        "id": OFFER, "name": "Incident postmortem", "slug": "incident-postmortem",
        "description": "Writes up an incident.", "reference": "@ann/incident-postmortem",
        "owner": "@ann", "owner_user_id": "acct_01KHG5YN40MXBR5YWT0Q2YFEDT", "role": "view",
        "state": state, "blocked": is_blocked, "via_team": null, "granted_at": AT,
    })
}

fn answers_share(operation: Operation, state: &str, is_blocked: bool) -> Operation {
    operation
        .scope(Scope::WorkflowsWrite)
        .takes::<AnswerShareRequest>([("plain", json!({}))])
        .or_nothing()
        .answers::<ShareBody<'_>>(
            200,
            "The current state of the share.",
            share_example(state, is_blocked),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
}
