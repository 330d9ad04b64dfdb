//! Which workflows somebody reaches, and how far. Every question begins with what is the caller's and
//! what was granted, so that nothing else is read, and one of others takes as long as none.

use jurat_core::{
    id::AccountId,
    workflow::{Reached, Role, WorkflowWhich},
};

use super::{
    Found, WorkflowRefused,
    rows::{columns, read_reached},
    tried,
};
use crate::{
    Result,
    both::{Tx, args},
};

/// The caller, and the teams that it is a member of.
macro_rules! principals {
    () => {
        "(select cast($1 as text) union all select team_members.team_id from team_members \
         where team_members.account_id = $1)"
    };
}
pub(crate) use principals;

/// What was granted to the caller, once for each workflow: the highest role and the lowest floor.
macro_rules! grants {
    ($rest:literal) => {
        concat!(
            "select workflow_grants.account_id, workflow_grants.workflow_id, \
             max(case workflow_grants.role when 'admin' then 3 when 'edit' then 2 else 1 end) \
             as role_rank, min(workflow_grants.floor_version) as floor_version \
             from workflow_grants where workflow_grants.account_id <> $1 \
             and workflow_grants.grantee_id in ",
            $crate::workflows::principals!(),
            $rest,
            " group by workflow_grants.account_id, workflow_grants.workflow_id"
        )
    };
}
pub(crate) use grants;

macro_rules! granted {
    () => {
        concat!("(", $crate::workflows::reach::grants!(""), ") as granted")
    };
}
pub(crate) use granted;

/// The one workflow `$2` with how far the caller reaches it. SQLite keeps the order of what is joined
/// by `cross join`: the workflow itself comes after whether it is reached.
macro_rules! seen {
    ($columns:expr, $joins:expr, $rest:expr) => {
        concat!(
            "select ",
            $columns,
            " from (select own.account_id, own.id as workflow_id, 4 as role_rank, \
             cast(0 as bigint) as floor_version from workflows as own \
             where own.account_id = $1 and own.id = $2 union all ",
            $crate::workflows::reach::grants!(" and workflow_grants.workflow_id = $2"),
            ") as reached cross join workflows ",
            $joins,
            " where workflows.account_id = reached.account_id \
             and workflows.id = reached.workflow_id \
             and (reached.role_rank = 4 or workflows.archived_at is null) ",
            $rest
        )
    };
}
pub(crate) use seen;

/// The part of a version `$3` that is kept in a table of its own, if the caller sees the version.
macro_rules! seen_version {
    ($columns:expr, $table:literal, $rest:expr) => {
        $crate::workflows::reach::seen!(
            $columns,
            concat!(
                "join ",
                $table,
                " on ",
                $table,
                ".account_id = workflows.account_id and ",
                $table,
                ".workflow_id = workflows.id"
            ),
            concat!("and ", $table, ".version = $3 and reached.floor_version <= $3 ", $rest)
        )
    };
}
pub(crate) use seen_version;

const BY_ID: &str =
    seen!(concat!(columns!(), ", reached.role_rank, reached.floor_version"), "", "");
const OWN_BY_SLUG: &str = concat!(
    "select ",
    columns!(),
    ", 4 as role_rank, 0 as floor_version from workflows \
     where workflows.account_id = $1 and workflows.slug = $2"
);
const SHARED_BY_SLUG: &str = concat!(
    "select ",
    columns!(),
    ", granted.role_rank, granted.floor_version from ",
    granted!(),
    " join workflows on workflows.account_id = granted.account_id \
     and workflows.id = granted.workflow_id \
     where workflows.archived_at is null and workflows.slug = $2 order by workflows.id"
);

pub(super) async fn by_id(
    tx: &mut impl Tx,
    caller: &AccountId,
    id: &str,
) -> Result<Option<Reached>> {
    tx.first(BY_ID, args![caller, id], read_reached).await
}

pub(super) async fn own_by_slug(
    tx: &mut impl Tx,
    caller: &AccountId,
    slug: &str,
) -> Result<Option<Reached>> {
    tx.first(OWN_BY_SLUG, args![caller, slug], read_reached).await
}

pub(super) async fn shared_by_slug(
    tx: &mut impl Tx,
    caller: &AccountId,
    slug: &str,
) -> Result<Vec<Reached>> {
    tx.all(SHARED_BY_SLUG, args![caller, slug], read_reached).await
}

/// A workflow by its name: the caller's own comes first, then one of others that is the only one.
pub(super) async fn find(
    tx: &mut impl Tx,
    caller: &AccountId,
    which: &WorkflowWhich,
) -> Result<Found<Reached>> {
    let slug = match which {
        WorkflowWhich::Id(id) => return by_id(tx, caller, id).await.map(Found::one),
        WorkflowWhich::Slug(slug) => slug.as_str(),
    };
    if let Some(own) = own_by_slug(tx, caller, slug).await? {
        return Ok(Found::One(Box::new(own)));
    }
    let mut shared = shared_by_slug(tx, caller, slug).await?;
    Ok(if shared.len() > 1 { Found::Ambiguous } else { Found::one(shared.pop()) })
}

/// Those who change the workflows of an account take turns.
pub(crate) async fn lock(tx: &mut impl Tx, owner: &AccountId) -> Result<()> {
    tx.lock(&format!("workflows of {owner}")).await
}

/// A workflow that the caller may change, with nobody else changing it.
pub(super) async fn held(
    tx: &mut impl Tx,
    caller: &AccountId,
    which: &WorkflowWhich,
    needs: Role,
) -> Result<Result<Reached, WorkflowRefused>> {
    let found = match find(tx, caller, which).await? {
        Found::One(found) => found,
        Found::Nothing => return Ok(Err(WorkflowRefused::NotFound)),
        Found::Ambiguous => return Ok(Err(WorkflowRefused::Ambiguous)),
    };
    lock(tx, &found.workflow.account).await?;
    // What was true before the turn came may not be so any more.
    let again = by_id(tx, caller, &found.workflow.id).await?;
    let found = tried!(again.ok_or(WorkflowRefused::NotFound));
    tried!(may(&found, needs));
    Ok(Ok(found))
}

pub(super) fn may(reached: &Reached, needs: Role) -> Result<(), WorkflowRefused> {
    let has = reached.role;
    if has < needs { Err(WorkflowRefused::RoleTooLow { has, needs }) } else { Ok(()) }
}
