//! Teams and their members.

use const_format::concatcp;
use jurat_core::{
    account::{
        AccountName,
        team::{Invitation, InvitationKind, TEAM_MEMBERS, TEAMS_OWNED, Team, TeamMember, TeamRole},
    },
    id::AccountId,
    time::Timestamp,
};

use super::{
    invitations::{
        InvitationRefusal, NewInvitation, cancel_all, invitation_make, lock_target, times,
    },
    people::{self, HandleChange, profile_get},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Teams and their members.
    pub struct TeamOps = store.teams();
    reads {
        /// Teams of an account, in the order of their handles.
        fn list(wanted: &TeamListQuery) -> Vec<Team> = team_list;
        /// The members of a team in the order in which they joined; `None` if the caller is not a
        /// member.
        fn members(asked: &TeamLookup) -> Option<(Team, Vec<TeamMember>)> = team_members;
    }
    writes {
        /// Creates a team, which its creator owns.
        fn create(new: &NewTeam) -> Team, or TeamRefusal = team_create;
        /// Offers membership or ownership of a team.
        fn invite(invite: &TeamInvite) -> Invitation, or TeamRefusal = team_invite;
        /// Removes a member from a team; members may remove themselves.
        fn remove_member(removal: &MemberRemoval) -> (Team, TeamMember), or TeamRefusal = team_remove;
        /// Deletes a team with its members, its grants and its invitations.
        fn delete(asked: &TeamLookup) -> Team, or TeamRefusal = team_delete;
    }
}

/// Selects teams of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamListQuery {
    pub account: AccountId,
    /// Only teams in which the account has this role.
    pub role: Option<TeamRole>,
}

/// The team that a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamLookup {
    pub team: AccountName,
    pub by: AccountId,
    pub at: Timestamp,
}

/// A team to create. The caller has checked the form of its handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTeam {
    pub account: AccountId,
    pub handle: String,
    pub owner: AccountId,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamInvite {
    pub asked: TeamLookup,
    pub invitation_id: String,
    /// Membership or ownership.
    pub kind: InvitationKind,
    pub to: AccountName,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRemoval {
    pub asked: TeamLookup,
    pub member: AccountName,
}

/// Why a team stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamRefusal {
    /// There is no such team, or the caller is not a member.
    Unknown,
    /// Only its owner may do that.
    NotOwner,
    /// The caller needs a handle to create a team.
    NoHandle,
    HandleTaken,
    AlreadyMember,
    NotMember,
    /// The owner cannot leave.
    OwnerStays,
    Invitation(InvitationRefusal),
    TooManyTeams,
    TooManyMembers,
}

const SELECT: &str = "\
    select accounts.id, accounts.handle, accounts.created_at, team_members.role, \
    owners.account_id as owner_id from team_members \
    join accounts on accounts.id = team_members.team_id \
    join team_members as owners on owners.team_id = accounts.id and owners.role = 'owner' \
    where team_members.account_id = $1 ";

const OF_ACCOUNT: &str = concatcp!(
    SELECT,
    "and (cast($2 as text) is null or team_members.role = $2) order by accounts.handle"
);
const ONE: &str = concatcp!(SELECT, "and accounts.id = $2");
const ONE_BY_HANDLE: &str =
    concatcp!(SELECT, "and accounts.id in ", people::of_handle!("$2", "$3"));
const MEMBERS: &str = "\
    select accounts.id, accounts.email, accounts.handle, team_members.role, team_members.since \
    from team_members join accounts on accounts.id = team_members.account_id \
    where team_members.team_id = $1 order by team_members.since, accounts.id";
const ADD: &str = "\
    insert into accounts (id, created_at, kind, handle, handle_claimed_at) \
    values ($1, $2, 'team', $3, $2)";
const ADD_HANDLE: &str = "\
    insert into handles (handle, account_id, claimed_at, is_stamped) values ($1, $2, $3, 0) \
    on conflict (handle) do update set account_id = excluded.account_id, \
    claimed_at = excluded.claimed_at, left_at = null";
const JOIN: &str = "\
    insert into team_members (team_id, account_id, role, since) values ($1, $2, $3, $4) \
    on conflict (team_id, account_id) do nothing";
const SET_ROLE: &str = "\
    update team_members set role = $1 where team_id = $2 and account_id = $3 and role <> $1";
const LEAVE: &str = "delete from team_members where team_id = $1 and account_id = $2";
const EMPTY: &str = "delete from team_members where team_id = $1";
const UNGRANT: [&str; 2] = [
    "delete from named_grants where grantee_id = $1",
    "delete from workflow_grants where grantee_id = $1",
];
const LEAVE_HANDLE: &str = "update handles set left_at = $1 where account_id = $2";
const DELETE: &str = "delete from accounts where id = $1 and kind = 'team'";
const COUNT_MEMBERS: &str = "\
    select team_id as id, count(*) as times from team_members where team_id = $1 group by team_id";
