//! Grants on workflows. Each grant is stored under the name it was made to; the access of an
//! account follows from all its names, and is stored with them.

use const_format::concatcp;
use jurat_core::{
    account::{AccountKind, AccountName, AccountProfile},
    id::AccountId,
    time::Timestamp,
    workflow::{
        AccessRole, GRANTS_A_DAY, GrantLine, MOST_GRANTS, MOST_WAITING, ReachableWorkflow,
        Workflow,
        operation::{GrantRevocationResult, WorkflowGrantResult, WorkflowLeaveResult},
    },
};

use super::{
    GrantRevocation, NameMatch, WorkflowChange, WorkflowGrantOrder, WorkflowLookup,
    WorkflowRefusal, WrongField,
    reach::{self, PRINCIPALS, held},
    rows::{label, role_of_rank},
    tried,
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{SqlArg, Tx, args},
    },
    ops::{
        invitations::times,
        people::{profile_get, profile_of},
        shares,
    },
};

const MEMBER: &str = "\
    select team_id as id from team_members where team_id = $1 and account_id = $2";
const NAMED: &str = "\
    select granted_to as id, grantee_id, floor_version from named_grants \
    where account_id = $1 and workflow_id = $2 and granted_to = $3";
const COUNT: &str = "\
    select workflow_id as id, count(*) as times from named_grants \
    where account_id = $1 and workflow_id = $2 group by workflow_id";
/// The number of an owner's grants to one name that wait to be accepted. An unregistered address
/// counts like one whose account did not answer.
const WAITING: &str = "\
    select named_grants.account_id as id, count(*) as times from named_grants \
    left join workflow_grants on workflow_grants.account_id = named_grants.account_id \
    and workflow_grants.workflow_id = named_grants.workflow_id \
    and workflow_grants.grantee_id = named_grants.grantee_id \
    where named_grants.account_id = $1 and named_grants.granted_to = $2 \
    and coalesce(workflow_grants.state, 'pending') <> 'accepted' group by named_grants.account_id";
const DAY_COUNT: &str = "\
    insert into grant_days (account_id, day, made) values ($1, $2, 1) \
    on conflict (account_id, day) do update set made = grant_days.made + 1";
const DAY_MADE: &str = "\
    select account_id as id, made as times from grant_days where account_id = $1 and day = $2";
const DAYS_CLEAR: &str = "delete from grant_days where account_id = $1 and day < $2";
const PUT_NAMED: &str = "\
    insert into named_grants (account_id, workflow_id, granted_to, grantee_id, role, \
    floor_version, granted_by, granted_at) values ($1, $2, $3, $4, $5, $6, $7, $8) \
    on conflict (account_id, workflow_id, granted_to) do update set \
    grantee_id = excluded.grantee_id, role = excluded.role, \
    floor_version = excluded.floor_version, granted_by = excluded.granted_by, \
    granted_at = excluded.granted_at";
const REMOVE_NAMED: &str = "\
    delete from named_grants \
    where account_id = $1 and workflow_id = $2 and granted_to = $3";
const REMOVE_NAMES: &str = "\
    delete from named_grants \
    where account_id = $1 and workflow_id = $2 and grantee_id = $3";
/// The grants that follow from all names of an account.
const DERIVED: &str = "\
    select grantee_id as id, \
    max(case role when 'admin' then 3 when 'edit' then 2 else 1 end) as role_rank, \
    min(floor_version) as floor_version from named_grants \
    where account_id = $1 and workflow_id = $2 and grantee_id = $3 group by grantee_id";
/// A grant from before grants had names.
const UNNAMED: &str = "\
    select workflow_grants.grantee_id as id, workflow_grants.floor_version from workflow_grants \
    where workflow_grants.account_id = $1 and workflow_grants.workflow_id = $2 \
    and workflow_grants.grantee_id = $3 and not exists (select 1 from named_grants \
    where named_grants.account_id = workflow_grants.account_id \
    and named_grants.workflow_id = workflow_grants.workflow_id \
    and named_grants.grantee_id = workflow_grants.grantee_id)";
