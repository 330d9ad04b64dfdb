//! Rows of workflows, their versions, files and bindings.

use jurat_core::{
    account::full_name,
    id::AccountId,
    workflow::{
        AccessRole, FileEntry, ForkOrigin, ReachableWorkflow, ShareOrigin, VerifierBinding,
        Workflow, WorkflowVersion,
        search::{SearchIndex, SearchTexts},
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    db::row::{DbRow, RowReader, json},
};

pub(crate) const COLUMNS: &str = "\
    workflows.account_id, workflows.id, workflows.slug, workflows.name, \
    workflows.description, workflows.outcome, workflows.tags, workflows.current_version, \
    workflows.version_token, workflows.parent_template_id, \
    workflows.parent_template_version, workflows.created_at, workflows.updated_at, \
    workflows.archived_at";

pub(crate) const FILE_COLUMNS: &str = "\
    workflow_files.path, workflow_files.sha256, workflow_files.size_bytes, \
    workflow_files.is_executable, workflow_files.content_kind, workflow_files.purpose";

/// The handle of the owner of a workflow.
pub(crate) const OWNER_HANDLE: &str = "\
    (select owners.handle from accounts as owners where owners.id = workflows.account_id) \
    as owner_handle";

pub(super) fn read_workflow(cells: &dyn DbRow) -> Result<Workflow> {
    let columns = RowReader::new(cells, "workflows", "id")?;
    let template_id = columns.maybe_text("parent_template_id")?;
    let version = columns.maybe_count("parent_template_version")?;
    let parent = template_id.zip(version);
    Ok(Workflow {
        account: columns.id("account_id", AccountId::parse)?,
        id: columns.text("id")?,
        slug: columns.text("slug")?,
        name: columns.text("name")?,
        description: columns.text("description")?,
        outcome: columns.text("outcome")?,
        tags: columns.document("tags")?,
        current_version: columns.count("current_version")?,
        version_token: columns.text("version_token")?,
        parent: parent.map(|(template_id, version)| ForkOrigin { template_id, version }),
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        archived_at: columns.maybe_time("archived_at")?,
    })
}

pub(super) fn read_reached(cells: &dyn DbRow) -> Result<ReachableWorkflow> {
    let columns = RowReader::new(cells, "workflows", "id")?;
    let role = role_of_rank(&columns)?;
    let floor = columns.count("floor_version")?;
    let workflow = read_workflow(cells)?;
    let shared = match role {
        AccessRole::Owner => None,
        AccessRole::View | AccessRole::Edit | AccessRole::Admin => Some(ShareOrigin {
            owner: label(columns.maybe_text("owner_handle")?, workflow.account.as_str()),
            is_accepted: columns.number("is_accepted")? != 0,
        }),
    };
    Ok(ReachableWorkflow { workflow, role, floor, shared })
}

pub(crate) fn role_of_rank(columns: &RowReader<'_>) -> Result<AccessRole> {
    match columns.number("role_rank")? {
        1 => Ok(AccessRole::View),
        2 => Ok(AccessRole::Edit),
        3 => Ok(AccessRole::Admin),
        4 => Ok(AccessRole::Owner),
        _ => Err(columns.bad("role_rank", "it is no role")),
    }
}

/// The name of an owner for others: never an e-mail address.
pub(crate) fn label(handle: Option<String>, account: &str) -> String {
    handle.map_or_else(|| account.to_owned(), |handle| format!("@{handle}"))
}

/// The name of a workflow for those who do not own it.
pub(super) fn read_full_name(cells: &dyn DbRow) -> Result<String> {
    let reached = read_reached(cells)?;
    let owner = reached.shared.map_or_else(String::new, |shared| shared.owner);
    Ok(full_name(&owner, &reached.workflow.slug))
}

/// A version, without its files.
pub(super) fn read_version(cells: &dyn DbRow) -> Result<WorkflowVersion> {
    let columns = RowReader::new(cells, "workflow_versions", "workflow_id")?;
    let bindings: Vec<BindingDocument> = columns.document("bindings")?;
    Ok(WorkflowVersion {
        version: columns.count("version")?,
        name: columns.text("name")?,
        description: columns.text("description")?,
        outcome: columns.text("outcome")?,
        tags: columns.document("tags")?,
        body: columns.text("body")?,
        source: columns.word("source")?,
        bindings: bindings.into_iter().map(VerifierBinding::from).collect(),
        files: Vec::new(),
        created_by: columns.id("created_by", AccountId::parse)?,
        created_at: columns.time("created_at")?,
    })
}

pub(super) fn read_file(cells: &dyn DbRow) -> Result<FileEntry> {
    let columns = RowReader::new(cells, "workflow_files", "path")?;
    Ok(FileEntry {
        path: columns.text("path")?,
        sha256: columns.text("sha256")?,
        size_bytes: columns.count("size_bytes")?,
        is_executable: columns.number("is_executable")? != 0,
        kind: columns.word("content_kind")?,
        purpose: columns.text("purpose")?,
    })
}

pub(super) fn read_binding(cells: &dyn DbRow) -> Result<VerifierBinding> {
    let columns = RowReader::new(cells, "workflow_bindings", "name")?;
    Ok(VerifierBinding {
        name: columns.text("name")?,
        verifier_id: columns.text("verifier_id")?,
        version: columns.maybe_count("pinned_version")?,
    })
}

/// A binding in the document of a version.
#[derive(Debug, Serialize, Deserialize)]
struct BindingDocument {
    name: String,
    verifier_id: String,
    version: Option<u32>,
}

impl From<BindingDocument> for VerifierBinding {
    fn from(text: BindingDocument) -> Self {
        Self { name: text.name, verifier_id: text.verifier_id, version: text.version }
    }
}

pub(super) fn bindings_text(bindings: &[VerifierBinding]) -> Result<String> {
    let texts = bindings.iter().map(|it| BindingDocument {
        name: it.name.clone(),
        verifier_id: it.verifier_id.clone(),
        version: it.version,
    });
    json(&texts.collect::<Vec<_>>())
}

/// A workflow that matches some words of a query, with the words of its body.
pub(super) fn read_candidate(cells: &dyn DbRow) -> Result<(ReachableWorkflow, String)> {
    let body = RowReader::new(cells, "workflows", "id")?.text("search_body")?;
    Ok((read_reached(cells)?, body))
}

/// The search index of a workflow.
pub(super) fn index_of(workflow: &Workflow, body: &str) -> SearchIndex {
    let texts = SearchTexts {
        name: &workflow.name,
        slug: &workflow.slug,
        tags: &workflow.tags,
        description: &workflow.description,
        outcome: &workflow.outcome,
        body,
    };
    texts.index()
}
