//! `/v1/invitations`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::{
        caller::Caller,
        team::{Invitation, InvitationOutcome},
    },
    code::ProblemCode,
};
use jurat_engine::{Engine, InvitationQuery};
use jurat_wire::{
    api::{
        invitations,
        kit::{fields::RequestFields, page::PageBody},
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::request::page::ListQuery;
use crate::request::{
    decode::{MaybeJson, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["filter", "state"])?;
    let (is_received, is_sent) = invitations::filter(query.filters.get("filter"))?;
    let wanted = InvitationQuery {
        is_received,
        is_sent,
        is_pending: invitations::is_pending(query.filters.get("state"))?,
        before: query.position()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.invitation_list(&caller, wanted).await?;
    let next = query.cut_opaque(&mut found, |invitation| invitation.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(invitations::listed), next.as_deref())))
}

pub(super) async fn accept(
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

pub(super) async fn decline(
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

pub(super) async fn cancel(
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

/// Clients send an empty object, or nothing; what else is in it is ignored.
fn nothing_in(body: &Value) -> Result<(), Problem> {
    RequestFields::of_body(body, ProblemCode::ValidationError).map(drop)
}

fn resolved(invitation: &Invitation) -> Value {
    json!(invitations::resolved(invitation))
}