/// An existing grant keeps its recipient's answer. Nothing is written if there is no account to
/// write it for.
const PUT: &str = "\
    insert into workflow_grants (account_id, workflow_id, grantee_id, role, floor_version, \
    granted_by, granted_at, state) select $1, $2, $3, $4, $5, $6, $7, $8 where $9 = 1 \
    on conflict (account_id, workflow_id, grantee_id) do update set role = excluded.role, \
    floor_version = excluded.floor_version, granted_by = excluded.granted_by, \
    granted_at = excluded.granted_at";
const REMOVE: &str = "\
    delete from workflow_grants \
    where account_id = $1 and workflow_id = $2 and grantee_id = $3";
const REMOVE_ENDED: &str = "\
    delete from workflow_grants \
    where account_id = $1 and workflow_id = $2 and grantee_id = $3 and $4 = 0";
/// Shows the names that grants were made to; a grant from before there were names shows the
/// account's handle, address or id. A caller who may not share a workflow sees only its own grants.
const LIST: &str = concatcp!(
    "select * from (select named_grants.granted_to as id, grantees.kind, \
     named_grants.role, named_grants.floor_version, named_grants.granted_by, \
     granters.email as by_email, granters.handle as by_handle, named_grants.granted_at \
     from named_grants left join accounts as grantees on grantees.id = named_grants.grantee_id \
     left join accounts as granters on granters.id = named_grants.granted_by \
     where (named_grants.grantee_id in ",
    PRINCIPALS,
    " or $2 = 1) and named_grants.account_id = $3 and named_grants.workflow_id = $4 \
     union all select coalesce('@' || grantees.handle, grantees.email, grantees.id) as id, \
     grantees.kind, workflow_grants.role, workflow_grants.floor_version, \
     workflow_grants.granted_by, granters.email as by_email, granters.handle as by_handle, \
     workflow_grants.granted_at \
     from workflow_grants join accounts as grantees on grantees.id = workflow_grants.grantee_id \
     left join accounts as granters on granters.id = workflow_grants.granted_by \
     where (workflow_grants.grantee_id in ",
    PRINCIPALS,
    " or $2 = 1) and workflow_grants.account_id = $3 and workflow_grants.workflow_id = $4 \
     and not exists (select 1 from named_grants as named \
     where named.account_id = workflow_grants.account_id \
     and named.workflow_id = workflow_grants.workflow_id \
     and named.grantee_id = workflow_grants.grantee_id)) as lines order by granted_at, id"
);
const WAITING_FOR: &str = "\
    select account_id as id, workflow_id, granted_by from named_grants \
    where granted_to = $1 and grantee_id is null";
const ADOPT: &str = "\
    update named_grants set grantee_id = $1 where granted_to = $2 and grantee_id is null";

const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;
/// An id that no account has. Every query for a known account is made for an unknown one as well:
/// otherwise the duration would reveal whether an address is registered.
const NOBODY: &str = "";

pub(super) async fn list(
    tx: &mut Tx<'_>,
    asked: &WorkflowLookup,
) -> Result<NameMatch<Vec<GrantLine>>> {
    let reached = match reach::find(tx, &asked.caller, &asked.which).await? {
        NameMatch::One(reached) => reached,
        NameMatch::Nothing => return Ok(NameMatch::Nothing),
        NameMatch::Elsewhere(names) => return Ok(NameMatch::Elsewhere(names)),
    };
    let sees_all = AccessRole::Admin <= reached.role;
    let workflow = &reached.workflow;
    let args = args![&asked.caller, sees_all, &workflow.account, &workflow.id];
    let lines = tx.all(LIST, args, read_line).await?;
    Ok(NameMatch::One(Box::new(lines)))
}

