//! `/v1/teams`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::account::{
    caller::Caller,
    team::{Invitation, InvitationKind, Team, TeamMember, TeamOffer},
};
use jurat_engine::Engine;
use jurat_wire::api::{invitations, kit::page::PageBody, people, teams};
use serde_json::{Value, json};

use crate::request::page::QueryFilters;
use crate::request::{
    decode::{Json, PathPair, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn create(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let handle = people::decode_handle(&body)?;
    let reply = |team: &Team| json!(teams::team(team));
    let keyed = idempotency.write_for("team_create", &body, StatusCode::CREATED, reply);
    let done = engine.team_create(&caller, &handle, keyed).await?;
    Ok(idempotency::reply(done, |team| encode::created(&reply(team))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&["filter"])?;
    let found = engine.team_list(&caller, teams::filter(query.get("filter"))?).await?;
    Ok(encode::ok(&PageBody::new(found.iter().map(teams::team), None)))
}

pub(super) async fn erase(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(team): PathText,
) -> HandlerResult {
    let reply = |team: &Team| json!(teams::deleted(team));
    let keyed = idempotency.write_for("team_delete", &Value::Null, StatusCode::OK, reply);
    let done = engine.team_delete(&caller, &team, keyed).await?;
    Ok(idempotency::reply(done, |team| encode::ok(&reply(team))))
}

pub(super) async fn members(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(team): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let found = engine.team_members(&caller, &team).await?;
    Ok(encode::ok(&PageBody::new(found.iter().map(teams::member), None)))
}

pub(super) async fn add_member(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(team): PathText,
    Json(body): Json,
) -> HandlerResult {
    let to = teams::decode_member(&body)?;
    let offer = TeamOffer { kind: InvitationKind::TeamMembership, to: to.as_str() };
    let keyed = idempotency.write_for("team_invite", &body, StatusCode::CREATED, sent);
    let done = engine.team_invite(&caller, &team, offer, keyed).await?;
    Ok(idempotency::reply(done, |invitation| encode::created(&sent(invitation))))
}

pub(super) async fn transfer(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(team): PathText,
    Json(body): Json,
) -> HandlerResult {
    let to = teams::decode_new_owner(&body)?;
    let offer = TeamOffer { kind: InvitationKind::TeamOwnership, to: to.as_str() };
    let keyed = idempotency.write_for("team_transfer", &body, StatusCode::OK, sent);
    let done = engine.team_invite(&caller, &team, offer, keyed).await?;
    Ok(idempotency::reply(done, |invitation| encode::ok(&sent(invitation))))
}

pub(super) async fn remove_member(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathPair(team, user): PathPair,
) -> HandlerResult {
    let reply = |(team, member): &(Team, TeamMember)| json!(teams::removed(team, member));
    let keyed = idempotency.write_for("team_remove", &Value::Null, StatusCode::OK, reply);
    let done = engine.team_remove(&caller, &team, &user, keyed).await?;
    Ok(idempotency::reply(done, |removed| encode::ok(&reply(removed))))
}

fn sent(invitation: &Invitation) -> Value {
    json!(invitations::sent(invitation))
}
