//! Who else may use a workflow.

use jurat_core::{
    account::{AccountKind, AccountName, Profile},
    id::AccountId,
    time::Timestamp,
    workflow::{GrantLine, MOST_GRANTS, Reached, Role},
};

use super::{
    Found, GrantOrder, Granting, Left, RevokeOrder, Revoking, WorkflowAsked, WorkflowChange,
    WorkflowRefused, WrongField,
    reach::{self, held, principals},
    tried,
};
use crate::{
    Result,
    both::{Tx, args},
    people::profile_get,
    rows::{Cells, Columns},
};

const MEMBER: &str = "\
    select team_id as id from team_members where team_id = $1 and account_id = $2";
const FLOOR: &str = "\
    select grantee_id as id, floor_version from workflow_grants \
    where account_id = $1 and workflow_id = $2 and grantee_id = $3";
const COUNT: &str = "\
    select workflow_id as id, count(*) as grants from workflow_grants \
    where account_id = $1 and workflow_id = $2 group by workflow_id";
const PUT: &str = "\
    insert into workflow_grants (account_id, workflow_id, grantee_id, role, floor_version, \
    granted_by, granted_at) values ($1, $2, $3, $4, $5, $6, $7) \
    on conflict (account_id, workflow_id, grantee_id) do update set role = excluded.role, \
    floor_version = excluded.floor_version, granted_by = excluded.granted_by, \
    granted_at = excluded.granted_at";
const REMOVE: &str = "\
    delete from workflow_grants \
    where account_id = $1 and workflow_id = $2 and grantee_id = $3";
/// With the names of both sides. Who may not share a workflow sees what reaches themselves.
const LIST: &str = concat!(
    "select workflow_grants.grantee_id, grantees.kind, grantees.email, grantees.handle, \
     workflow_grants.role, workflow_grants.floor_version, workflow_grants.granted_by, \
     granters.email as by_email, granters.handle as by_handle, workflow_grants.granted_at \
     from workflow_grants join accounts as grantees on grantees.id = workflow_grants.grantee_id \
     left join accounts as granters on granters.id = workflow_grants.granted_by \
     where (workflow_grants.grantee_id in ",
    principals!(),
    " or $2 = 1) and workflow_grants.account_id = $3 and workflow_grants.workflow_id = $4 \
     order by workflow_grants.granted_at, workflow_grants.grantee_id"
);

pub(super) async fn list(tx: &mut impl Tx, asked: &WorkflowAsked) -> Result<Found<Vec<GrantLine>>> {
    let reached = match reach::find(tx, &asked.caller, &asked.which).await? {
        Found::One(reached) => reached,
        Found::Nothing => return Ok(Found::Nothing),
        Found::Ambiguous => return Ok(Found::Ambiguous),
    };
    let sees_all = Role::Admin <= reached.role;
    let workflow = &reached.workflow;
    let args = args![&asked.caller, sees_all, &workflow.account, &workflow.id];
    let lines = tx.all(LIST, args, read_line).await?;
    Ok(Found::One(Box::new(lines)))
}

fn read_line(cells: &dyn Cells) -> Result<GrantLine> {
    let columns = Columns::new(&cells, "workflow_grants", "grantee_id")?;
    let grantee = columns.id("grantee_id", AccountId::parse)?;
    let is_team = columns.word::<AccountKind>("kind")? == AccountKind::Team;
    let label = |email: Option<String>, handle: Option<String>, id: String| {
        email.or_else(|| handle.map(|handle| format!("@{handle}"))).unwrap_or(id)
    };
    let grantee_label =
        label(columns.maybe_text("email")?, columns.maybe_text("handle")?, grantee.to_string());
    let by = columns.text("granted_by")?;
    Ok(GrantLine {
        grantee,
        is_team,
        grantee_label,
        role: columns.word("role")?,
        floor: columns.count("floor_version")?,
        granted_by: label(columns.maybe_text("by_email")?, columns.maybe_text("by_handle")?, by),
        granted_at: columns.time("granted_at")?,
    })
}