fn read_line(cells: &dyn DbRow) -> Result<GrantLine> {
    let columns = RowReader::new(cells, "named_grants", "id")?;
    let kind = columns.maybe_word::<AccountKind>("kind")?;
    let by = columns.text("granted_by")?;
    let granted_by = match (columns.maybe_text("by_handle")?, columns.maybe_text("by_email")?) {
        (None, Some(email)) => email,
        (handle, _) => label(handle, &by),
    };
    Ok(GrantLine {
        is_team: kind == Some(AccountKind::Team),
        granted_to: columns.text("id")?,
        role: columns.word("role")?,
        floor: columns.count("floor_version")?,
        granted_by,
        granted_at: columns.time("granted_at")?,
    })
}

/// A grant under one name.
struct GrantRow {
    grantee: Option<String>,
    floor: u32,
}

fn read_named(cells: &dyn DbRow) -> Result<GrantRow> {
    let columns = RowReader::new(cells, "named_grants", "id")?;
    Ok(GrantRow {
        grantee: columns.maybe_text("grantee_id")?,
        floor: columns.count("floor_version")?,
    })
}

pub(super) async fn grant(
    tx: &mut Tx<'_>,
    order: &WorkflowGrantOrder,
) -> Result<Result<WorkflowGrantResult, WorkflowRefusal>> {
    let reached = tried!(held(tx, &order.caller, &order.which, AccessRole::Admin).await?);
    if reached.role < order.role {
        return Ok(Err(WorkflowRefusal::RoleAboveOwn { has: reached.role }));
    }
    let grantee = tried!(granted_to(tx, order, &reached).await?);
    let workflow = &reached.workflow;
    let name = order.grantee.to_string();
    let place = || args![&workflow.account, &workflow.id, &name];
    let id = grantee.as_ref().map(|it| it.account.as_str());
    let before = tx.first(NAMED, place(), read_named).await?;
    // A handle may belong to another account by now: for that account it is a new grant, and for
    // the former one it ends.
    let is_others = |it: &GrantRow| it.grantee.is_some() && it.grantee.as_deref() != id;
    let (before, ended) = match before {
        Some(named) if is_others(&named) => (None, named.grantee),
        before => (before, None),
    };
    if before.is_none() {
        tried!(has_room(tx, order, workflow, ended.is_some()).await?);
    }
    tried!(count_grant(tx, order).await?);
    // A caller shares only versions that it sees, and a change of role hides none.
    let floor = if order.with_history { reached.floor } else { workflow.current_version };
    let floor = before.map_or(floor, |before| before.floor.min(floor));
    // The recipient of an unnamed grant keeps its versions.
    let unnamed = unnamed(tx, workflow, id.unwrap_or(NOBODY)).await?;
    let args = args![
        &workflow.account,
        &workflow.id,
        &name,
        id,
        order.role.as_str(),
        unnamed.map_or(floor, |before| before.min(floor)),
        &order.caller,
        order.at
    ];
    tx.run(PUT_NAMED, args).await?;
    let place = GrantContext { workflow, by: &order.caller, at: order.at };
    derive(tx, &place, id, grantee.as_ref().map(|it| it.kind)).await?;
    if let Some(ended) = ended {
        derive_anew(tx, &place, Some(&ended)).await?;
    }
    Ok(Ok(WorkflowGrantResult { workflow: reached.workflow, role: order.role, floor }))
}

/// The holder of a grant. An unregistered address gets a grant like a registered one, so that a
/// caller cannot tell them apart.
async fn granted_to(
    tx: &mut Tx<'_>,
    order: &WorkflowGrantOrder,
    reached: &ReachableWorkflow,
) -> Result<Result<Option<AccountProfile>, WorkflowRefusal>> {
    let is_address = matches!(order.grantee, AccountName::Email(_));
    let Some(profile) = known(tx, &order.caller, &order.grantee, order.at).await? else {
        return Ok(if is_address { Ok(None) } else { Err(WorkflowRefusal::GranteeUnknown) });
    };
    // Only the owner may learn that an address is the owner's.
    let is_owner = profile.account == reached.workflow.account;
    if is_owner && (!is_address || reached.role == AccessRole::Owner) {
        return Ok(Err(WorkflowRefusal::Field(WrongField::GranteeIsOwner)));
    }
    Ok(Ok(Some(profile)))
}