const COUNT_TEAMS: &str = "\
    select account_id as id, count(*) as times from team_members \
    where account_id = $1 and (cast($2 as text) is null or role = $2) group by account_id";

fn read_team(cells: &dyn DbRow) -> Result<Team> {
    let columns = RowReader::new(cells, "accounts", "id")?;
    Ok(Team {
        account: columns.id("id", AccountId::parse)?,
        handle: columns.text("handle")?,
        owner: columns.id("owner_id", AccountId::parse)?,
        role: columns.word("role")?,
        created_at: columns.time("created_at")?,
    })
}

fn read_member(cells: &dyn DbRow) -> Result<TeamMember> {
    let columns = RowReader::new(cells, "team_members", "id")?;
    Ok(TeamMember {
        account: columns.id("id", AccountId::parse)?,
        email: columns.maybe_text("email")?,
        handle: columns.maybe_text("handle")?,
        role: columns.word("role")?,
        since: columns.time("since")?,
    })
}

async fn team_list(tx: &mut Tx<'_>, wanted: &TeamListQuery) -> Result<Vec<Team>> {
    let role = wanted.role.map(TeamRole::as_str);
    tx.all(OF_ACCOUNT, args![&wanted.account, role], read_team).await
}

/// The team, for one of its members. One query finds the team and checks the membership, so that a
/// foreign team takes as long as a missing one.
async fn seen(tx: &mut Tx<'_>, asked: &TeamLookup) -> Result<Option<Team>> {
    match &asked.team {
        AccountName::Id(id) => tx.first(ONE, args![&asked.by, id], read_team).await,
        AccountName::Handle(handle) => {
            let args = args![&asked.by, handle, people::found_since(asked.at)];
            tx.first(ONE_BY_HANDLE, args, read_team).await
        }
        // No team has an e-mail address.
        AccountName::Email(_) => Ok(None),
    }
}

async fn members(tx: &mut Tx<'_>, team: &AccountId) -> Result<Vec<TeamMember>> {
    tx.all(MEMBERS, args![team], read_member).await
}

async fn team_members(
    tx: &mut Tx<'_>,
    asked: &TeamLookup,
) -> Result<Option<(Team, Vec<TeamMember>)>> {
    let Some(team) = seen(tx, asked).await? else { return Ok(None) };
    let members = members(tx, &team.account).await?;
    Ok(Some((team, members)))
}

async fn team_create(tx: &mut Tx<'_>, new: &NewTeam) -> Result<Result<Team, TeamRefusal>> {
    tx.lock("handles").await?;
    let owner = profile_get(tx, &AccountName::Id(new.owner.clone()), &new.at).await?;
    if owner.is_none_or(|owner| owner.handle.is_none()) {
        return Ok(Err(TeamRefusal::NoHandle));
    }
    let owned = args![&new.owner, Some(TeamRole::Owner.as_str())];
    if TEAMS_OWNED <= times(tx, COUNT_TEAMS, owned).await? {
        return Ok(Err(TeamRefusal::TooManyTeams));
    }
    let (account, handle, at) = (new.account.clone(), new.handle.clone(), new.at);
    let claim = HandleChange { account: account.clone(), handle, at };
    if !people::is_free(tx, &claim).await? {
        return Ok(Err(TeamRefusal::HandleTaken));
    }
    tx.run(ADD, args![&account, at, &claim.handle]).await?;
    tx.run(ADD_HANDLE, args![&claim.handle, &account, at]).await?;
    tx.run(JOIN, args![&account, &new.owner, TeamRole::Owner.as_str(), at]).await?;
    let (handle, owner) = (claim.handle, new.owner.clone());
    Ok(Ok(Team { account, handle, owner, role: TeamRole::Owner, created_at: at }))
}

/// The team if the caller owns it, locked against other changes.
async fn owned(tx: &mut Tx<'_>, asked: &TeamLookup) -> Result<Result<Team, TeamRefusal>> {
    Ok(match held(tx, asked).await? {
        Some(team) if team.role == TeamRole::Owner => Ok(team),
        Some(_) => Err(TeamRefusal::NotOwner),
        None => Err(TeamRefusal::Unknown),
    })
}

/// The team, locked against other changes.
async fn held(tx: &mut Tx<'_>, asked: &TeamLookup) -> Result<Option<Team>> {
    let Some(team) = seen(tx, asked).await? else { return Ok(None) };
    lock_target(tx, team.account.as_str()).await?;
    tx.first(ONE, args![&asked.by, &team.account], read_team).await
}

