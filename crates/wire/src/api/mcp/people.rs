//! What the tools for handles, teams, invitations and keys take.

use serde_json::Value;
use utoipa::ToSchema;

use super::arguments::known;
use crate::{api::fields::Fields, problem::Problem};

/// What a tool takes that takes nothing.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// What `list_teams` takes.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTeamsArguments {
    /// `all`, `mine` or `member`; all when left out.
    pub filter: Option<String>,
}

/// What tools take that are about one team.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamArguments {
    /// The id of a team, or its handle.
    #[schema(pattern = r"\S")]
    pub team_id: String,
}

/// What tools take that are about somebody in a team.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamMemberArguments {
    /// The id of a team, or its handle.
    #[schema(pattern = r"\S")]
    pub team_id: String,
    /// An e-mail address, a handle, or the id of an account.
    #[schema(pattern = r"\S")]
    pub user_identifier: String,
}

/// What `transfer_team_ownership` takes.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferTeamArguments {
    /// The id of a team, or its handle.
    #[schema(pattern = r"\S")]
    pub team_id: String,
    /// An e-mail address, a handle, or the id of an account.
    #[schema(pattern = r"\S")]
    pub new_owner_user_identifier: String,
}

/// What `list_invitations` takes.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListInvitationsArguments {
    /// `received`, `sent` or `all`; those received when left out.
    pub filter: Option<String>,
    /// `pending` or `all`; those that can be answered when left out.
    pub state: Option<String>,
    /// How many to return; 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// What tools take that answer an invitation.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InvitationArguments {
    /// The id of an invitation.
    #[schema(pattern = r"\S")]
    pub invitation_id: String,
}

/// What `revoke_api_key` takes.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeKeyArguments {
    /// The id of a key, or its name.
    #[schema(pattern = r"\S")]
    pub key_id: String,
}

/// What `mint_api_key` takes.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MintKeyArguments {
    /// What the key is called.
    #[schema(pattern = r"\S")]
    pub name: String,
}

/// What `list_api_keys` takes.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListKeysArguments {
    /// How many to return; 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

pub fn nothing(arguments: &Value) -> Result<(), Problem> {
    known(arguments, &[]).map(drop)
}

/// Two texts that must be there.
pub fn pair<'a>(
    arguments: &'a Value,
    (one, two): (&'static str, &'static str),
) -> Result<(&'a str, &'a str), Problem> {
    let fields = known(arguments, &[one, two])?;
    Ok((fields.required_text(one)?, fields.required_text(two)?))
}

/// A text that must be there.
pub fn one<'a>(arguments: &'a Value, name: &'static str) -> Result<&'a str, Problem> {
    known(arguments, &[name])?.required_text(name)
}

/// A text that may be there.
pub fn maybe<'a>(arguments: &'a Value, name: &'static str) -> Result<Option<&'a str>, Problem> {
    known(arguments, &[name])?.text(name)
}

/// The arguments of `list_invitations`.
pub fn invitations(arguments: &Value) -> Result<Fields<'_>, Problem> {
    known(arguments, &["filter", "state", "limit", "cursor"])
}