/// Whether there is room for another grant, under a new name or an existing one.
async fn has_room(
    tx: &mut Tx<'_>,
    order: &WorkflowGrantOrder,
    workflow: &Workflow,
    has_name: bool,
) -> Result<Result<(), WorkflowRefusal>> {
    let made = times(tx, COUNT, args![&workflow.account, &workflow.id]).await?;
    if MOST_GRANTS <= made && !has_name {
        return Ok(Err(WorkflowRefusal::TooManyGrants));
    }
    let waiting = args![&workflow.account, order.grantee.to_string()];
    if MOST_WAITING <= times(tx, WAITING, waiting).await? {
        return Ok(Err(WorkflowRefusal::TooManyWaiting));
    }
    Ok(Ok(()))
}

/// Counts a grant towards the daily limit, even a repeated one.
async fn count_grant(
    tx: &mut Tx<'_>,
    order: &WorkflowGrantOrder,
) -> Result<Result<(), WorkflowRefusal>> {
    tx.lock(&format!("grants of {}", order.caller)).await?;
    let day = order.at.micros().div_euclid(DAY_MICROS);
    tx.run(DAYS_CLEAR, args![&order.caller, day]).await?;
    if GRANTS_A_DAY <= times(tx, DAY_MADE, args![&order.caller, day]).await? {
        return Ok(Err(WorkflowRefusal::GrantedTooOften));
    }
    tx.run(DAY_COUNT, args![&order.caller, day]).await?;
    Ok(Ok(()))
}

/// The workflow, the caller and the time of a change.
struct GrantContext<'a> {
    workflow: &'a Workflow,
    by: &'a AccountId,
    at: Timestamp,
}

/// Writes the access of an account after one of its names changed; `kind` is `None` if there is no
/// such account. The statements are the same in every case.
async fn derive(
    tx: &mut Tx<'_>,
    place: &GrantContext<'_>,
    id: Option<&str>,
    kind: Option<AccountKind>,
) -> Result<()> {
    let GrantContext { workflow, by, at } = place;
    // The owner may do everything anyway, and is named here only by a caller who does not know that
    // the address is the owner's.
    let id = id.filter(|id| *id != workflow.account.as_str()).unwrap_or(NOBODY);
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "named_grants", "id")?;
        Ok((role_of_rank(&columns)?, columns.count::<u32>("floor_version")?))
    };
    let row = || args![&workflow.account, &workflow.id, id];
    let derived = tx.first(DERIVED, row(), read).await?.filter(|_| kind.is_some());
    let kind = kind.unwrap_or(AccountKind::User);
    let state = shares::state_of_new(tx, (kind, id), &workflow.account).await?;
    let has_grant = derived.is_some();
    let (role, floor) = derived.unwrap_or((AccessRole::View, 0));
    let mut put: Vec<SqlArg> = row();
    put.extend(args![role.as_str(), floor, *by, *at, state.as_str(), has_grant]);
    tx.run(PUT, put).await?;
    let mut removed = row();
    removed.push(has_grant.into());
    tx.run(REMOVE_ENDED, removed).await.map(drop)
}

/// Derives the access of the former holder of a name again, if there was one.
async fn derive_anew(tx: &mut Tx<'_>, place: &GrantContext<'_>, id: Option<&str>) -> Result<()> {
    let profile = profile_of(tx, id.unwrap_or(NOBODY)).await?;
    derive(tx, place, id, profile.map(|it| it.kind)).await
}

