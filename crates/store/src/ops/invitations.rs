//! Invitations: offers to other accounts, and their answers.

use const_format::concatcp;
use jurat_core::{
    account::{
        AccountKind, AccountName, AccountProfile,
        team::{
            INVITATION_MICROS, INVITATIONS_A_DAY, Invitation, InvitationFilter, InvitationKind,
            InvitationOutcome, TEAM_MEMBERS, TEAMS_JOINED, TEAMS_OWNED,
        },
    },
    id::AccountId,
    time::Timestamp,
};

use super::{people::profile_get, teams, templates, workflows};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Offers from one account to another.
    pub struct InvitationOps = store.invitations();
    reads {
        /// Invitations of an account, newest first.
        fn list(account: &AccountId, filter: &InvitationFilter, now: &Timestamp)
            -> Vec<Invitation> = invitation_list;
    }
    writes {
        /// Resolves an invitation, and transfers its target if it is accepted.
        fn answer(answer: &InvitationAnswer)
            -> Invitation, or InvitationAnswerRefusal = invitation_answer;
    }
}

/// An offer to make. The caller has checked that `from` may make it, and holds the lock of the
/// target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewInvitation {
    pub id: String,
    pub kind: InvitationKind,
    pub target_id: String,
    pub target_label: String,
    pub from: AccountId,
    pub to: AccountName,
    pub at: Timestamp,
}

/// Why nothing was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvitationRefusal {
    /// No user has the handle or the id. An e-mail address is never unknown.
    Unknown,
    Oneself,
    /// The same offer is already open, or the target is offered to another account.
    Pending,
    /// The daily limit was reached.
    TooMany,
}

/// An answer to an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationAnswer {
    pub id: String,
    pub by: AccountId,
    /// Accepted or declined by the recipient, cancelled by the sender.
    pub resolution: InvitationOutcome,
    pub at: Timestamp,
}

/// Why an invitation stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvitationAnswerRefusal {
    /// There is no such invitation, or it does not concern the account.
    Unknown,
    /// Only the other side may give this answer.
    OtherSide,
    Expired,
    Resolved(InvitationOutcome),
    /// The target cannot be transferred.
    Conflict(String),
    /// The account or the team has reached a limit.
    TooMany(String),
}

const SELECT: &str = "\
    select invitations.id, invitations.kind, invitations.target_id, \
    invitations.target_label, invitations.from_id, \
    coalesce('@' || accounts.handle, accounts.email, invitations.from_id) as from_label, \
    invitations.to_id, invitations.to_label, invitations.created_at, \
    invitations.expires_at, invitations.resolved_at, invitations.resolution \
    from invitations left join accounts on accounts.id = invitations.from_id ";

/// For the two accounts that the invitation concerns.
const OWN: &str = concatcp!(
    SELECT,
    "where invitations.id = $1 and (invitations.from_id = $2 or invitations.to_id = $2)"
);
const LIST: &str = concatcp!(
    SELECT,
    "where ((invitations.to_id = $1 and $2 = 1) or (invitations.from_id = $1 and $3 = 1)) \
     and ($4 = 0 or (invitations.resolved_at is null and invitations.expires_at > $5)) \
     and (cast($6 as text) is null or invitations.id < $6) order by invitations.id desc limit $7"
);
const ADD: &str = "\
    insert into invitations (id, kind, target_id, target_label, from_id, to_id, to_label, \
    created_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const END_LATE: &str = "\
    update invitations set resolved_at = expires_at, resolution = 'expired' \
    where target_id = $1 and resolved_at is null and expires_at <= $2";
const PENDING: &str = "\
    select id from invitations where kind = $1 and target_id = $2 and resolved_at is null \
    and ($3 = 1 or to_id = $4) limit 1";
const SENT_SINCE: &str = "\
    select from_id as id, count(*) as times from invitations \
    where from_id = $1 and created_at > $2 group by from_id";
const RESOLVE: &str = "update invitations set resolved_at = $1, resolution = $2 where id = $3";
const CANCEL_REST: &str = "\
    update invitations set resolved_at = $1, resolution = 'cancelled' \
    where target_id = $2 and resolved_at is null and (cast($3 as text) is null or kind = $3)";
const MOVE_FROM: &str = "\
    update invitations set from_id = $1 \
    where target_id = $2 and kind = 'team_membership' and resolved_at is null";
const MOVE_TO: &str = "update invitations set to_id = $1 where to_id = $2";

const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;

