//! The resource `/v1/teams`.

use std::borrow::Cow;

use jurat_core::{
    account::team::{Team, TeamMember, TeamRole},
    code::ProblemCode,
};
use serde::{Deserialize, Serialize};
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
    pub open struct AddMemberRequest, draft AddMemberDraft {
        /// An e-mail address, a handle, or an account id.
        user_identifier: Identifier,
    }

    /// The user who is offered a team.
    pub open struct TransferTeamRequest, draft TransferTeamDraft {
        /// An e-mail address, a handle, or an account id.
        new_owner_user_identifier: Identifier,
    }
}

/// Reads the user to invite.
pub fn decode_member(body: &Value) -> Result<String, Problem> {
    let request: AddMemberRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.user_identifier.0)
}

/// Reads the user who is offered the team.
pub fn decode_new_owner(body: &Value) -> Result<String, Problem> {
    let request: TransferTeamRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.new_owner_user_identifier.0)
}

/// Reads the caller's role in the teams to list; `None` for all of the caller's teams.
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
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Team)]
pub struct TeamBody<'a> {
    pub team_id: Cow<'a, str>,
    pub handle: Cow<'a, str>,
    /// The account that owns it.
    pub owner_user_id: Cow<'a, str>,
    /// The caller's role in the team.
    pub role: words::TeamRole,
    pub created_at: Time,
}

/// A team, as shown to its members.
pub fn team(team: &Team) -> TeamBody<'_> {
    TeamBody {
        team_id: Cow::Borrowed(team.account.as_str()),
        handle: Cow::Borrowed(&team.handle),
        owner_user_id: Cow::Borrowed(team.owner.as_str()),
        role: words::TeamRole(team.role),
        created_at: Time(team.created_at),
    }
}

/// A member of a team.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TeamMember)]
pub struct MemberBody<'a> {
    pub user_id: Cow<'a, str>,
    #[schema(required = true)]
    pub email: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub handle: Option<Cow<'a, str>>,
    pub role: words::TeamRole,
    pub since: Time,
}

/// A member of a team.
pub fn member(member: &TeamMember) -> MemberBody<'_> {
    MemberBody {
        user_id: Cow::Borrowed(member.account.as_str()),
        email: member.email.as_deref().map(Cow::Borrowed),
        handle: member.handle.as_deref().map(Cow::Borrowed),
        role: words::TeamRole(member.role),
        since: Time(member.since),
    }
}

/// A deleted team.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DeletedTeam<'a> {
    pub team_id: Cow<'a, str>,
    pub handle: Cow<'a, str>,
    pub deleted: bool,
}

/// A deleted team.
pub fn deleted(team: &Team) -> DeletedTeam<'_> {
    DeletedTeam {
        team_id: Cow::Borrowed(team.account.as_str()),
        handle: Cow::Borrowed(&team.handle),
        deleted: true,
    }
}

/// A removed team member.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct RemovedMember<'a> {
    pub team_id: Cow<'a, str>,
    pub user_id: Cow<'a, str>,
    pub removed: bool,
}

/// A removed team member.
pub fn removed<'a>(team: &'a Team, member: &'a TeamMember) -> RemovedMember<'a> {
    RemovedMember {
        team_id: Cow::Borrowed(team.account.as_str()),
        user_id: Cow::Borrowed(member.account.as_str()),
        removed: true,
    }
}
