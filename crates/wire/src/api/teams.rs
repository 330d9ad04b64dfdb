//! The resource `/v1/teams`.

use jurat_core::{
    account::team::{Team, TeamMember, TeamRole},
    code::ProblemCode,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    request::{self, request, values::Identifier},
    time::Time,
    words,
};
use crate::problem::Problem;

request! {
    /// The user to invite to a team.
    pub open struct AddMemberRequest {
        /// An e-mail address, a handle, or an account id.
        user_identifier: Identifier,
    }

    /// The user who is offered a team.
    pub open struct TransferTeamRequest {
        /// An e-mail address, a handle, or an account id.
        new_owner_user_identifier: Identifier,
    }
}

/// The user to invite.
pub fn decode_member(body: &Value) -> Result<String, Problem> {
    let request: AddMemberRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.user_identifier.0)
}

/// The user who is offered the team.
pub fn decode_new_owner(body: &Value) -> Result<String, Problem> {
    let request: TransferTeamRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.new_owner_user_identifier.0)
}

/// Which teams are listed; `None` for all of the caller's.
pub fn filter(text: Option<&str>) -> Result<Option<TeamRole>, Problem> {
    match text {
        None | Some("all") => Ok(None),
        Some("mine") => Ok(Some(TeamRole::Owner)),
        Some("member") => Ok(Some(TeamRole::Member)),
        Some(_) => {
            let reason = "`filter` must be `all`, `mine` or `member`";
            Err(Problem::new(ProblemCode::ValidationError, reason).at("filter"))
        }
    }
}

/// A team, as shown to its members.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Team)]
pub struct TeamBody<'a> {
    team_id: &'a str,
    handle: &'a str,
    /// The account that owns it.
    owner_user_id: &'a str,
    /// The caller's role in the team.
    role: words::TeamRole,
    created_at: Time,
}

pub fn team(team: &Team) -> TeamBody<'_> {
    TeamBody {
        team_id: team.account.as_str(),
        handle: &team.handle,
        owner_user_id: team.owner.as_str(),
        role: words::TeamRole(team.role),
        created_at: Time(team.created_at),
    }
}

/// A member of a team.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TeamMember)]
pub struct MemberBody<'a> {
    user_id: &'a str,
    #[schema(required = true)]
    email: Option<&'a str>,
    #[schema(required = true)]
    handle: Option<&'a str>,
    role: words::TeamRole,
    since: Time,
}

pub fn member(member: &TeamMember) -> MemberBody<'_> {
    MemberBody {
        user_id: member.account.as_str(),
        email: member.email.as_deref(),
        handle: member.handle.as_deref(),
        role: words::TeamRole(member.role),
        since: Time(member.since),
    }
}

/// A deleted team.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedTeam<'a> {
    team_id: &'a str,
    handle: &'a str,
    deleted: bool,
}

pub fn deleted(team: &Team) -> DeletedTeam<'_> {
    DeletedTeam { team_id: team.account.as_str(), handle: &team.handle, deleted: true }
}

/// A removed team member.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedMember<'a> {
    team_id: &'a str,
    user_id: &'a str,
    removed: bool,
}

pub fn removed<'a>(team: &'a Team, member: &'a TeamMember) -> RemovedMember<'a> {
    RemovedMember {
        team_id: team.account.as_str(),
        user_id: member.account.as_str(),
        removed: true,
    }
}
