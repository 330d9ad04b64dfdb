//! What the operations on handles, teams, shares and invitations are for.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    invitations::{InvitationBody, InvitationResolved, InvitationSent},
    kit::page::PageBody,
    people::{ClaimedHandle, HandleRequest},
    shares::{AnswerShareRequest, ShareBody},
    teams::{
        AddMemberRequest, DeletedTeam, MemberBody, RemovedMember, TeamBody, TransferTeamRequest,
    },
};
use serde_json::{Value, json};

use super::PEOPLE;
use crate::{
    openapi::{description::OperationDescription, parameters},
    resources::RouteInfo,
};

const TEAM: &str = "acct_01KHG5YN40MXBR5YWT0Q2YFEDS";
const OFFER: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
const AT: &str = "2026-09-21T14:13:20Z";
const UNTIL: &str = "2026-10-05T14:13:20Z";

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    Some(match route.operation {
        "handle_claim" => handle_claim(),
        "handle_rename" => handle_rename(),
        "team_create" => team_create(),
        "team_list" => team_list(),
        "team_delete" => team_delete(),
        "team_members" => team_members(),
        "team_invite" => team_invite(),
        "team_remove" => team_remove(),
        "team_transfer" => team_transfer(),
        "share_list" => share_list(),
        "share_accept" => share(
            ("Accept a share",
            "Accepts a granted workflow, so that searches find it. Reading or running it by its id or as `@owner/name` accepts it too. Accepting a declined share restores it and unblocks its owner."),
            ("accepted", false),
        ),
        "share_decline" => share(
            ("Decline a share",
            "Declines a granted workflow, which the caller cannot use until accepting it. The owner is not notified."),
            ("declined", false),
        )
        .refuses([ProblemCode::Conflict]),
        "share_block" => share(
            ("Block the owner of a share",
            "Declines everything that the owner has granted to the caller or will grant. The owner is not notified. Team grants stay."),
            ("declined", true),
        ),
        "invitation_list" => invitation_list(),
        "invitation_accept" => answer(
            "Accept an invitation",
            "Accepts an invitation: membership in a team, or ownership of a team, workflow or template.",
            "accepted",
        )
        .refuses([ProblemCode::Conflict, ProblemCode::QuotaExceeded]),
        "invitation_decline" => answer(
            "Decline an invitation",
            "Declines an invitation; the sender can see that.",
            "declined",
        ),
        "invitation_cancel" => answer(
            "Cancel an invitation",
            "Cancels an unanswered invitation that the caller sent.",
            "cancelled",
        ),
        _ => return None,
    })
}

fn handle_claim() -> OperationDescription {
    let text = "Gives the account its first handle, which is its public name. Users and teams share one set of handles.";
    OperationDescription::new(PEOPLE, "Claim a handle", text)
        .scope(Scope::AccountWrite)
        .takes::<HandleRequest>([("plain", json!({ "handle": "ann" }))])
        .answers::<ClaimedHandle<'_>>(
            200,
            "The handle.",
            json!({ "handle": "ann", "claimed_at": AT }),
        )
        .idempotent()
        .refuses([
            ProblemCode::HandleInvalid,
            ProblemCode::HandleTaken,
            ProblemCode::HandleReserved,
            ProblemCode::HandleAlreadyClaimed,
        ])
}

fn handle_rename() -> OperationDescription {
    let text = "Changes the account's handle; the old one redirects for 90 days. A handle must be kept for 90 days and can change at most three times a year.";
    OperationDescription::new(PEOPLE, "Change the handle", text)
        .scope(Scope::AccountWrite)
        .takes::<HandleRequest>([("plain", json!({ "handle": "anna" }))])
        .answers::<ClaimedHandle<'_>>(
            200,
            "The handle.",
            json!({ "handle": "anna", "claimed_at": AT }),
        )
        .idempotent()
        .refuses([
            ProblemCode::HandleInvalid,
            ProblemCode::HandleTaken,
            ProblemCode::HandleReserved,
            ProblemCode::HandleNotClaimed,
            ProblemCode::HandleRenameTooSoon,
            ProblemCode::HandleRenameLimitExceeded,
        ])
}

fn team_create() -> OperationDescription {
    let text = "Creates a team that the caller owns. Its handle never changes. The caller must have a handle.";
    OperationDescription::new(PEOPLE, "Create a team", text)
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
}

fn a_team() -> Value {
    json!({
        "team_id": TEAM, "handle": "crew", "owner_user_id": "acct_ann", "role": "owner",
        "created_at": AT,
    })
}

