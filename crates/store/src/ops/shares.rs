//! Shares: grants from other accounts to an account, and its answers.

use jurat_core::{
    account::AccountKind,
    id::AccountId,
    time::Timestamp,
    workflow::share::{Share, ShareAction, ShareFilter, ShareState},
};

use super::workflows::{PRINCIPALS, label, lock, role_of_rank};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Grants from other accounts to an account.
    pub struct ShareOps = store.shares();
    reads {
        /// The shares of the caller, newest workflow first.
        fn list(caller: &AccountId, filter: &ShareFilter) -> Vec<Share> = share_list;
    }
    writes {
        /// Accepts or declines a share, or declines every share of its owner, now and later.
        fn answer(answer: &ShareAnswer) -> Share, or ShareRefusal = share_answer;
        /// Accepts a pending share, because it was used.
        fn note_use(used: &ShareUse) -> (), or ShareRefusal = share_use;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareAnswer {
    pub caller: AccountId,
    /// The id of the workflow.
    pub id: String,
    pub verb: ShareAction,
    pub at: Timestamp,
}

/// A shared workflow that was read, or whose verifier was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareUse {
    pub caller: AccountId,
    pub owner: AccountId,
    pub workflow_id: String,
}

/// Why a share stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShareRefusal {
    /// There is no such share, or none for the caller.
    Unknown,
    /// The share comes through a team, which the caller may leave.
    OfTeam,
}

/// One row for each granted workflow, whatever its recipient answered. Grants to a team count as
/// accepted. SQLite keeps the join order of `cross join`.
macro_rules! shares {
    ($granted:literal, $rest:expr) => {
        const_format::concatcp!(
            "select * from (select workflows.id, workflows.slug, workflows.name, \
             workflows.description, workflows.account_id, (select owners.handle from accounts \
             as owners where owners.id = workflows.account_id) as owner_handle, \
             case when granted.state = 'declined' then granted.declined_rank \
             else granted.used_rank end as role_rank, granted.state, granted.team_handle, \
             granted.granted_at, case when exists (select 1 from share_blocks \
             where share_blocks.account_id = $1 \
             and share_blocks.blocked_id = workflows.account_id) then 1 else 0 end as is_blocked \
             from (select workflow_grants.account_id, workflow_grants.workflow_id, \
             max(case when workflow_grants.state = 'declined' then 0 \
             when workflow_grants.role = 'admin' then 3 when workflow_grants.role = 'edit' then 2 \
             else 1 end) as used_rank, \
             max(case workflow_grants.role when 'admin' then 3 when 'edit' then 2 else 1 end) \
             as declined_rank, \
             case when max(case when workflow_grants.grantee_id <> $1 then 1 else 0 end) = 1 \
             then 'accepted' else max(workflow_grants.state) end as state, \
             max(case when workflow_grants.grantee_id <> $1 then (select teams.handle \
             from accounts as teams where teams.id = workflow_grants.grantee_id) end) \
             as team_handle, max(workflow_grants.granted_at) as granted_at \
             from workflow_grants where workflow_grants.account_id <> $1 \
             and workflow_grants.grantee_id in ",
            PRINCIPALS,
            $granted,
            " group by workflow_grants.account_id, workflow_grants.workflow_id) as granted \
             cross join workflows where workflows.account_id = granted.account_id \
             and workflows.id = granted.workflow_id and workflows.archived_at is null) as shares ",
            $rest
        )
    };
}

const LIST: &str = shares!(
    "",
    "where shares.id < $2 and ((cast($3 as text) is null and shares.state <> 'declined') \
     or shares.state = $3) order by shares.id desc limit $4"
);
const ONE: &str = shares!(" and workflow_grants.workflow_id = $2", "");
const HELD: &str = "\
    select workflow_id as id from workflow_grants \
    where account_id = $1 and workflow_id = $2 and grantee_id = $3";
const SET: &str = "\
    update workflow_grants set state = $1 \
    where account_id = $2 and workflow_id = $3 and grantee_id = $4";
const USED: &str = "\
    update workflow_grants set state = 'accepted' where account_id = $1 and workflow_id = $2 \
    and grantee_id = $3 and state = 'pending'";