fn read_invitation(cells: &dyn DbRow) -> Result<Invitation> {
    let columns = RowReader::new(cells, "invitations", "id")?;
    Ok(Invitation {
        id: columns.text("id")?,
        kind: columns.word("kind")?,
        target_id: columns.text("target_id")?,
        target_label: columns.text("target_label")?,
        from: columns.id("from_id", AccountId::parse)?,
        from_label: columns.text("from_label")?,
        to: columns.text("to_id")?,
        to_label: columns.text("to_label")?,
        created_at: columns.time("created_at")?,
        expires_at: columns.time("expires_at")?,
        resolved_at: columns.maybe_time("resolved_at")?,
        resolution: columns.maybe_word("resolution")?,
    })
}

async fn invitation_list(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &InvitationFilter,
    now: &Timestamp,
) -> Result<Vec<Invitation>> {
    let InvitationFilter { is_received, is_sent, is_pending, before, limit } = filter;
    let args = args![account, *is_received, *is_sent, *is_pending, *now, before.as_deref(), *limit];
    let found = tx.all(LIST, args, read_invitation).await?;
    Ok(found.into_iter().map(|it| it.at(*now)).collect())
}

/// Makes offers, answers and changes of the same target wait for each other.
pub(crate) async fn lock_target(tx: &mut Tx<'_>, target_id: &str) -> Result<()> {
    tx.lock(&format!("target {target_id}")).await
}

/// Makes an offer. An unregistered address gets the same answer as a registered one; the invitation
/// goes to its account once that is created.
pub(crate) async fn invitation_make(
    tx: &mut Tx<'_>,
    new: &NewInvitation,
) -> Result<Result<Invitation, InvitationRefusal>> {
    lock_target(tx, &new.target_id).await?;
    let found = profile_get(tx, &new.to, &new.at).await?;
    let to = match (&new.to, found) {
        (_, Some(profile)) if profile.account == new.from => {
            return Ok(Err(InvitationRefusal::Oneself));
        }
        (_, Some(profile)) if profile.kind == AccountKind::User => profile.account.to_string(),
        (AccountName::Email(email), None) => email.clone(),
        _ => return Ok(Err(InvitationRefusal::Unknown)),
    };
    tx.run(END_LATE, args![&new.target_id, new.at]).await?;
    let id = |cells: &dyn DbRow| RowReader::new(cells, "invitations", "id")?.text("id");
    let (kind, is_sole) = (new.kind.as_str(), new.kind.is_ownership());
    if tx.first(PENDING, args![kind, &new.target_id, is_sole, &to], id).await?.is_some() {
        return Ok(Err(InvitationRefusal::Pending));
    }
    let day = Timestamp::from_micros(new.at.micros().saturating_sub(DAY_MICROS));
    if INVITATIONS_A_DAY <= times(tx, SENT_SINCE, args![&new.from, day]).await? {
        return Ok(Err(InvitationRefusal::TooMany));
    }
    let expires_at = Timestamp::from_micros(new.at.micros().saturating_add(INVITATION_MICROS));
    let (target, label) = (&new.target_id, &new.target_label);
    let args =
        args![&new.id, kind, target, label, &new.from, to, named(&new.to), new.at, expires_at];
    tx.run(ADD, args).await?;
    let made = tx.first(OWN, args![&new.id, &new.from], read_invitation).await?;
    Ok(made.ok_or(InvitationRefusal::Unknown))
}

/// The name by which an account is invited.
fn named(name: &AccountName) -> String {
    match name {
        AccountName::Id(id) => id.to_string(),
        AccountName::Email(email) => email.clone(),
        AccountName::Handle(handle) => format!("@{handle}"),
    }
}

/// The number in the column `times`; zero if there is no row.
pub(crate) async fn times(
    tx: &mut Tx<'_>,
    text: &'static str,
    args: Vec<crate::db::tx::SqlArg>,
) -> Result<u32> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "counts", "id")?.count("times");
    Ok(tx.first(text, args, read).await?.unwrap_or(0))
}

