//! `/v1/invitations`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    caller::Caller,
    code::Code,
    team::{Invitation, Resolution},
};
use jurat_engine::{Engine, InvitationQuery};
use jurat_wire::{
    api::{fields::Fields, invitations, page::Page},
    problem::Problem,
};
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::{
    decode::{MaybeJson, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&["filter", "state"])?;
    let (is_received, is_sent) = invitations::filter(query.filters.get("filter"))?;
    let wanted = InvitationQuery {
        is_received,
        is_sent,
        is_pending: invitations::is_pending(query.filters.get("state"))?,
        before: query.place()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.invitation_list(&caller, wanted).await?;
    let next = query.cut_sealed(&mut found, |invitation| invitation.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(invitations::listed), next.as_deref())))
}

pub(super) async fn accept(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> Answer {
    nothing_in(&body)?;
    let keyed = repeatable.keyed("invitation_accept", &Value::Null, StatusCode::OK, resolved);
    let done = engine.invitation_answer(&caller, &id, Resolution::Accepted, keyed).await?;
    Ok(once::reply(done, |invitation| encode::ok(&resolved(invitation))))
}

pub(super) async fn decline(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> Answer {
    nothing_in(&body)?;
    let keyed = repeatable.keyed("invitation_decline", &Value::Null, StatusCode::OK, resolved);
    let done = engine.invitation_answer(&caller, &id, Resolution::Declined, keyed).await?;
    Ok(once::reply(done, |invitation| encode::ok(&resolved(invitation))))
}

pub(super) async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> Answer {
    nothing_in(&body)?;
    let keyed = repeatable.keyed("invitation_cancel", &Value::Null, StatusCode::OK, resolved);
    let done = engine.invitation_answer(&caller, &id, Resolution::Cancelled, keyed).await?;
    Ok(once::reply(done, |invitation| encode::ok(&resolved(invitation))))
}

/// Clients send an empty object, or nothing; what else is in it is ignored.
fn nothing_in(body: &Value) -> Result<(), Problem> {
    Fields::of_body(body, Code::ValidationError).map(drop)
}

fn resolved(invitation: &Invitation) -> Value {
    json!(invitations::resolved(invitation))
}
