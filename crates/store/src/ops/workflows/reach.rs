//! The workflows that a caller can reach, and the caller's role on them. Every query starts with
//! the caller's own workflows and grants, so that nothing else is read, and a foreign workflow
//! takes as long as a missing one. A bare slug means one of the caller's own: shared ones are
//! reached by id or full name.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    workflow::{AccessRole, ReachableWorkflow, WorkflowSelector},
};

use super::{
    NameMatch, WorkflowRefusal,
    rows::{COLUMNS, OWNER_HANDLE, read_full_name, read_reached},
    tried,
};
use crate::{
    Result,
    db::tx::{Tx, args},
};

/// The caller, and the teams that it is a member of.
pub(crate) const PRINCIPALS: &str = "\
    (select cast($1 as text) union all select team_members.team_id from team_members \
    where team_members.account_id = $1)";

/// The owner in `@owner/name`: the account itself, or the one that has or had the handle.
macro_rules! of_owner {
    ($owner:literal) => {
        const_format::concatcp!(
            "(select cast(",
            $owner,
            " as text) union all select handles.account_id from handles where handles.handle = ",
            $owner,
            ")"
        )
    };
}
pub(crate) use of_owner;

/// Whether a grant counts as accepted: its holder accepted it, or it comes through a team.
pub(crate) const IS_ACCEPTED: &str =
    "workflow_grants.state = 'accepted' or workflow_grants.grantee_id <> $1";

/// The grants of the caller, one for each workflow: the highest role and the lowest floor.
macro_rules! grants {
    ($rest:literal) => {
        const_format::concatcp!(
            "select workflow_grants.account_id, workflow_grants.workflow_id, \
             max(case workflow_grants.role when 'admin' then 3 when 'edit' then 2 else 1 end) \
             as role_rank, min(workflow_grants.floor_version) as floor_version, \
             max(case when ",
            $crate::ops::workflows::IS_ACCEPTED,
            " then 1 else 0 end) as is_accepted \
             from workflow_grants where workflow_grants.account_id <> $1 \
             and workflow_grants.state <> 'declined' and workflow_grants.grantee_id in ",
            $crate::ops::workflows::PRINCIPALS,
            $rest,
            " group by workflow_grants.account_id, workflow_grants.workflow_id"
        )
    };
}
pub(crate) use grants;

pub(crate) const GRANTED: &str =
    concatcp!("(", crate::ops::workflows::reach::grants!(""), ") as granted");

/// The caller's role on a workflow, from the rows under this name.
macro_rules! reach_columns {
    ($reached:literal) => {
        const_format::concatcp!(
            $reached,
            ".role_rank, ",
            $reached,
            ".floor_version, ",
            $reached,
            ".is_accepted, ",
            $crate::ops::workflows::rows::OWNER_HANDLE
        )
    };
}
pub(crate) use reach_columns;

/// Workflows with the caller's role on them: own ones selected by the first condition, and granted
/// ones selected by the second. SQLite keeps the join order of `cross join`: access comes before
/// the workflow itself.
macro_rules! reached_by {
    ($own:literal, $granted:literal, $columns:expr, $joins:expr, $rest:expr) => {
        const_format::concatcp!(
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

/// The workflow `$2` with the caller's role on it.
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

/// The part of a version `$3` that has a table of its own, if the caller can see the version.
macro_rules! seen_version {
    ($columns:expr, $table:literal, $rest:expr) => {
        $crate::ops::workflows::reach::seen!(
            $columns,
            const_format::concatcp!(
                "join ",
                $table,
                " on ",
                $table,
                ".account_id = workflows.account_id and ",
                $table,
                ".workflow_id = workflows.id"
            ),
            const_format::concatcp!(
                "and ",
                $table,
                ".version = $3 and reached.floor_version <= $3 ",
                $rest
            )
        )
    };
}
pub(crate) use seen_version;

const BY_ID: &str = seen!(concatcp!(COLUMNS, ", ", reach_columns!("reached")), "", "");
const OWN_BY_SLUG: &str = concatcp!(
    "select ",
    COLUMNS,
    ", 4 as role_rank, 0 as floor_version, 1 as is_accepted, ",
    OWNER_HANDLE,
    " from workflows where workflows.account_id = $1 and workflows.slug = $2"
);
/// A workflow by its slug `$2` and its owner `$3`.
const BY_FULL_NAME: &str = reached_by!(
    "own.slug = $2",
    "",
    concatcp!(COLUMNS, ", ", reach_columns!("reached")),
    "",
    concatcp!("and workflows.slug = $2 and workflows.account_id in ", of_owner!("$3"))
);
/// Shared workflows with the slug, accepted ones first.
const SHARED_BY_SLUG: &str = concatcp!(
    "select ",
    COLUMNS,
    ", ",
    reach_columns!("granted"),
    " from ",
    GRANTED,
    " join workflows on workflows.account_id = granted.account_id \
     and workflows.id = granted.workflow_id \
     where workflows.archived_at is null and workflows.slug = $2 \
     order by granted.is_accepted desc, workflows.id limit 3"
);
/// The shared workflow with the token `$3` that the caller accepted and may change.
const ACCEPTED_BY_TOKEN: &str = concatcp!(
    "select ",
    COLUMNS,
    ", ",
    reach_columns!("granted"),
    " from ",
    GRANTED,
    " join workflows on workflows.account_id = granted.account_id \
     and workflows.id = granted.workflow_id \
     where workflows.archived_at is null and workflows.slug = $2 \
     and granted.is_accepted = 1 and workflows.version_token = $3"
);

pub(super) async fn by_id(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    id: &str,
) -> Result<Option<ReachableWorkflow>> {
    tx.first(BY_ID, args![caller, id], read_reached).await
}

pub(super) async fn own_by_slug(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    slug: &str,
) -> Result<Option<ReachableWorkflow>> {
    tx.first(OWN_BY_SLUG, args![caller, slug], read_reached).await
}

/// The full names of shared workflows with the slug.
pub(super) async fn full_names(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    slug: &str,
) -> Result<Vec<String>> {
    tx.all(SHARED_BY_SLUG, args![caller, slug], read_full_name).await
}

/// A shared workflow by its slug and its token, which only its readers know.
pub(super) async fn by_token(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    (slug, token): (&str, &str),
) -> Result<Option<ReachableWorkflow>> {
    tx.first(ACCEPTED_BY_TOKEN, args![caller, slug, token], read_reached).await
}

/// A workflow by its name. A bare slug means one of the caller's own; if there is none, a recipient
/// of a shared workflow with that slug learns its full name.
pub(super) async fn find(
    tx: &mut Tx<'_>,
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

/// Makes changes to the workflows of an account wait for each other.
pub(crate) async fn lock(tx: &mut Tx<'_>, owner: &AccountId) -> Result<()> {
    tx.lock(&format!("workflows of {owner}")).await
}

/// A workflow that the caller may change, locked against other changes.
pub(super) async fn held(
    tx: &mut Tx<'_>,
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
    // The state may have changed during the wait for the lock.
    let again = by_id(tx, caller, &found.workflow.id).await?;
    let found = tried!(again.ok_or(WorkflowRefusal::NotFound));
    tried!(may(&found, needs));
    Ok(Ok(found))
}

pub(super) fn may(reached: &ReachableWorkflow, needs: AccessRole) -> Result<(), WorkflowRefusal> {
    let has = reached.role;
    if has < needs { Err(WorkflowRefusal::RoleTooLow { has, needs }) } else { Ok(()) }
}
