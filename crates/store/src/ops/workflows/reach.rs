//! Which workflows somebody reaches, and how far. Every question begins with what is the caller's and
//! what was granted, so that nothing else is read, and one of others takes as long as none. A bare
//! slug is one of the caller's own: what others grant is reached by its id or its full name.

use jurat_core::{
    id::AccountId,
    workflow::{AccessRole, ReachableWorkflow, WorkflowSelector},
};

use super::{
    NameMatch, WorkflowRefusal,
    rows::{columns, owner_handle, read_full_name, read_reached},
    tried,
};
use crate::{
    Result,
    db::tx::{Tx, args},
};

/// The caller, and the teams that it is a member of.
macro_rules! principals {
    () => {
        "(select cast($1 as text) union all select team_members.team_id from team_members \
         where team_members.account_id = $1)"
    };
}
pub(crate) use principals;

/// Whose name it is in `@owner/name`: the account itself, or the one that has or had the handle.
macro_rules! of_owner {
    ($owner:literal) => {
        concat!(
            "(select cast(",
            $owner,
            " as text) union all select handles.account_id from handles where handles.handle = ",
            $owner,
            ")"
        )
    };
}
pub(crate) use of_owner;

/// Whether a grant counts as accepted: its holder said so, or it comes through a team.
macro_rules! is_accepted {
    () => {
        "workflow_grants.state = 'accepted' or workflow_grants.grantee_id <> $1"
    };
}
pub(crate) use is_accepted;

/// What was granted to the caller, once for each workflow: the highest role and the lowest floor.
macro_rules! grants {
    ($rest:literal) => {
        concat!(
            "select workflow_grants.account_id, workflow_grants.workflow_id, \
             max(case workflow_grants.role when 'admin' then 3 when 'edit' then 2 else 1 end) \
             as role_rank, min(workflow_grants.floor_version) as floor_version, \
             max(case when ",
            $crate::ops::workflows::is_accepted!(),
            " then 1 else 0 end) as is_accepted \
             from workflow_grants where workflow_grants.account_id <> $1 \
             and workflow_grants.state <> 'declined' and workflow_grants.grantee_id in ",
            $crate::ops::workflows::principals!(),
            $rest,
            " group by workflow_grants.account_id, workflow_grants.workflow_id"
        )
    };
}
pub(crate) use grants;

macro_rules! granted {
    () => {
        concat!("(", $crate::ops::workflows::reach::grants!(""), ") as granted")
    };
}
pub(crate) use granted;

/// How far the caller reaches a workflow, of the rows that say so under this name.
macro_rules! reach_columns {
    ($reached:literal) => {
        concat!(
            $reached,
            ".role_rank, ",
            $reached,
            ".floor_version, ",
            $reached,
            ".is_accepted, ",
            $crate::ops::workflows::rows::owner_handle!()
        )
    };
}
pub(crate) use reach_columns;

/// Workflows with how far the caller reaches them: those of its own that the first text names, and
/// those of the grants that the second one does. SQLite keeps the order of what is joined by
/// `cross join`: the workflow itself comes after whether it is reached.
macro_rules! reached_by {
    ($own:literal, $granted:literal, $columns:expr, $joins:expr, $rest:expr) => {
        concat!(
            "select ",
            $columns,
            " from (select own.account_id, own.id as workflow_id, 4 as role_rank, \
             cast(0 as bigint) as floor_version, 1 as is_accepted from workflows as own \
             where own.account_id = $1 and ",
            $own,
            " union all ",
            $crate::ops::workflows::reach::grants!($granted),
            ") as reached cross join workflows ",
            $joins,
            " where workflows.account_id = reached.account_id \
             and workflows.id = reached.workflow_id \
             and (reached.role_rank = 4 or workflows.archived_at is null) ",
            $rest
        )
    };
}
pub(crate) use reached_by;

/// The one workflow `$2` with how far the caller reaches it.
macro_rules! seen {
    ($columns:expr, $joins:expr, $rest:expr) => {
        $crate::ops::workflows::reach::reached_by!(
            "own.id = $2",
            " and workflow_grants.workflow_id = $2",
            $columns,
            $joins,
            $rest
        )
    };
}
pub(crate) use seen;