async fn invitation_answer(
    tx: &mut Tx<'_>,
    answer: &InvitationAnswer,
) -> Result<Result<Invitation, InvitationAnswerRefusal>> {
    // The target of an invitation never changes, so it can name the lock.
    let own = || args![&answer.id, &answer.by];
    let Some(known) = tx.first(OWN, own(), read_invitation).await? else {
        return Ok(Err(InvitationAnswerRefusal::Unknown));
    };
    lock_target(tx, &known.target_id).await?;
    let Some(found) = tx.first(OWN, own(), read_invitation).await? else {
        return Ok(Err(InvitationAnswerRefusal::Unknown));
    };
    let found = found.at(answer.at);
    if let Err(refused) = may_answer(&found, answer) {
        return Ok(Err(refused));
    }
    if answer.resolution == InvitationOutcome::Accepted
        && let Err(refused) = accept(tx, &found, answer).await?
    {
        return Ok(Err(refused));
    }
    tx.run(RESOLVE, args![answer.at, answer.resolution.as_str(), &answer.id]).await?;
    let (resolved_at, resolution) = (Some(answer.at), Some(answer.resolution));
    Ok(Ok(Invitation { resolved_at, resolution, ..found }))
}

fn may_answer(
    found: &Invitation,
    answer: &InvitationAnswer,
) -> Result<(), InvitationAnswerRefusal> {
    let is_own = match answer.resolution {
        InvitationOutcome::Cancelled => found.from == answer.by,
        InvitationOutcome::Accepted | InvitationOutcome::Declined | InvitationOutcome::Expired => {
            found.to == answer.by.as_str()
        }
    };
    match found.resolution {
        _ if !is_own => Err(InvitationAnswerRefusal::OtherSide),
        None => Ok(()),
        Some(InvitationOutcome::Expired) => Err(InvitationAnswerRefusal::Expired),
        Some(before) => Err(InvitationAnswerRefusal::Resolved(before)),
    }
}

/// Transfers the target.
async fn accept(
    tx: &mut Tx<'_>,
    found: &Invitation,
    answer: &InvitationAnswer,
) -> Result<Result<(), InvitationAnswerRefusal>> {
    let (to, at) = (&answer.by, answer.at);
    let handed: Result<(), String> = match found.kind {
        InvitationKind::TeamMembership | InvitationKind::TeamOwnership => {
            return accept_team(tx, found, to, at).await;
        }
        InvitationKind::WorkflowOwnership => {
            workflows::transfer(tx, &found.target_id, &found.from, to, at).await?
        }
        InvitationKind::TemplateOwnership => {
            templates::transfer(tx, &found.target_id, &found.from, to, at).await?
        }
    };
    Ok(handed.map_err(InvitationAnswerRefusal::Conflict))
}

async fn accept_team(
    tx: &mut Tx<'_>,
    found: &Invitation,
    to: &AccountId,
    at: Timestamp,
) -> Result<Result<(), InvitationAnswerRefusal>> {
    let Ok(team) = AccountId::parse(&found.target_id) else {
        return Ok(Err(InvitationAnswerRefusal::Unknown));
    };
    let joined = teams::counts(tx, &team, to).await?;
    if !joined.is_member && TEAM_MEMBERS <= joined.members {
        let reason = format!("a team can have at most {TEAM_MEMBERS} members");
        return Ok(Err(InvitationAnswerRefusal::TooMany(reason)));
    }
    if !joined.is_member && TEAMS_JOINED <= joined.teams {
        let reason = format!("an account can be a member of at most {TEAMS_JOINED} teams");
        return Ok(Err(InvitationAnswerRefusal::TooMany(reason)));
    }
    if found.kind == InvitationKind::TeamMembership {
        teams::join(tx, &team, to, at).await?;
        return Ok(Ok(()));
    }
    if TEAMS_OWNED <= joined.owned {
        let reason = format!("an account can own at most {TEAMS_OWNED} teams");
        return Ok(Err(InvitationAnswerRefusal::TooMany(reason)));
    }
    if !teams::hand_over(tx, &team, (&found.from, to), at).await? {
        let reason = "the sender of the offer no longer owns the team".to_owned();
        return Ok(Err(InvitationAnswerRefusal::Conflict(reason)));
    }
    tx.run(MOVE_FROM, args![to, &found.target_id]).await?;
    Ok(Ok(()))
}

/// Cancels all open offers of a target, or those of one kind.
pub(crate) async fn cancel_all(
    tx: &mut Tx<'_>,
    target_id: &str,
    kind: Option<InvitationKind>,
    at: Timestamp,
) -> Result<()> {
    let kind = kind.map(InvitationKind::as_str);
    tx.run(CANCEL_REST, args![at, target_id, kind]).await.map(drop)
}

/// Hands the invitations to an address over to the account that was created for it.
pub(crate) async fn invitations_adopt(tx: &mut Tx<'_>, profile: &AccountProfile) -> Result<()> {
    let Some(email) = &profile.email else { return Ok(()) };
    tx.run(MOVE_TO, args![&profile.account, email]).await.map(drop)
}
