//! Reads workflows.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    workflow::{
        FileEntry, OwnershipFilter, ReachableWorkflow, VerifierBinding, Workflow,
        operation::{ForkLineage, UpstreamTemplate, WorkflowFilter, WorkflowView},
    },
};

use super::{
    NameMatch, WorkflowLookup, WorkflowWordSearch,
    reach::{self, GRANTED, reach_columns, seen_version},
    rows::{
        COLUMNS, FILE_COLUMNS, OWNER_HANDLE, read_binding, read_candidate, read_file, read_reached,
        read_version,
    },
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        search::{patterns, score},
        tx::{SqlArg, Tx, args},
    },
};

const VERSION: &str = seen_version!(
    "workflow_versions.workflow_id, workflow_versions.version, workflow_versions.name, \
     workflow_versions.description, workflow_versions.outcome, workflow_versions.tags, \
     workflow_versions.body, workflow_versions.source, workflow_versions.bindings, \
     workflow_versions.created_by, workflow_versions.created_at",
    "workflow_versions",
    ""
);
const VERSION_THERE: &str = seen_version!(
    "workflow_versions.workflow_id, workflow_versions.version",
    "workflow_versions",
    ""
);
const FILES: &str = seen_version!(FILE_COLUMNS, "workflow_files", "order by workflow_files.path");
pub(super) const BINDINGS: &str = "\
    select name, verifier_id, pinned_version from workflow_bindings \
    where account_id = $1 and workflow_id = $2 order by name";

const NARROWED: &str = " and workflows.id < $4 \
    and (cast($5 as text) is null or replace(workflows.tags, $5, '') <> workflows.tags) \
    and (cast($6 as text) is null \
    or replace(workflows.search_text, $6, '') <> workflows.search_text \
    or replace(workflows.search_body, $6, '') <> workflows.search_body)";

/// A search finds grants that are not accepted only in the list of shared workflows, because the
/// granter chooses the words.
const LIST: &str = concatcp!(
    "select ",
    COLUMNS,
    ", 4 as role_rank, cast(0 as bigint) as floor_version, 1 as is_accepted, ",
    OWNER_HANDLE,
    " from workflows where workflows.account_id = $1 and $2 <> 'shared' \
     and (workflows.archived_at is null or $3 = 1)",
    NARROWED,
    " union all select ",
    COLUMNS,
    ", ",
    reach_columns!("granted"),
    " from ",
    GRANTED,
    " join workflows on workflows.account_id = granted.account_id \
     and workflows.id = granted.workflow_id \
     where workflows.archived_at is null and $2 <> 'mine' \
     and (granted.is_accepted = 1 or $2 = 'shared' or cast($6 as text) is null)",
    NARROWED,
    " order by id desc limit $7"
);
/// Restricts a search to one tag, if one is given.
const TAGGED: &str =
    " and (cast($19 as text) is null or replace(workflows.tags, $19, '') <> workflows.tags)";

/// SQLite numbers parameters by appearance, so the caller comes first.
const SEARCH: &str = concatcp!(
    "select * from (select cast($1 as text) as asked_by, ",
    COLUMNS,
    ", 4 as role_rank, cast(0 as bigint) as floor_version, 1 as is_accepted, ",
    OWNER_HANDLE,
    ", workflows.search_body, ",
    score!("workflows"),
    " as score from workflows where workflows.account_id = $1 and $18 <> 'shared' \
     and workflows.archived_at is null",
    TAGGED,
    " union all select cast($1 as text) as asked_by, ",
    COLUMNS,
    ", ",
    reach_columns!("granted"),
    ", workflows.search_body, ",
    score!("workflows"),
    " as score from ",
    GRANTED,
    " join workflows on workflows.account_id = granted.account_id \
     and workflows.id = granted.workflow_id \
     where workflows.archived_at is null and $18 <> 'mine' \
     and (granted.is_accepted = 1 or $18 = 'shared')",
    TAGGED,
    ") as found where score > 0 order by score desc, id desc limit $20"
);
const UPSTREAM: &str = "\
    select templates.id, templates.latest_version, templates.archived_at, \
    templates.archive_reason, template_versions.version, template_versions.unpublished_at, \
    template_versions.deprecated_at, template_versions.deprecation_message \
    from templates left join template_versions on template_versions.template_id = templates.id \
    and template_versions.version = $1 where templates.id = $2";

/// Sorts after every id.
const LAST: &str = "~";