fn team_list() -> OperationDescription {
    let text = "The teams that the caller owns or has joined, by handle.";
    OperationDescription::new(PEOPLE, "List teams", text)
        .scope(Scope::AccountWrite)
        .with([parameters::of_teams()])
        .answers::<PageBody<'_, TeamBody<'_>>>(
            200,
            "The teams.",
            json!({ "items": [a_team()], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
}

fn team_delete() -> OperationDescription {
    let text = "Deletes a team that the caller owns, with its memberships, grants and invitations. Its handle cannot be reused for 90 days.";
    OperationDescription::new(PEOPLE, "Delete a team", text)
        .scope(Scope::AccountWrite)
        .answers::<DeletedTeam<'_>>(
            200,
            "The removed resource.",
            json!({ "team_id": TEAM, "handle": "crew", "deleted": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

fn team_members() -> OperationDescription {
    let text = "The members of one of the caller's teams, in the order in which they joined.";
    let member = json!({
        "user_id": "acct_ann", "email": null, "handle": "ann", "role": "owner",
        "since": AT,
    });
    OperationDescription::new(PEOPLE, "List the members of a team", text)
        .scope(Scope::AccountWrite)
        .answers::<PageBody<'_, MemberBody<'_>>>(
            200,
            "The members.",
            json!({ "items": [member], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

fn team_invite() -> OperationDescription {
    let text = "Invites a user to a team that the caller owns. The user joins after accepting. The reply is the same for addresses with and without an account.";
    OperationDescription::new(PEOPLE, "Invite a user to a team", text)
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
}

fn offered(kind: &str) -> Value {
    json!({
        "invitation_id": OFFER, "kind": kind, "target_id": TEAM, "target_label": "@crew",
        "expires_at": UNTIL,
    })
}

fn team_remove() -> OperationDescription {
    let text = "Removes a member from a team. The owner can remove any other member, and members can remove themselves.";
    OperationDescription::new(PEOPLE, "Remove a member, or leave a team", text)
        .scope(Scope::AccountWrite)
        .answers::<RemovedMember<'_>>(
            200,
            "The removed member.",
            json!({ "team_id": TEAM, "user_id": "acct_bob", "removed": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

fn team_transfer() -> OperationDescription {
    let text = "Offers a team that the caller owns to another user, who owns it after accepting. The previous owner stays a member.";
    let to = json!({ "new_owner_user_identifier": "bob@example.com" });
    OperationDescription::new(PEOPLE, "Transfer a team", text)
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
}

fn share_example(state: &str, is_blocked: bool) -> Value {
    json!({
        "id": OFFER, "name": "Incident postmortem", "slug": "incident-postmortem",
        "description": "Writes up an incident.", "reference": "@ann/incident-postmortem",
        "owner": "@ann", "owner_user_id": "acct_01KHG5YN40MXBR5YWT0Q2YFEDT", "role": "view",
        "state": state, "blocked": is_blocked, "via_team": null, "granted_at": AT,
    })
}

fn share_list() -> OperationDescription {
    let text = "Workflows of other owners that were granted to the caller, directly or through a team, newest workflow first, each with the verifiers that it names.";
    OperationDescription::new(PEOPLE, "List shares", text)
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_list())
        .with([parameters::of_shares()])
        .answers::<PageBody<'_, ShareBody<'_>>>(
            200,
            "A page of shares.",
            json!({ "items": [share_example("pending", false)], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
}

fn share(
    (summary, text): (&'static str, &'static str),
    (state, is_blocked): (&str, bool),
) -> OperationDescription {
    OperationDescription::new(PEOPLE, summary, text)
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

fn invitation_list() -> OperationDescription {
    let text = "The caller's invitations, newest first. Unanswered ones expire.";
    let invitation = json!({
        "id": OFFER, "kind": "team_membership", "target_id": TEAM, "target_label": "@crew",
        "proposed_by_handle": "ann", "proposed_to_handle": "bob@example.com",
        "created_at": AT, "expires_at": UNTIL, "resolved_at": null, "resolution": null,
    });
    OperationDescription::new(PEOPLE, "List invitations", text)
        .scope(Scope::AccountWrite)
        .with(parameters::of_list())
        .with(parameters::of_invitations())
        .answers::<PageBody<'_, InvitationBody<'_>>>(
            200,
            "A page of invitations.",
            json!({ "items": [invitation], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
}

/// Nothing needs to be sent with an answer.
#[derive(Debug, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn answer(summary: &'static str, text: &'static str, resolution: &str) -> OperationDescription {
    OperationDescription::new(PEOPLE, summary, text)
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
