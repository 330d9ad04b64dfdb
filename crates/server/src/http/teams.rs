//! `/v1/teams`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    caller::Caller,
    team::{Invitation, InvitationKind, Member, Team},
};
use jurat_engine::Engine;
use jurat_wire::api::{invitations, page::Page, people, teams};
use serde_json::{Value, json};

use super::page::Filters;
use crate::{
    decode::{Json, PathPair, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn create(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let handle = people::decode_handle(&body)?;
    let reply = |team: &Team| json!(teams::team(team));
    let keyed = repeatable.keyed("team_create", &body, StatusCode::CREATED, reply);
    let done = engine.team_create(&caller, handle, keyed).await?;
    Ok(once::reply(done, |team| encode::created(&reply(team))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: Filters,
) -> Answer {
    query.only(&["filter"])?;
    let found = engine.team_list(&caller, teams::filter(query.get("filter"))?).await?;
    Ok(encode::ok(&Page::new(found.iter().map(teams::team), None)))
}

pub(super) async fn erase(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(team): PathText,
) -> Answer {
    let reply = |team: &Team| json!(teams::deleted(team));
    let keyed = repeatable.keyed("team_delete", &Value::Null, StatusCode::OK, reply);
    let done = engine.team_delete(&caller, &team, keyed).await?;
    Ok(once::reply(done, |team| encode::ok(&reply(team))))
}

pub(super) async fn members(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(team): PathText,
    query: Filters,
) -> Answer {
    query.only(&[])?;
    let found = engine.team_members(&caller, &team).await?;
    Ok(encode::ok(&Page::new(found.iter().map(teams::member), None)))
}

pub(super) async fn add_member(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(team): PathText,
    Json(body): Json,
) -> Answer {
    let offer = (InvitationKind::TeamMembership, teams::decode_member(&body)?);
    let keyed = repeatable.keyed("team_invite", &body, StatusCode::CREATED, sent);
    let done = engine.team_invite(&caller, &team, offer, keyed).await?;
    Ok(once::reply(done, |invitation| encode::created(&sent(invitation))))
}

pub(super) async fn transfer(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(team): PathText,
    Json(body): Json,
) -> Answer {
    let offer = (InvitationKind::TeamOwnership, teams::decode_new_owner(&body)?);
    let keyed = repeatable.keyed("team_transfer", &body, StatusCode::OK, sent);
    let done = engine.team_invite(&caller, &team, offer, keyed).await?;
    Ok(once::reply(done, |invitation| encode::ok(&sent(invitation))))
}

pub(super) async fn remove_member(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathPair(team, user): PathPair,
) -> Answer {
    let reply = |(team, member): &(Team, Member)| json!(teams::removed(team, member));
    let keyed = repeatable.keyed("team_remove", &Value::Null, StatusCode::OK, reply);
    let done = engine.team_remove(&caller, &team, &user, keyed).await?;
    Ok(once::reply(done, |removed| encode::ok(&reply(removed))))
}

fn sent(invitation: &Invitation) -> Value {
    json!(invitations::sent(invitation))
}
