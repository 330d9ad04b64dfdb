//! Operations on teams and their members.

use jurat_core::{
    account::{
        AccountName,
        caller::{Caller, Scope},
        is_handle,
        team::{Invitation, TEAM_MEMBERS, TEAMS_OWNED, Team, TeamMember, TeamOffer, TeamRole},
    },
    code::ProblemCode,
    id::{AccountId, uuid},
};
use jurat_store::{
    Behalf, MemberRemoval, NewTeam, TeamInvite, TeamListQuery, TeamLookup, TeamRefusal,
};

use super::{
    handles::{handle_taken, new_handle, no_handle},
    invitations,
};
use crate::access::behalf_of;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
};

impl Engine {
    /// Creates a team, which the caller owns.
    pub async fn team_create(
        &self,
        caller: &Caller,
        handle: &str,
        keyed: Option<IdempotentWrite<Team>>,
    ) -> Result<IdempotentOutcome<Team>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let clock = &self.inner.clock;
        let at = clock.now();
        let new = NewTeam {
            account: AccountId::new(at, clock.bits()),
            handle: new_handle(handle)?,
            owner: caller.account().clone(),
            at,
        };
        let (behalf, teams) = (behalf_of(caller), self.inner.store.teams());
        let write = async |once: Option<&_>| teams.create(&behalf, &new, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, handle, ""))
    }

    /// The caller's teams by handle, optionally only those in which it has the role.
    pub async fn team_list(
        &self,
        caller: &Caller,
        role: Option<TeamRole>,
    ) -> Result<Vec<Team>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let teams = self.inner.store.teams();
        let wanted = TeamListQuery { account: caller.account().clone(), role };
        Ok(teams.list(&behalf_of(caller), &wanted).await?)
    }

    /// The members of one of the caller's teams.
    pub async fn team_members(
        &self,
        caller: &Caller,
        team: &str,
    ) -> Result<Vec<TeamMember>, EngineError> {
        let asked = self.team_query(caller, team)?;
        let found = self.inner.store.teams().members(&behalf_of(caller), &asked).await?;
        found.map(|(_, members)| members).ok_or_else(|| unknown_team(team))
    }

    /// Offers membership or ownership of one of the caller's teams.
    pub async fn team_invite(
        &self,
        caller: &Caller,
        team: &str,
        offer: TeamOffer<'_>,
        keyed: Option<IdempotentWrite<Invitation>>,
    ) -> Result<IdempotentOutcome<Invitation>, EngineError> {
        let TeamOffer { kind, to } = offer;
        let asked = self.team_query(caller, team)?;
        let invitation_id = uuid(asked.at, self.inner.clock.bits());
        let invite = TeamInvite { asked, invitation_id, kind, to: parse_user(to)? };
        let (behalf, teams) = (behalf_of(caller), self.inner.store.teams());
        let write = async |once: Option<&_>| teams.invite(&behalf, &invite, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        let done = done.map_err(|refused| refusal(refused, team, to))?;
        if let IdempotentOutcome::Now(invitation) = &done {
            self.mail_invitation(invitation);
        }
        Ok(done)
    }

    /// Removes a member from a team: the owner may remove anybody else, and a member themselves.
    pub async fn team_remove(
        &self,
        caller: &Caller,
        team: &str,
        member: &str,
        keyed: Option<IdempotentWrite<(Team, TeamMember)>>,
    ) -> Result<IdempotentOutcome<(Team, TeamMember)>, EngineError> {
        let removal =
            MemberRemoval { asked: self.team_query(caller, team)?, member: parse_user(member)? };
        let (behalf, teams) = (behalf_of(caller), self.inner.store.teams());
        let write = async |once: Option<&_>| teams.remove_member(&behalf, &removal, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, team, member))
    }

    /// Deletes one of the caller's teams, with all grants to it.
    pub async fn team_delete(
        &self,
        caller: &Caller,
        team: &str,
        keyed: Option<IdempotentWrite<Team>>,
    ) -> Result<IdempotentOutcome<Team>, EngineError> {
        let asked = self.team_query(caller, team)?;
        // Grants of others to the team end, too; the operation itself checks who owns the team.
        let teams = self.inner.store.teams();
        let write = async |once: Option<&_>| teams.delete(&Behalf::Platform, &asked, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, team, ""))
    }

    fn team_query(&self, caller: &Caller, team: &str) -> Result<TeamLookup, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let at = self.inner.clock.now();
        let team = parse_account_name(team).ok_or_else(|| unknown_team(team))?;
        Ok(TeamLookup { team, by: caller.account().clone(), at })
    }
}

/// Reads `acct_…`, an e-mail address, or a handle with or without its `@`.
pub(crate) fn parse_account_name(text: &str) -> Option<AccountName> {
    AccountName::parse(text)
        .or_else(|| is_handle(text).then(|| AccountName::Handle(text.to_owned())))
}

/// A user that a request names.
pub(crate) fn parse_user(text: &str) -> Result<AccountName, EngineError> {
    parse_account_name(text).ok_or_else(|| invitations::unknown_user(text))
}

fn unknown_team(team: &str) -> EngineError {
    EngineError::NotFound { what: "team", id: team.chars().take(80).collect() }
}

fn refusal(refused: TeamRefusal, team: &str, user: &str) -> EngineError {
    match refused {
        TeamRefusal::Unknown => unknown_team(team),
        TeamRefusal::NotOwner => EngineError::denied("only the owner of the team may do that"),
        TeamRefusal::NoHandle => no_handle(),
        TeamRefusal::HandleTaken => handle_taken(team),
        TeamRefusal::AlreadyMember => {
            EngineError::Conflict(format!("`{user}` is already a member of the team"))
        }
        TeamRefusal::NotMember => {
            EngineError::NotFound { what: "member", id: user.chars().take(80).collect() }
        }
        TeamRefusal::OwnerStays => EngineError::Conflict(
            "the owner cannot leave the team; transfer or delete it first".to_owned(),
        ),
        TeamRefusal::Invitation(refused) => invitations::offer_refusal(&refused, user),
        TeamRefusal::TooManyTeams => EngineError::refused(
            ProblemCode::QuotaExceeded,
            format!("an account can own at most {TEAMS_OWNED} teams"),
        ),
        TeamRefusal::TooManyMembers => EngineError::refused(
            ProblemCode::QuotaExceeded,
            format!("a team can have at most {TEAM_MEMBERS} members"),
        ),
    }
}