const DECLINE_ALL: &str = "\
    update workflow_grants set state = 'declined' where account_id = $1 and grantee_id = $2";
const BLOCK: &str = "\
    insert into share_blocks (account_id, blocked_id, created_at) values ($1, $2, $3) \
    on conflict (account_id, blocked_id) do nothing";
const UNBLOCK: &str = "delete from share_blocks where account_id = $1 and blocked_id = $2";
const BLOCKED: &str = "\
    select blocked_id as id from share_blocks where account_id = $1 and blocked_id = $2";

/// Sorts after every id.
const LAST: &str = "~";

async fn share_list(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    filter: &ShareFilter,
) -> Result<Vec<Share>> {
    let before = filter.before.as_deref().unwrap_or(LAST);
    let state = filter.state.map(ShareState::as_str);
    tx.all(LIST, args![caller, before, state, filter.limit], read_share).await
}

fn read_share(cells: &dyn DbRow) -> Result<Share> {
    let columns = RowReader::new(cells, "workflow_grants", "id")?;
    let owner = columns.id("account_id", AccountId::parse)?;
    Ok(Share {
        id: columns.text("id")?,
        name: columns.text("name")?,
        slug: columns.text("slug")?,
        description: columns.text("description")?,
        owner_label: label(columns.maybe_text("owner_handle")?, owner.as_str()),
        owner,
        role: role_of_rank(&columns)?,
        state: columns.word("state")?,
        is_blocked: columns.number("is_blocked")? != 0,
        team: columns.maybe_text("team_handle")?,
        granted_at: columns.time("granted_at")?,
    })
}

async fn one(tx: &mut Tx<'_>, answer: &ShareAnswer) -> Result<Option<Share>> {
    tx.first(ONE, args![&answer.caller, &answer.id], read_share).await
}

async fn share_answer(
    tx: &mut Tx<'_>,
    answer: &ShareAnswer,
) -> Result<Result<Share, ShareRefusal>> {
    let Some(found) = one(tx, answer).await? else { return Ok(Err(ShareRefusal::Unknown)) };
    let (caller, owner) = (&answer.caller, &found.owner);
    lock(tx, owner).await?;
    let read = |cells: &dyn DbRow| RowReader::new(cells, "workflow_grants", "id").map(drop);
    let is_direct = tx.first(HELD, args![owner, &answer.id, caller], read).await?.is_some();
    match answer.verb {
        ShareAction::Accept => {
            set(tx, ShareState::Accepted, owner, answer).await?;
            tx.run(UNBLOCK, args![caller, owner]).await?;
        }
        ShareAction::Decline if !is_direct => return Ok(Err(ShareRefusal::OfTeam)),
        ShareAction::Decline => set(tx, ShareState::Declined, owner, answer).await?,
        ShareAction::Block => {
            tx.run(DECLINE_ALL, args![owner, caller]).await?;
            tx.run(BLOCK, args![caller, owner, answer.at]).await?;
        }
    }
    Ok(one(tx, answer).await?.ok_or(ShareRefusal::Unknown))
}

async fn share_use(tx: &mut Tx<'_>, used: &ShareUse) -> Result<Result<(), ShareRefusal>> {
    tx.run(USED, args![&used.owner, &used.workflow_id, &used.caller]).await?;
    Ok(Ok(()))
}

async fn set(
    tx: &mut Tx<'_>,
    state: ShareState,
    owner: &AccountId,
    answer: &ShareAnswer,
) -> Result<()> {
    let args = args![state.as_str(), owner, &answer.id, &answer.caller];
    tx.run(SET, args).await.map(drop)
}

/// The initial state of a grant: a grant to a team is accepted, and a grant from a blocked owner is
/// declined, without the owner's knowledge.
pub(crate) async fn state_of_new(
    tx: &mut Tx<'_>,
    (kind, grantee): (AccountKind, &str),
    owner: &AccountId,
) -> Result<ShareState> {
    if kind == AccountKind::Team {
        return Ok(ShareState::Accepted);
    }
    let read = |cells: &dyn DbRow| RowReader::new(cells, "share_blocks", "id").map(drop);
    let blocked = tx.first(BLOCKED, args![grantee, owner], read).await?;
    Ok(if blocked.is_some() { ShareState::Declined } else { ShareState::Pending })
}
