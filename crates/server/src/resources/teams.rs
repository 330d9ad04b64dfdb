//! `/v1/teams`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::{
        caller::{Caller, Scope},
        team::{Invitation, InvitationKind, Team, TeamMember, TeamOffer},
    },
    code::ProblemCode,
};
use jurat_engine::Engine;
use jurat_wire::api::{
    invitations::{self, InvitationSent},
    kit::page::PageBody,
    people::{self, HandleRequest},
    teams::{
        self, AddMemberRequest, DeletedTeam, MemberBody, RemovedMember, TeamBody,
        TransferTeamRequest,
    },
};
use serde_json::{Value, json};

use crate::{
    mcp::render,
    operation::{
        Operation, Tool,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, PathPair, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::QueryFilters,
    },
    resources::PEOPLE,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        create_operation(),
        list_operation(),
        erase_operation(),
        members_operation(),
        add_member_operation(),
        remove_member_operation(),
        transfer_operation(),
    ]
}

const TEAM_NAME: PathParameter = PathParameter::new("team", "The handle or id of a team.", "crew");
const MEMBER_NAME: PathParameter =
    PathParameter::new("user", "The e-mail address, handle or id of a member.", "bob@example.com");

fn create_operation() -> Operation {
    let text = "Creates a team that the caller owns. Its handle never changes. The caller must have a handle.";
    let about = "Creates a team that the account owns. The handle of a team never changes.";
    Operation::post("/v1/teams", "team_create", create)
        .tag(PEOPLE)
        .summary("Create a team")
        .text(text)
        .scope(Scope::AccountWrite)
        .takes::<HandleRequest>([("plain", json!({ "handle": "crew" }))])
        .answers::<TeamBody<'_>>(201, "The team.", a_team())
        .idempotent()
        .refuses([
            ProblemCode::HandleInvalid,
            ProblemCode::HandleTaken,
            ProblemCode::HandleReserved,
            ProblemCode::HandleNotClaimed,
            ProblemCode::QuotaExceeded,
        ])
        .tool(Tool::adds("create_team", "Create a team", about))
}

