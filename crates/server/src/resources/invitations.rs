//! `/v1/invitations`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::{
        caller::{Caller, Scope},
        team::{Invitation, InvitationFilter, InvitationOutcome},
    },
    code::ProblemCode,
};
use jurat_engine::Engine;
use jurat_wire::{
    api::{
        invitations::{self, InvitationBody, InvitationResolved},
        kit::{json, page::PageBody},
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    mcp::render,
    operation::{
        Operation, Tool,
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
    vec![list_operation(), accept_operation(), decline_operation(), cancel_operation()]
}

const INVITATION: PathParameter =
    PathParameter::new("id", "The id of an invitation.", "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70");

fn list_operation() -> Operation {
    let text = "The caller's invitations, newest first. Unanswered ones expire.";
    let about = "Lists invitations that the account received or sent, newest first.";
    let invitation = json!({
        "id": OFFER, "kind": "team_membership", "target_id": TEAM, "target_label": "@crew",
        "proposed_by_handle": "ann", "proposed_to_handle": "bob@example.com",
        "created_at": AT, "expires_at": UNTIL, "resolved_at": null, "resolution": null,
    });
    Operation::get("/v1/invitations", "invitation_list", list)
        .tag(PEOPLE)
        .summary("List invitations")
        .text(text)
        .scope(Scope::AccountWrite)
        .with(parameters::of_list())
        .with(parameters::of_invitations())
        .answers::<PageBody<'_, InvitationBody<'_>>>(
            200,
            "A page of invitations.",
            json!({ "items": [invitation], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_invitations", "List invitations", about)
                .query(&["filter", "state", "limit", "cursor"])
                .ignores_unknown()
                .summary(render::counted),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["filter", "state"])?;
    let (is_received, is_sent) = invitations::filter(query.filters.get("filter"))?;
    let filter = InvitationFilter {
        is_received,
        is_sent,
        is_pending: invitations::is_pending(query.filters.get("state"))?,
        before: query.text_position()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.invitation_list(&caller, &filter).await?;
    let next = query.cut(&mut found, |invitation| [invitation.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(invitations::listed), next.as_deref())))
}

fn accept_operation() -> Operation {
    let text = "Accepts an invitation: membership in a team, or ownership of a team, workflow or template.";
    let about = "Accepts an invitation. First ask the person who owns the account.";
    resolves(
        Operation::post("/v1/invitations/{id}/accept", "invitation_accept", accept)
            .tag(PEOPLE)
            .summary("Accept an invitation")
            .text(text)
            .in_path([INVITATION]),
        "accepted",
    )
    .refuses([ProblemCode::Conflict, ProblemCode::QuotaExceeded])
    .tool(
        Tool::adds("accept_invitation", "Accept an invitation", about)
            .path("invitation_id", "The id of an invitation.")
            .ignores_unknown(),
    )
}

async fn accept(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    nothing_in(&body)?;
    let keyed = idempotency.write_for("invitation_accept", &Value::Null, StatusCode::OK, resolved);
    let done = engine.invitation_answer(&caller, &id, InvitationOutcome::Accepted, keyed).await?;
    Ok(idempotency::reply(done, |invitation| encode::ok(&resolved(invitation))))
}

fn decline_operation() -> Operation {
    resolves(
        Operation::post("/v1/invitations/{id}/decline", "invitation_decline", decline)
            .tag(PEOPLE)
            .summary("Decline an invitation")
            .text("Declines an invitation; the sender can see that.")
            .in_path([INVITATION]),
        "declined",
    )
    .tool(
        Tool::ends("decline_invitation", "Decline an invitation", "Declines an invitation.")
            .path("invitation_id", "The id of an invitation.")
            .ignores_unknown(),
    )
}

async fn decline(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    nothing_in(&body)?;
    let keyed = idempotency.write_for("invitation_decline", &Value::Null, StatusCode::OK, resolved);
    let done = engine.invitation_answer(&caller, &id, InvitationOutcome::Declined, keyed).await?;
    Ok(idempotency::reply(done, |invitation| encode::ok(&resolved(invitation))))
}

fn cancel_operation() -> Operation {
    resolves(
        Operation::post("/v1/invitations/{id}/cancel", "invitation_cancel", cancel)
            .tag(PEOPLE)
            .summary("Cancel an invitation")
            .text("Cancels an unanswered invitation that the caller sent.")
            .in_path([INVITATION]),
        "cancelled",
    )
    .tool(
        Tool::ends(
            "cancel_invitation",
            "Cancel an invitation",
            "Cancels an unanswered invitation that the account sent.",
        )
        .path("invitation_id", "The id of an invitation.")
        .ignores_unknown(),
    )
}

async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    nothing_in(&body)?;
    let keyed = idempotency.write_for("invitation_cancel", &Value::Null, StatusCode::OK, resolved);
    let done = engine.invitation_answer(&caller, &id, InvitationOutcome::Cancelled, keyed).await?;
    Ok(idempotency::reply(done, |invitation| encode::ok(&resolved(invitation))))
}

/// Clients send an empty object, or nothing. Members are ignored.
fn nothing_in(body: &Value) -> Result<(), Problem> {
    if body.is_object() {
        return Ok(());
    }
    let detail = format!("the body must be an object, not {}", json::kind(body));
    Err(Problem::new(ProblemCode::ValidationError, detail))
}

fn resolved(invitation: &Invitation) -> Value {
    json!(invitations::resolved(invitation))
}

const TEAM: &str = "acct_01KHG5YN40MXBR5YWT0Q2YFEDS";
const OFFER: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
const AT: &str = "2026-09-21T14:13:20Z";
const UNTIL: &str = "2026-10-05T14:13:20Z";

/// Nothing needs to be sent with an answer.
#[derive(Debug, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn resolves(operation: Operation, resolution: &str) -> Operation {
    operation
        .scope(Scope::AccountWrite)
        .takes::<Nothing>([("plain", json!({}))])
        .or_nothing()
        .answers::<InvitationResolved<'_>>(
            200,
            "The invitation's resolution.",
            json!({
                "invitation_id": OFFER, "kind": "team_membership", "target_id": TEAM,
                "target_label": "@crew", "resolution": resolution,
            }),
        )
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::InvitationExpired,
            ProblemCode::InvitationAlreadyResolved,
        ])
}