pub(super) async fn grant(
    tx: &mut impl Tx,
    order: &GrantOrder,
) -> Result<Result<Granting, WorkflowRefused>> {
    let reached = tried!(held(tx, &order.caller, &order.which, Role::Admin).await?);
    if reached.role < order.role {
        return Ok(Err(WorkflowRefused::RoleAboveOwn { has: reached.role }));
    }
    let found = known(tx, &order.caller, &order.grantee, order.at).await?;
    let grantee = tried!(found.ok_or(WorkflowRefused::GranteeUnknown)).account;
    if grantee == reached.workflow.account {
        return Ok(Err(WorkflowRefused::Field(WrongField::GranteeIsOwner)));
    }
    let before = floor_of(tx, &reached, &grantee).await?;
    if before.is_none() && MOST_GRANTS <= count(tx, &reached).await? {
        return Ok(Err(WorkflowRefused::TooManyGrants));
    }
    // Nobody shares versions that they do not see, and nobody loses some by another role.
    let floor = if order.with_history { reached.floor } else { reached.workflow.current_version };
    let floor = before.map_or(floor, |before| before.min(floor));
    let args = args![
        &reached.workflow.account,
        &reached.workflow.id,
        &grantee,
        order.role.as_str(),
        floor,
        &order.caller,
        order.at
    ];
    tx.run(PUT, args).await?;
    Ok(Ok(Granting { workflow: reached.workflow, grantee, role: order.role, floor }))
}

pub(super) async fn revoke(
    tx: &mut impl Tx,
    order: &RevokeOrder,
) -> Result<Result<Revoking, WorkflowRefused>> {
    let reached = tried!(held(tx, &order.caller, &order.which, Role::Admin).await?);
    let workflow = reached.workflow;
    let found = profile_get(tx, &order.grantee, &order.at).await?;
    let was_there = match &found {
        None => false,
        Some(profile) => {
            let args = args![&workflow.account, &workflow.id, &profile.account];
            tx.run(REMOVE, args).await? > 0
        }
    };
    if !was_there && known(tx, &order.caller, &order.grantee, order.at).await?.is_none() {
        return Ok(Err(WorkflowRefused::GranteeUnknown));
    }
    Ok(Ok(Revoking { workflow, was_there }))
}

pub(super) async fn leave(
    tx: &mut impl Tx,
    change: &WorkflowChange,
) -> Result<Result<Left, WorkflowRefused>> {
    let reached = tried!(held(tx, &change.caller, &change.which, Role::View).await?);
    if reached.role == Role::Owner {
        return Ok(Err(WorkflowRefused::OwnerStays));
    }
    let workflow = reached.workflow;
    let args = args![&workflow.account, &workflow.id, &change.caller];
    let removed = u32::try_from(tx.run(REMOVE, args).await?).unwrap_or(u32::MAX);
    Ok(Ok(Left { workflow, removed }))
}

/// Somebody whom the caller may share with: any user, and teams that the caller is a member of.
async fn known(
    tx: &mut impl Tx,
    caller: &AccountId,
    name: &AccountName,
    at: Timestamp,
) -> Result<Option<Profile>> {
    let Some(profile) = profile_get(tx, name, &at).await? else { return Ok(None) };
    Ok(match profile.kind {
        AccountKind::User => Some(profile),
        AccountKind::Anonymous => None,
        AccountKind::Team => {
            let read = |cells: &dyn Cells| Columns::new(&cells, "team_members", "id").map(drop);
            let args = args![&profile.account, caller];
            tx.first(MEMBER, args, read).await?.map(|()| profile)
        }
    })
}

async fn floor_of(tx: &mut impl Tx, reached: &Reached, grantee: &AccountId) -> Result<Option<u32>> {
    let read =
        |cells: &dyn Cells| Columns::new(&cells, "workflow_grants", "id")?.count("floor_version");
    let args = args![&reached.workflow.account, &reached.workflow.id, grantee];
    tx.first(FLOOR, args, read).await
}

async fn count(tx: &mut impl Tx, reached: &Reached) -> Result<u32> {
    let read = |cells: &dyn Cells| Columns::new(&cells, "workflow_grants", "id")?.count("grants");
    let args = args![&reached.workflow.account, &reached.workflow.id];
    Ok(tx.first(COUNT, args, read).await?.unwrap_or(0))
}