pub(super) async fn find(
    tx: &mut Tx<'_>,
    asked: &WorkflowLookup,
) -> Result<NameMatch<ReachableWorkflow>> {
    let found = reach::find(tx, &asked.caller, &asked.which).await?;
    let (NameMatch::One(reached), Some(version)) = (&found, asked.version) else {
        return Ok(found);
    };
    let read = |cells: &dyn DbRow| {
        RowReader::new(cells, "workflow_versions", "workflow_id")?.number("version")
    };
    let args = args![&asked.caller, &reached.workflow.id, version];
    Ok(match tx.first(VERSION_THERE, args, read).await? {
        Some(_) => found,
        None => NameMatch::Nothing,
    })
}

pub(super) async fn get(
    tx: &mut Tx<'_>,
    asked: &WorkflowLookup,
) -> Result<NameMatch<WorkflowView>> {
    let reached = match reach::find(tx, &asked.caller, &asked.which).await? {
        NameMatch::One(reached) => *reached,
        NameMatch::Nothing => return Ok(NameMatch::Nothing),
        NameMatch::Elsewhere(names) => return Ok(NameMatch::Elsewhere(names)),
    };
    let workflow = &reached.workflow;
    let number = asked.version.unwrap_or(workflow.current_version);
    let args = args![&asked.caller, &workflow.id, number];
    let Some(mut version) = tx.first(VERSION, args, read_version).await? else {
        return Ok(NameMatch::Nothing);
    };
    version.files = files_seen(tx, &asked.caller, (&workflow.id, number)).await?;
    if number == workflow.current_version {
        // The current bindings no longer name a deleted verifier.
        version.bindings = bindings_of(tx, workflow).await?;
    }
    Ok(NameMatch::One(Box::new(WorkflowView { reached, version })))
}

pub(super) async fn files_seen(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    (id, version): (&str, u32),
) -> Result<Vec<FileEntry>> {
    tx.all(FILES, args![caller, id, version], read_file).await
}

pub(super) async fn bindings_of(
    tx: &mut Tx<'_>,
    workflow: &Workflow,
) -> Result<Vec<VerifierBinding>> {
    tx.all(BINDINGS, args![&workflow.account, &workflow.id], read_binding).await
}

/// The name of an ownership filter in the statements.
fn side(whose: OwnershipFilter) -> &'static str {
    match whose {
        OwnershipFilter::Mine => "mine",
        OwnershipFilter::SharedWithMe => "shared",
        OwnershipFilter::All => "all",
    }
}

/// The workflows with most of the words, roughly best first, each with the words of its body.
pub(super) async fn search(
    tx: &mut Tx<'_>,
    wanted: &WorkflowWordSearch,
) -> Result<Vec<(ReachableWorkflow, String)>> {
    let tag = wanted.tag.as_ref().map(json).transpose()?;
    let mut args = args![&wanted.caller];
    args.extend(patterns(&wanted.words));
    args.extend(args![side(wanted.whose), tag.as_deref(), wanted.limit]);
    tx.all(SEARCH, args, read_candidate).await
}

pub(super) async fn list(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    filter: &WorkflowFilter,
) -> Result<Vec<ReachableWorkflow>> {
    let whose = side(filter.whose);
    let tag = filter.tag.as_ref().map(json).transpose()?;
    let search = filter.search.as_ref().map(|text| text.to_lowercase());
    let args = args![
        caller,
        whose,
        filter.with_archived,
        filter.before.as_deref().unwrap_or(LAST),
        tag.as_deref(),
        search.as_deref().filter(|text| !text.is_empty()),
        filter.limit
    ];
    tx.all(LIST, args, read_reached).await
}

pub(super) async fn lineage(
    tx: &mut Tx<'_>,
    asked: &WorkflowLookup,
) -> Result<NameMatch<ForkLineage>> {
    let workflow = match find(tx, asked).await? {
        NameMatch::One(reached) => reached.workflow,
        NameMatch::Nothing => return Ok(NameMatch::Nothing),
        NameMatch::Elsewhere(names) => return Ok(NameMatch::Elsewhere(names)),
    };
    let upstream = match &workflow.parent {
        None => None,
        Some(parent) => {
            let args: Vec<SqlArg> = args![parent.version, &parent.template_id];
            tx.first(UPSTREAM, args, read_upstream).await?
        }
    };
    Ok(NameMatch::One(Box::new(ForkLineage { workflow, upstream })))
}

fn read_upstream(cells: &dyn DbRow) -> Result<UpstreamTemplate> {
    let columns = RowReader::new(cells, "templates", "id")?;
    Ok(UpstreamTemplate {
        latest_version: columns.count("latest_version")?,
        archived_at: columns.maybe_time("archived_at")?,
        archive_reason: columns.maybe_text("archive_reason")?,
        has_version: columns.maybe_number("version")?.is_some(),
        unpublished_at: columns.maybe_time("unpublished_at")?,
        deprecated_at: columns.maybe_time("deprecated_at")?,
        deprecation_message: columns.maybe_text("deprecation_message")?,
    })
}