pub(super) async fn revoke(
    tx: &mut Tx<'_>,
    order: &GrantRevocation,
) -> Result<Result<GrantRevocationResult, WorkflowRefusal>> {
    let reached = tried!(held(tx, &order.caller, &order.which, AccessRole::Admin).await?);
    let workflow = reached.workflow;
    let name = order.grantee.to_string();
    let found = known(tx, &order.caller, &order.grantee, order.at).await?;
    let place = || args![&workflow.account, &workflow.id, &name];
    let Some(named) = tx.first(NAMED, place(), read_named).await? else {
        let is_address = matches!(order.grantee, AccountName::Email(_));
        if found.is_none() && !is_address {
            return Ok(Err(WorkflowRefusal::GranteeUnknown));
        }
        let was_there = revoke_unnamed(tx, &workflow, found.as_ref(), &name).await?;
        return Ok(Ok(GrantRevocationResult { workflow, was_there }));
    };
    tx.run(REMOVE_NAMED, place()).await?;
    let place = GrantContext { workflow: &workflow, by: &order.caller, at: order.at };
    derive_anew(tx, &place, named.grantee.as_deref()).await?;
    Ok(Ok(GrantRevocationResult { workflow, was_there: true }))
}

/// Revokes a grant from before there were names, by its listed name or by the account.
async fn revoke_unnamed(
    tx: &mut Tx<'_>,
    workflow: &Workflow,
    profile: Option<&AccountProfile>,
    name: &str,
) -> Result<bool> {
    let shown = profile.filter(|it| it.label() == name || it.account.as_str() == name);
    let id = shown.map_or(NOBODY, |it| it.account.as_str());
    if unnamed(tx, workflow, id).await?.is_none() {
        return Ok(false);
    }
    let args = args![&workflow.account, &workflow.id, id];
    Ok(tx.run(REMOVE, args).await? > 0)
}

/// The first version that a grant from before there were names shares.
async fn unnamed(tx: &mut Tx<'_>, workflow: &Workflow, grantee: &str) -> Result<Option<u32>> {
    let read =
        |cells: &dyn DbRow| RowReader::new(cells, "workflow_grants", "id")?.count("floor_version");
    tx.first(UNNAMED, args![&workflow.account, &workflow.id, grantee], read).await
}

pub(super) async fn leave(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
) -> Result<Result<WorkflowLeaveResult, WorkflowRefusal>> {
    let reached = tried!(held(tx, &change.caller, &change.which, AccessRole::View).await?);
    if reached.role == AccessRole::Owner {
        return Ok(Err(WorkflowRefusal::OwnerStays));
    }
    let workflow = reached.workflow;
    let row = || args![&workflow.account, &workflow.id, &change.caller];
    // The row policies let a recipient remove its own names, so these are removed first.
    tx.run(REMOVE_NAMES, row()).await?;
    let removed = u32::try_from(tx.run(REMOVE, row()).await?).unwrap_or(u32::MAX);
    Ok(Ok(WorkflowLeaveResult { workflow, removed }))
}

/// An account that the caller may share with: any user, and teams that the caller is a member of.
async fn known(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    name: &AccountName,
    at: Timestamp,
) -> Result<Option<AccountProfile>> {
    let Some(profile) = profile_get(tx, name, &at).await? else { return Ok(None) };
    Ok(match profile.kind {
        AccountKind::User => Some(profile),
        AccountKind::Anonymous | AccountKind::Payer | AccountKind::Peer => None,
        AccountKind::Team => {
            let read = |cells: &dyn DbRow| RowReader::new(cells, "team_members", "id").map(drop);
            let args = args![&profile.account, caller];
            tx.first(MEMBER, args, read).await?.map(|()| profile)
        }
    })
}

/// Hands the grants to an address over to the account that was created for it.
pub(crate) async fn grants_adopt(
    tx: &mut Tx<'_>,
    profile: &AccountProfile,
    at: Timestamp,
) -> Result<()> {
    let Some(email) = &profile.email else { return Ok(()) };
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "named_grants", "id")?;
        let owner = columns.id("id", AccountId::parse)?;
        let by = columns.id("granted_by", AccountId::parse)?;
        Ok((owner, columns.text("workflow_id")?, by))
    };
    let waiting = tx.all(WAITING_FOR, args![email], read).await?;
    tx.run(ADOPT, args![&profile.account, email]).await?;
    for (owner, id, by) in &waiting {
        if let Some(workflow) = super::transfer::own(tx, owner, id).await? {
            let place = GrantContext { workflow: &workflow, by, at };
            derive(tx, &place, Some(profile.account.as_str()), Some(profile.kind)).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