async fn create(
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

fn list_operation() -> Operation {
    Operation::get("/v1/teams", "team_list", list)
        .tag(PEOPLE)
        .summary("List teams")
        .text("The teams that the caller owns or has joined, by handle.")
        .scope(Scope::AccountWrite)
        .with([parameters::of_teams()])
        .answers::<PageBody<'_, TeamBody<'_>>>(
            200,
            "The teams.",
            json!({ "items": [a_team()], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads(
                "list_teams",
                "List teams",
                "Lists the teams that the account owns or has joined.",
            )
            .query(&["filter"])
            .ignores_unknown()
            .summary(render::counted),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&["filter"])?;
    let found = engine.team_list(&caller, teams::filter(query.get("filter"))?).await?;
    Ok(encode::ok(&PageBody::new(found.iter().map(teams::team), None)))
}

fn erase_operation() -> Operation {
    let text = "Deletes a team that the caller owns, with its memberships, grants and invitations. Its handle cannot be reused for 90 days.";
    let about = "Deletes a team that the account owns, with its memberships and all grants to it.";
    Operation::delete("/v1/teams/{team}", "team_delete", erase)
        .tag(PEOPLE)
        .summary("Delete a team")
        .text(text)
        .in_path([TEAM_NAME])
        .scope(Scope::AccountWrite)
        .answers::<DeletedTeam<'_>>(
            200,
            "The removed resource.",
            json!({ "team_id": TEAM, "handle": "crew", "deleted": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
        .tool(
            Tool::ends("delete_team", "Delete a team", about)
                .confirmed()
                .path("team_id", "The id or handle of a team.")
                .ignores_unknown(),
        )
}

async fn erase(
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

fn members_operation() -> Operation {
    let text = "The members of one of the caller's teams, in the order in which they joined.";
    let member = json!({
        "user_id": "acct_ann", "email": null, "handle": "ann", "role": "owner",
        "since": AT,
    });
    Operation::get("/v1/teams/{team}/members", "team_members", members)
        .tag(PEOPLE)
        .summary("List the members of a team")
        .text(text)
        .in_path([TEAM_NAME])
        .scope(Scope::AccountWrite)
        .answers::<PageBody<'_, MemberBody<'_>>>(
            200,
            "The members.",
            json!({ "items": [member], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
        .tool(
            Tool::reads(
                "list_team_members",
                "List the members of a team",
                "Lists the members of one of the account's teams.",
            )
            .path("team_id", "The id or handle of a team.")
            .ignores_unknown()
            .summary(render::counted),
        )
}

async fn members(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(team): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let found = engine.team_members(&caller, &team).await?;
    Ok(encode::ok(&PageBody::new(found.iter().map(teams::member), None)))
}

fn add_member_operation() -> Operation {
    let text = "Invites a user to a team that the caller owns. The user joins after accepting. The reply is the same for addresses with and without an account.";
    let about = "Invites a user to a team that the account owns. The user joins after accepting.";
    Operation::post("/v1/teams/{team}/members", "team_invite", add_member)
        .tag(PEOPLE)
        .summary("Invite a user to a team")
        .text(text)
        .in_path([TEAM_NAME])
        .scope(Scope::AccountWrite)
        .takes::<AddMemberRequest>([("plain", json!({ "user_identifier": "bob@example.com" }))])
        .answers::<InvitationSent<'_>>(201, "The offer.", offered("team_membership"))
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::InvitationAlreadyPending,
            ProblemCode::QuotaExceeded,
        ])
        .tool(
            Tool::adds("add_team_member", "Invite a user to a team", about)
                .path("team_id", "The id or handle of a team."),
        )
}

async fn add_member(
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

fn transfer_operation() -> Operation {
    let text = "Offers a team that the caller owns to another user, who owns it after accepting. The previous owner stays a member.";
    let about = "Offers a team that the account owns to another user, who owns it after accepting.";
    let to = json!({ "new_owner_user_identifier": "bob@example.com" });
    Operation::post("/v1/teams/{team}/transfer-ownership", "team_transfer", transfer)
        .tag(PEOPLE)
        .summary("Transfer a team")
        .text(text)
        .in_path([TEAM_NAME])
        .scope(Scope::AccountWrite)
        .takes::<TransferTeamRequest>([("plain", to)])
        .answers::<InvitationSent<'_>>(200, "The offer.", offered("team_ownership"))
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::InvitationAlreadyPending,
            ProblemCode::QuotaExceeded,
        ])
        .tool(
            Tool::adds("transfer_team_ownership", "Transfer a team", about)
                .path("team_id", "The id or handle of a team."),
        )
}

async fn transfer(
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

fn remove_member_operation() -> Operation {
    let text = "Removes a member from a team. The owner can remove any other member, and members can remove themselves.";
    let about = "Removes a member from a team, or lets the account itself leave it.";
    Operation::delete("/v1/teams/{team}/members/{user}", "team_remove", remove_member)
        .tag(PEOPLE)
        .summary("Remove a member, or leave a team")
        .text(text)
        .in_path([TEAM_NAME, MEMBER_NAME])
        .scope(Scope::AccountWrite)
        .answers::<RemovedMember<'_>>(
            200,
            "The removed member.",
            json!({ "team_id": TEAM, "user_id": "acct_bob", "removed": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
        .tool(
            Tool::ends("remove_team_member", "Remove a team member", about)
                .path("team_id", "The id or handle of a team.")
                .path("user_identifier", "An e-mail address, a handle, or an account id.")
                .ignores_unknown(),
        )
}

async fn remove_member(
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

const TEAM: &str = "acct_01KHG5YN40MXBR5YWT0Q2YFEDS";
const OFFER: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
const AT: &str = "2026-09-21T14:13:20Z";
const UNTIL: &str = "2026-10-05T14:13:20Z";

fn a_team() -> Value {
    json!({
        "team_id": TEAM, "handle": "crew", "owner_user_id": "acct_ann", "role": "owner",
        "created_at": AT,
    })
}

fn offered(kind: &str) -> Value {
    json!({
        "invitation_id": OFFER, "kind": kind, "target_id": TEAM, "target_label": "@crew",
        "expires_at": UNTIL,
    })
}
