//! What the tools for handles, teams, invitations and keys take.

use jurat_core::{account::team::TeamRole, workflow::share::ShareState};
use serde_json::Value;
use utoipa::ToSchema;

use super::arguments::{PageOrder, given, known_arguments, position_of};
use crate::{
    api::{invitations, shares, teams},
    problem::Problem,
};

/// No arguments.
#[derive(Debug, ToSchema)]
pub struct NoArguments {}

/// Arguments of `list_teams`.
#[derive(Debug, ToSchema)]
pub struct ListTeamsArguments {
    /// `all`, `mine` or `member`; defaults to `all`.
    #[schema(pattern = "^(all|mine|member)$")]
    pub filter: Option<String>,
}

/// Arguments of tools for one team.
#[derive(Debug, ToSchema)]
pub struct TeamArguments {
    /// The id or handle of a team.
    #[schema(pattern = r"\S")]
    pub team_id: String,
}

/// Arguments of tools for a team member.
#[derive(Debug, ToSchema)]
pub struct TeamMemberArguments {
    /// The id or handle of a team.
    #[schema(pattern = r"\S")]
    pub team_id: String,
    /// An e-mail address, a handle, or an account id.
    #[schema(pattern = r"\S")]
    pub user_identifier: String,
}

/// Arguments of `transfer_team_ownership`.
#[derive(Debug, ToSchema)]
pub struct TransferTeamArguments {
    /// The id or handle of a team.
    #[schema(pattern = r"\S")]
    pub team_id: String,
    /// An e-mail address, a handle, or an account id.
    #[schema(pattern = r"\S")]
    pub new_owner_user_identifier: String,
}

/// Arguments of `list_invitations`.
#[derive(Debug, ToSchema)]
pub struct ListInvitationsArguments {
    /// `received`, `sent` or `all`; defaults to `received`.
    #[schema(pattern = "^(received|sent|all)$")]
    pub filter: Option<String>,
    /// `pending` or `all`; defaults to `pending`.
    #[schema(pattern = "^(pending|all)$")]
    pub state: Option<String>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Arguments of `list_shares`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSharesArguments {
    /// `pending`, `accepted` or `declined`; defaults to all but declined ones.
    #[schema(pattern = "^(pending|accepted|declined)$")]
    pub state: Option<String>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Arguments of tools that answer a share.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareArguments {
    /// The id of a share, which is the id of its workflow.
    #[schema(pattern = r"\S")]
    pub share_id: String,
}

/// Arguments of tools that answer an invitation.
#[derive(Debug, ToSchema)]
pub struct InvitationArguments {
    /// The id of an invitation.
    #[schema(pattern = r"\S")]
    pub invitation_id: String,
}

/// Arguments of `revoke_api_key`.
#[derive(Debug, ToSchema)]
pub struct RevokeKeyArguments {
    /// The id or name of a key.
    #[schema(pattern = r"\S")]
    pub key_id: String,
}

/// Arguments of `mint_api_key`.
#[derive(Debug, ToSchema)]
pub struct MintKeyArguments {
    /// Name of the key.
    #[schema(pattern = r"\S")]
    pub name: String,
}

/// Arguments of `list_api_keys`.
#[derive(Debug, ToSchema)]
pub struct ListKeysArguments {
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

pub fn nothing(arguments: &Value) -> Result<(), Problem> {
    given(arguments).map(drop)
}

/// Two texts that must be there.
pub fn pair<'a>(
    arguments: &'a Value,
    (one, two): (&'static str, &'static str),
) -> Result<(&'a str, &'a str), Problem> {
    let fields = given(arguments)?;
    Ok((fields.required_text(one)?, fields.required_text(two)?))
}

/// A text that must be there.
pub fn one<'a>(arguments: &'a Value, name: &'static str) -> Result<&'a str, Problem> {
    given(arguments)?.required_text(name)
}

/// Which teams `list_teams` lists; `None` for all of the caller's.
pub fn teams(arguments: &Value) -> Result<Option<TeamRole>, Problem> {
    teams::filter(given(arguments)?.text("filter")?)
}

/// Which invitations are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationOrder {
    pub is_received: bool,
    pub is_sent: bool,
    pub is_pending: bool,
    pub limit: u32,
    pub cursor: Option<String>,
}

/// The arguments of `list_invitations`.
pub fn invitations(arguments: &Value) -> Result<InvitationOrder, Problem> {
    let fields = given(arguments)?;
    let (is_received, is_sent) = invitations::filter(fields.text("filter")?)?;
    let is_pending = invitations::is_pending(fields.text("state")?)?;
    let (limit, cursor) = position_of(&fields)?;
    Ok(InvitationOrder { is_received, is_sent, is_pending, limit, cursor })
}

/// The state of the shares that are wanted, and which page of them.
pub fn shares(arguments: &Value) -> Result<(Option<ShareState>, PageOrder), Problem> {
    let fields = known_arguments::<ListSharesArguments>(arguments)?;
    let state = shares::state(fields.text("state")?)?;
    let (limit, cursor) = position_of(&fields)?;
    Ok((state, PageOrder { limit, cursor }))
}

/// The share that is answered.
pub fn share(arguments: &Value) -> Result<&str, Problem> {
    known_arguments::<ShareArguments>(arguments)?.required_text("share_id")
}
