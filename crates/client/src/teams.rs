//! `/v1/teams`.

use jurat_wire::api::{
    invitations::InvitationSent,
    people::HandleDraft,
    teams::{AddMemberDraft, DeletedTeam, MemberBody, RemovedMember, TeamBody, TransferTeamDraft},
};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/teams";

pub fn create(handle: &str) -> Call<TeamBody<'static>> {
    Call::post(ROUTE, &HandleDraft { handle: handle.to_owned() })
}

pub fn list(filter: Option<&str>) -> Call<Page<TeamBody<'static>>> {
    Call::get(ROUTE).query("filter", filter)
}

pub fn members(team: &str) -> Call<Page<MemberBody<'static>>> {
    Call::get(path(ROUTE, &[team, "members"]))
}

pub fn invite(team: &str, user: &str) -> Call<InvitationSent<'static>> {
    let body = AddMemberDraft { user_identifier: user.to_owned() };
    Call::post(path(ROUTE, &[team, "members"]), &body)
}

pub fn transfer_ownership(team: &str, user: &str) -> Call<InvitationSent<'static>> {
    let body = TransferTeamDraft { new_owner_user_identifier: user.to_owned() };
    Call::post(path(ROUTE, &[team, "transfer-ownership"]), &body)
}

pub fn remove_member(team: &str, user: &str) -> Call<RemovedMember<'static>> {
    Call::delete(path(ROUTE, &[team, "members", user]))
}

pub fn delete(team: &str) -> Call<DeletedTeam<'static>> {
    Call::delete(path(ROUTE, &[team]))
}