/// The part of a version `$3` that is kept in a table of its own, if the caller sees the version.
macro_rules! seen_version {
    ($columns:expr, $table:literal, $rest:expr) => {
        $crate::ops::workflows::reach::seen!(
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

const BY_ID: &str = seen!(concat!(columns!(), ", ", reach_columns!("reached")), "", "");
const OWN_BY_SLUG: &str = concat!(
    "select ",
    columns!(),
    ", 4 as role_rank, 0 as floor_version, 1 as is_accepted, ",
    owner_handle!(),
    " from workflows where workflows.account_id = $1 and workflows.slug = $2"
);
/// By its slug `$2` and its owner `$3`.
const BY_FULL_NAME: &str = reached_by!(
    "own.slug = $2",
    "",
    concat!(columns!(), ", ", reach_columns!("reached")),
    "",
    concat!("and workflows.slug = $2 and workflows.account_id in ", of_owner!("$3"))
);
/// Those of others that have the slug; what was accepted comes first.
const SHARED_BY_SLUG: &str = concat!(
    "select ",
    columns!(),
    ", ",
    reach_columns!("granted"),
    " from ",
    granted!(),
    " join workflows on workflows.account_id = granted.account_id \
     and workflows.id = granted.workflow_id \
     where workflows.archived_at is null and workflows.slug = $2 \
     order by granted.is_accepted desc, workflows.id limit 3"
);
/// The one of others that the caller accepted, may change, and has the token `$3` of.
const ACCEPTED_BY_TOKEN: &str = concat!(
    "select ",
    columns!(),
    ", ",
    reach_columns!("granted"),
    " from ",
    granted!(),
    " join workflows on workflows.account_id = granted.account_id \
     and workflows.id = granted.workflow_id \
     where workflows.archived_at is null and workflows.slug = $2 \
     and granted.is_accepted = 1 and workflows.version_token = $3"
);

pub(super) async fn by_id(
    tx: &mut impl Tx,
    caller: &AccountId,
    id: &str,
) -> Result<Option<ReachableWorkflow>> {
    tx.first(BY_ID, args![caller, id], read_reached).await
}

pub(super) async fn own_by_slug(
    tx: &mut impl Tx,
    caller: &AccountId,
    slug: &str,
) -> Result<Option<ReachableWorkflow>> {
    tx.first(OWN_BY_SLUG, args![caller, slug], read_reached).await
}

/// What a workflow of others is called that has the slug, for whoever it was granted to.
pub(super) async fn full_names(
    tx: &mut impl Tx,
    caller: &AccountId,
    slug: &str,
) -> Result<Vec<String>> {
    tx.all(SHARED_BY_SLUG, args![caller, slug], read_full_name).await
}

/// A workflow of others by its slug and its token, which only those know who read it.
pub(super) async fn by_token(
    tx: &mut impl Tx,
    caller: &AccountId,
    (slug, token): (&str, &str),
) -> Result<Option<ReachableWorkflow>> {
    tx.first(ACCEPTED_BY_TOKEN, args![caller, slug, token], read_reached).await
}

/// A workflow by its name. A bare slug is one of the caller's own; whoever was granted one with that
/// slug learns its full name.
pub(super) async fn find(
    tx: &mut impl Tx,
    caller: &AccountId,
    which: &WorkflowSelector,
) -> Result<NameMatch<ReachableWorkflow>> {
    let slug = match which {
        WorkflowSelector::Id(id) => return by_id(tx, caller, id).await.map(NameMatch::one),
        WorkflowSelector::Of { owner, slug } => {
            let args = args![caller, slug.as_str(), owner.as_str()];
            return tx.first(BY_FULL_NAME, args, read_reached).await.map(NameMatch::one);
        }
        WorkflowSelector::Slug(slug) => slug.as_str(),
    };
    if let Some(own) = own_by_slug(tx, caller, slug).await? {
        return Ok(NameMatch::One(Box::new(own)));
    }
    Ok(NameMatch::named_elsewhere(full_names(tx, caller, slug).await?))
}

/// Those who change the workflows of an account take turns.
pub(crate) async fn lock(tx: &mut impl Tx, owner: &AccountId) -> Result<()> {
    tx.lock(&format!("workflows of {owner}")).await
}

/// A workflow that the caller may change, with nobody else changing it.
pub(super) async fn held(
    tx: &mut impl Tx,
    caller: &AccountId,
    which: &WorkflowSelector,
    needs: AccessRole,
) -> Result<Result<ReachableWorkflow, WorkflowRefusal>> {
    let found = match find(tx, caller, which).await? {
        NameMatch::One(found) => found,
        NameMatch::Nothing => return Ok(Err(WorkflowRefusal::NotFound)),
        NameMatch::Elsewhere(names) => return Ok(Err(WorkflowRefusal::Elsewhere(names))),
    };
    lock(tx, &found.workflow.account).await?;
    // What was true before the turn came may not be so any more.
    let again = by_id(tx, caller, &found.workflow.id).await?;
    let found = tried!(again.ok_or(WorkflowRefusal::NotFound));
    tried!(may(&found, needs));
    Ok(Ok(found))
}

pub(super) fn may(reached: &ReachableWorkflow, needs: AccessRole) -> Result<(), WorkflowRefusal> {
    let has = reached.role;
    if has < needs { Err(WorkflowRefusal::RoleTooLow { has, needs }) } else { Ok(()) }
}