async fn team_invite(
    tx: &mut Tx<'_>,
    invite: &TeamInvite,
) -> Result<Result<Invitation, TeamRefusal>> {
    let team = match owned(tx, &invite.asked).await? {
        Err(refused) => return Ok(Err(refused)),
        Ok(team) => team,
    };
    let members = members(tx, &team.account).await?;
    let is_joining = invite.kind == InvitationKind::TeamMembership;
    let invitee = profile_get(tx, &invite.to, &invite.asked.at).await?;
    let is_member = invitee
        .as_ref()
        .is_some_and(|invitee| members.iter().any(|member| member.account == invitee.account));
    let is_owner = invitee.is_some_and(|invitee| invitee.account == team.owner);
    if is_joining && is_member && !is_owner {
        return Ok(Err(TeamRefusal::AlreadyMember));
    }
    let is_full = u32::try_from(members.len()).is_ok_and(|count| TEAM_MEMBERS <= count);
    if is_joining && is_full {
        return Ok(Err(TeamRefusal::TooManyMembers));
    }
    let new = NewInvitation {
        id: invite.invitation_id.clone(),
        kind: invite.kind,
        target_id: team.account.to_string(),
        target_label: format!("@{}", team.handle),
        from: invite.asked.by.clone(),
        to: invite.to.clone(),
        at: invite.asked.at,
    };
    Ok(invitation_make(tx, &new).await?.map_err(TeamRefusal::Invitation))
}

async fn team_remove(
    tx: &mut Tx<'_>,
    removal: &MemberRemoval,
) -> Result<Result<(Team, TeamMember), TeamRefusal>> {
    let Some(team) = held(tx, &removal.asked).await? else {
        return Ok(Err(TeamRefusal::Unknown));
    };
    let by = &removal.asked.by;
    let named = profile_get(tx, &removal.member, &removal.asked.at).await?;
    let is_self = named.as_ref().is_some_and(|named| named.account == *by);
    if team.role != TeamRole::Owner && !is_self {
        return Ok(Err(TeamRefusal::NotOwner));
    }
    let members = members(tx, &team.account).await?;
    let is_named =
        |it: &TeamMember| named.as_ref().is_some_and(|named| named.account == it.account);
    let Some(member) = members.into_iter().find(is_named) else {
        return Ok(Err(TeamRefusal::NotMember));
    };
    if member.role == TeamRole::Owner {
        return Ok(Err(TeamRefusal::OwnerStays));
    }
    tx.run(LEAVE, args![&team.account, &member.account]).await?;
    Ok(Ok((team, member)))
}

async fn team_delete(tx: &mut Tx<'_>, asked: &TeamLookup) -> Result<Result<Team, TeamRefusal>> {
    tx.lock("handles").await?;
    let team = match owned(tx, asked).await? {
        Err(refused) => return Ok(Err(refused)),
        Ok(team) => team,
    };
    cancel_all(tx, team.account.as_str(), None, asked.at).await?;
    for text in UNGRANT {
        tx.run(text, args![&team.account]).await?;
    }
    tx.run(EMPTY, args![&team.account]).await?;
    tx.run(LEAVE_HANDLE, args![asked.at, &team.account]).await?;
    tx.run(DELETE, args![&team.account]).await?;
    Ok(Ok(team))
}

/// The numbers of members and teams before an account joins.
pub(crate) struct MembershipCounts {
    pub(crate) is_member: bool,
    pub(crate) members: u32,
    pub(crate) teams: u32,
    pub(crate) owned: u32,
}

pub(crate) async fn counts(
    tx: &mut Tx<'_>,
    team: &AccountId,
    account: &AccountId,
) -> Result<MembershipCounts> {
    let any: Option<&str> = None;
    Ok(MembershipCounts {
        is_member: tx.first(ONE, args![account, team], read_team).await?.is_some(),
        members: times(tx, COUNT_MEMBERS, args![team]).await?,
        teams: times(tx, COUNT_TEAMS, args![account, any]).await?,
        owned: times(tx, COUNT_TEAMS, args![account, Some(TeamRole::Owner.as_str())]).await?,
    })
}

pub(crate) async fn join(
    tx: &mut Tx<'_>,
    team: &AccountId,
    account: &AccountId,
    at: Timestamp,
) -> Result<()> {
    tx.run(JOIN, args![team, account, TeamRole::Member.as_str(), at]).await.map(drop)
}

/// Transfers a team to another owner; `false` if `from` did not own it.
pub(crate) async fn hand_over(
    tx: &mut Tx<'_>,
    team: &AccountId,
    (from, to): (&AccountId, &AccountId),
    at: Timestamp,
) -> Result<bool> {
    let found = tx.first(ONE, args![from, team], read_team).await?;
    if found.is_none_or(|team| team.role != TeamRole::Owner) {
        return Ok(false);
    }
    join(tx, team, to, at).await?;
    tx.run(SET_ROLE, args![TeamRole::Member.as_str(), team, from]).await?;
    tx.run(SET_ROLE, args![TeamRole::Owner.as_str(), team, to]).await?;
    Ok(true)
}
