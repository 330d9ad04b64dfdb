//! Operations on teams and their members.

use jurat_core::{
    account::{AccountName, is_handle},
    caller::{Caller, Scope},
    code::Code,
    id::{AccountId, uuid},
    team::{Invitation, InvitationKind, Member, TEAM_MEMBERS, TEAMS_OWNED, Team, TeamRole},
};
use jurat_store::{
    Behalf, MemberRemoval, NewTeam, TeamAsked, TeamInvite, TeamRefused, TeamsWanted,
};

use crate::{
    Done, Engine, EngineError, Keyed, Leaves,
    executors::require,
    invitations,
    people::{behalf, new_handle, no_handle, taken},
};

impl Engine {
    /// Makes a team, which the caller owns.
    pub async fn team_create(
        &self,
        caller: &Caller,
        handle: &str,
        keyed: Option<Keyed<Team>>,
    ) -> Result<Done<Team>, EngineError> {
        require(caller, Scope::AccountWrite)?;
        let clock = &self.inner.clock;
        let at = clock.now();
        let new = NewTeam {
            account: AccountId::new(at, clock.bits()),
            handle: new_handle(handle)?,
            owner: caller.account().clone(),
            at,
        };
        let (behalf, sharing) = (behalf(caller), self.inner.store.sharing());
        let write = async |once: Option<&_>| sharing.team_create(&behalf, &new, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, handle, ""))
    }

    /// The caller's teams by handle; only those in which it has the role, if one is given.
    pub async fn team_list(
        &self,
        caller: &Caller,
        role: Option<TeamRole>,
    ) -> Result<Vec<Team>, EngineError> {
        require(caller, Scope::AccountWrite)?;
        let sharing = self.inner.store.sharing();
        let wanted = TeamsWanted { account: caller.account().clone(), role };
        Ok(sharing.team_list(&behalf(caller), &wanted).await?)
    }

    /// The members of a team of the caller's.
    pub async fn team_members(
        &self,
        caller: &Caller,
        team: &str,
    ) -> Result<Vec<Member>, EngineError> {
        let asked = self.asked(caller, team)?;
        let found = self.inner.store.sharing().team_members(&behalf(caller), &asked).await?;
        found.map(|(_, members)| members).ok_or_else(|| unknown(team))
    }

    /// Offers membership, or ownership, of a team of the caller's to somebody.
    pub async fn team_invite(
        &self,
        caller: &Caller,
        team: &str,
        (kind, to): (InvitationKind, &str),
        keyed: Option<Keyed<Invitation>>,
    ) -> Result<Done<Invitation>, EngineError> {
        let asked = self.asked(caller, team)?;
        let invitation_id = uuid(asked.at, self.inner.clock.bits());
        let invite = TeamInvite { asked, invitation_id, kind, to: user(to)? };
        let (behalf, sharing) = (behalf(caller), self.inner.store.sharing());
        let write = async |once: Option<&_>| sharing.team_invite(&behalf, &invite, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        let done = done.map_err(|refused| refusal(refused, team, to))?;
        if let Done::Now(invitation) = &done {
            self.mail_invitation(invitation);
        }
        Ok(done)
    }

    /// Takes a member out of a team: the owner any other, and everybody oneself.
    pub async fn team_remove(
        &self,
        caller: &Caller,
        team: &str,
        member: &str,
        keyed: Option<Keyed<(Team, Member)>>,
    ) -> Result<Done<(Team, Member)>, EngineError> {
        let removal = MemberRemoval { asked: self.asked(caller, team)?, member: user(member)? };
        let (behalf, sharing) = (behalf(caller), self.inner.store.sharing());
        let write = async |once: Option<&_>| sharing.team_remove(&behalf, &removal, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, team, member))
    }

    /// Ends a team of the caller's, with all that is granted to it.
    pub async fn team_delete(
        &self,
        caller: &Caller,
        team: &str,
        keyed: Option<Keyed<Team>>,
    ) -> Result<Done<Team>, EngineError> {
        let asked = self.asked(caller, team)?;
        // What others granted to the team ends too; the operation itself asks who owns it.
        let sharing = self.inner.store.sharing();
        let write =
            async |once: Option<&_>| sharing.team_delete(&Behalf::Platform, &asked, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Less, write).await?;
        done.map_err(|refused| refusal(refused, team, ""))
    }

    fn asked(&self, caller: &Caller, team: &str) -> Result<TeamAsked, EngineError> {
        require(caller, Scope::AccountWrite)?;
        let at = self.inner.clock.now();
        let team = named(team).ok_or_else(|| unknown(team))?;
        Ok(TeamAsked { team, by: caller.account().clone(), at })
    }
}

/// `acct_…`, an e-mail address, or a handle with or without its `@`.
pub(crate) fn named(text: &str) -> Option<AccountName> {
    AccountName::parse(text)
        .or_else(|| is_handle(text).then(|| AccountName::Handle(text.to_owned())))
}

/// A user that a request names.
pub(crate) fn user(text: &str) -> Result<AccountName, EngineError> {
    named(text).ok_or_else(|| invitations::unknown_user(text))
}

fn unknown(team: &str) -> EngineError {
    EngineError::NotFound { what: "team", id: team.chars().take(80).collect() }
}

fn refusal(refused: TeamRefused, team: &str, user: &str) -> EngineError {
    match refused {
        TeamRefused::Unknown => unknown(team),
        TeamRefused::NotOwner => EngineError::Denied("only the owner of the team may do that"),
        TeamRefused::NoHandle => no_handle(),
        TeamRefused::HandleTaken => taken(team),
        TeamRefused::AlreadyMember => {
            EngineError::Conflict(format!("`{user}` is already a member of the team"))
        }
        TeamRefused::NotMember => {
            EngineError::NotFound { what: "member", id: user.chars().take(80).collect() }
        }
        TeamRefused::OwnerStays => EngineError::Conflict(
            "the owner cannot leave the team; transfer or delete it first".to_owned(),
        ),
        TeamRefused::Invitation(refused) => invitations::refusal(&refused, user),
        TeamRefused::TooManyTeams => EngineError::refused(
            Code::QuotaExceeded,
            format!("an account can own at most {TEAMS_OWNED} teams"),
        ),
        TeamRefused::TooManyMembers => EngineError::refused(
            Code::QuotaExceeded,
            format!("a team can have at most {TEAM_MEMBERS} members"),
        ),
    }
}
