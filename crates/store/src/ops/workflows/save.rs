//! Saves the first version of a workflow, or the next one.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    verifier::VerifierSelector,
    workflow::{
        AccessRole, FileEntry, NewBinding, ReachableWorkflow, Slug, VerifierBinding, VersionSource,
        Workflow, WorkflowVersion, draft::BODY_FILE, operation::WorkflowSaveResult,
        search::SearchIndex,
    },
};

use super::{
    FilesPatch, SaveTarget, VersionFiles, WorkflowLookup, WorkflowRefusal, WorkflowSave,
    WrongField, files,
    reach::{self, may},
    read::{self, bindings_of, files_seen},
    rows::{bindings_text, index_of},
    tried,
};
use crate::{
    NameMatch, Result, StoreError,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args},
    },
    ops::storage::room,
};

const ADD: &str = "\
    insert into workflows (account_id, id, slug, name, description, outcome, tags, search_name, \
    search_text, search_body, current_version, version_token, parent_template_id, \
    parent_template_version, created_at, updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
const NEXT: &str = "\
    update workflows set name = $1, description = $2, outcome = $3, tags = $4, search_name = $5, \
    search_text = $6, search_body = $7, current_version = $8, version_token = $9, \
    updated_at = $10 where account_id = $11 and id = $12";
const VERSION_ADD: &str = "\
    insert into workflow_versions (account_id, workflow_id, version, name, description, outcome, \
    tags, body, source, bindings, created_by, created_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const BINDINGS_REMOVE: &str =
    "delete from workflow_bindings where account_id = $1 and workflow_id = $2";
const BINDING_ADD: &str = "\
    insert into workflow_bindings (account_id, workflow_id, name, verifier_id, pinned_version) \
    values ($1, $2, $3, $4, $5)";
const OWN_VERIFIER_BY_ID: &str = "\
    select id, current_version from verifiers \
    where account_id = $1 and id = $2 and standing = 'active'";
const OWN_VERIFIER_BY_NAME: &str = "\
    select id, current_version from verifiers \
    where account_id = $1 and name = $2 and standing = 'active'";
const OWN_VERIFIER_BY_FULL_NAME: &str = concatcp!(
    "select id, current_version from verifiers \
     where account_id = $1 and name = $2 and standing = 'active' and account_id in ",
    reach::of_owner!("$3")
);

/// The content of a version.
pub(crate) struct VersionContent {
    pub(crate) body: String,
    pub(crate) source: VersionSource,
    pub(crate) bindings: Vec<VerifierBinding>,
    pub(crate) files: VersionFiles,
    pub(crate) created_by: AccountId,
}

pub(super) async fn save(
    tx: &mut Tx<'_>,
    save: &WorkflowSave,
) -> Result<Result<WorkflowSaveResult, WorkflowRefusal>> {
    let target = tried!(placed(tx, save).await?);
    let target = target.as_ref();
    if let Some(found) = target {
        tried!(may_append(found, save.expected_token.as_deref()));
    }
    let workflow = tried!(next(save, target));
    tried!(room(tx, &workflow.account, save.quota_bytes).await?.map_err(WorkflowRefusal::Full));
    let bindings = tried!(next_bindings(tx, save, target).await?);
    let old = match target {
        Some(found) => files_now(tx, &save.caller, &found.workflow).await?,
        None => Vec::new(),
    };
    let files = match &save.files {
        None => VersionFiles { entries: old.clone(), ..VersionFiles::default() },
        Some(new) => tried!(files::kept(tx, target, (&workflow.account, &[]), new).await?),
    };
    let content = VersionContent {
        body: save.body.clone(),
        source: save.source,
        bindings,
        files,
        created_by: save.caller.clone(),
    };
    tried!(write(tx, &workflow, &content).await?);
    Ok(Ok(saved(workflow, content, &old)))
}

pub(super) async fn patch(
    tx: &mut Tx<'_>,
    patch: &FilesPatch,
) -> Result<Result<WorkflowSaveResult, WorkflowRefusal>> {
    let target = tried!(reach::held(tx, &patch.caller, &patch.which, AccessRole::Edit).await?);
    tried!(may_append(&target, patch.expected_token.as_deref()));
    let owner = &target.workflow.account;
    tried!(room(tx, owner, patch.quota_bytes).await?.map_err(WorkflowRefusal::Full));
    let current = tried!(current(tx, &patch.caller, &target).await?);
    let owner = (&target.workflow.account, current.files.as_slice());
    let mut files = tried!(files::kept(tx, Some(&target), owner, &patch.files).await?);
    files.entries = tried!(patched(&current.files, files.entries, &patch.delete_paths));
    let workflow = Workflow {
        current_version: target.workflow.current_version.saturating_add(1),
        version_token: patch.new_token.clone(),
        updated_at: patch.at,
        ..target.workflow
    };
    let content = VersionContent {
        body: patch.body.clone().unwrap_or(current.body),
        source: patch.source,
        bindings: current.bindings,
        files,
        created_by: patch.caller.clone(),
    };
    tried!(write(tx, &workflow, &content).await?);
    let mut saved = saved(workflow, content, &current.files);
    if patch.body.is_some() {
        saved.changed.insert(0, BODY_FILE.to_owned());
    }
    Ok(Ok(saved))
}

fn saved(workflow: Workflow, content: VersionContent, old: &[FileEntry]) -> WorkflowSaveResult {
    let VersionContent { body, bindings, files, .. } = content;
    let files = files.entries;
    let (changed, deleted) = files::differences(old, &files);
    WorkflowSaveResult { workflow, body, bindings, files, changed, deleted }
}

/// The workflow that gets a version, locked against other changes; `None` for a new one.
async fn placed(
    tx: &mut Tx<'_>,
    save: &WorkflowSave,
) -> Result<Result<Option<ReachableWorkflow>, WorkflowRefusal>> {
    let slug = match &save.target {
        SaveTarget::Id(id) => return held(tx, save, id).await,
        SaveTarget::Slug(slug) => slug.as_str(),
    };
    if let Some(own) = reach::own_by_slug(tx, &save.caller, slug).await? {
        return held(tx, save, &own.workflow.id).await;
    }
    if let Some(token) = &save.expected_token {
        return match reach::by_token(tx, &save.caller, (slug, token)).await? {
            Some(shared) => held(tx, save, &shared.workflow.id).await,
            None => Ok(Err(of_none(reach::full_names(tx, &save.caller, slug).await?))),
        };
    }
    reach::lock(tx, &save.caller).await?;
    // A concurrent request with the same key may have been first.
    Ok(Ok(reach::own_by_slug(tx, &save.caller, slug).await?))
}

async fn held(
    tx: &mut Tx<'_>,
    save: &WorkflowSave,
    id: &str,
) -> Result<Result<Option<ReachableWorkflow>, WorkflowRefusal>> {
    let which = jurat_core::workflow::WorkflowSelector::Id(id.to_owned());
    Ok(reach::held(tx, &save.caller, &which, AccessRole::View).await?.map(Some))
}

/// The refusal of a token that belongs to none of the caller's workflows. Another token is not
/// revealed, because the save would go to another owner.
fn of_none(shared: Vec<String>) -> WorkflowRefusal {
    if shared.is_empty() {
        WorkflowRefusal::TokenUnexpected
    } else {
        WorkflowRefusal::TokenOfNone(shared)
    }
}

fn may_append(found: &ReachableWorkflow, token: Option<&str>) -> Result<(), WorkflowRefusal> {
    may(found, AccessRole::Edit)?;
    let current = &found.workflow.version_token;
    if found.workflow.archived_at.is_some() {
        return Err(WorkflowRefusal::Archived);
    }
    match token {
        None => Err(WorkflowRefusal::TokenMissing { current: current.clone() }),
        Some(token) if token != current => {
            Err(WorkflowRefusal::TokenStale { current: current.clone() })
        }
        Some(_) => Ok(()),
    }
}

/// The workflow after the save.
fn next(
    save: &WorkflowSave,
    target: Option<&ReachableWorkflow>,
) -> Result<Workflow, WorkflowRefusal> {
    let Some(found) = target.map(|target| &target.workflow) else {
        let SaveTarget::Slug(slug) = &save.target else { return Err(WorkflowRefusal::NotFound) };
        return first(save, slug);
    };
    let kept = |new: &Option<String>, old: &String| new.as_ref().unwrap_or(old).clone();
    // Clients that keep workflows in folders know only the slug, and do not mean to rename.
    let name = save.name.clone().filter(|name| *name != found.slug);
    Ok(Workflow {
        name: kept(&name, &found.name),
        description: kept(&save.description, &found.description),
        outcome: kept(&save.outcome, &found.outcome),
        tags: save.tags.as_ref().unwrap_or(&found.tags).clone(),
        current_version: found.current_version.saturating_add(1),
        version_token: save.new_token.clone(),
        updated_at: save.at,
        ..found.clone()
    })
}

fn first(save: &WorkflowSave, slug: &Slug) -> Result<Workflow, WorkflowRefusal> {
    if save.expected_token.is_some() {
        return Err(WorkflowRefusal::TokenUnexpected);
    }
    Ok(Workflow {
        account: save.caller.clone(),
        id: save.new_id.clone(),
        slug: slug.as_str().to_owned(),
        name: save.name.clone().ok_or(WorkflowRefusal::Field(WrongField::NameMissing))?,
        description: save
            .description
            .clone()
            .ok_or(WorkflowRefusal::Field(WrongField::DescriptionMissing))?,
        outcome: save.outcome.clone().unwrap_or_default(),
        tags: save.tags.clone().unwrap_or_default(),
        current_version: 1,
        version_token: save.new_token.clone(),
        parent: None,
        created_at: save.at,
        updated_at: save.at,
        archived_at: None,
    })
}

/// The verifiers of the next version. Only the owner changes them.
async fn next_bindings(
    tx: &mut Tx<'_>,
    save: &WorkflowSave,
    target: Option<&ReachableWorkflow>,
) -> Result<Result<Vec<VerifierBinding>, WorkflowRefusal>> {
    let now = match target {
        Some(found) => bindings_of(tx, &found.workflow).await?,
        None => Vec::new(),
    };
    let Some(new) = &save.bindings else { return Ok(Ok(now)) };
    if target.is_some_and(|found| found.role != AccessRole::Owner) {
        let is_same = new.len() == now.len() && new.iter().all(|new| now.contains(&as_is(new)));
        return Ok(if is_same { Ok(now) } else { Err(WorkflowRefusal::BindingsAreOwners) });
    }
    let mut bindings = Vec::with_capacity(new.len());
    for (place, new) in new.iter().enumerate() {
        let found = resolved(tx, &save.caller, new).await?;
        bindings.push(tried!(
            found.ok_or(WorkflowRefusal::Field(WrongField::BindingUnknown { place }))
        ));
    }
    bindings.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Ok(bindings))
}

/// A requested binding in the form of a stored one, to compare them.
fn as_is(new: &NewBinding) -> VerifierBinding {
    let (VerifierSelector::Id(id)
    | VerifierSelector::Name(id)
    | VerifierSelector::System(id)
    | VerifierSelector::Of { name: id, .. }) = &new.verifier.which;
    VerifierBinding {
        name: new.name.clone(),
        verifier_id: id.clone(),
        version: new.verifier.version,
    }
}

async fn resolved(
    tx: &mut Tx<'_>,
    owner: &AccountId,
    new: &NewBinding,
) -> Result<Option<VerifierBinding>> {
    let (text, args) = match &new.verifier.which {
        VerifierSelector::Id(id) => (OWN_VERIFIER_BY_ID, args![owner, id]),
        VerifierSelector::Name(name) => (OWN_VERIFIER_BY_NAME, args![owner, name]),
        VerifierSelector::Of { owner: named, name } => {
            (OWN_VERIFIER_BY_FULL_NAME, args![owner, name, named.as_str()])
        }
        VerifierSelector::System(_) => return Ok(None),
    };
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "verifiers", "id")?;
        Ok((columns.text("id")?, columns.count::<u32>("current_version")?))
    };
    let found = tx.first(text, args, read).await?;
    let version = new.verifier.version;
    let found = found.filter(|(_, current)| version.is_none_or(|version| version <= *current));
    Ok(found.map(|(verifier_id, _)| VerifierBinding {
        name: new.name.clone(),
        verifier_id,
        version,
    }))
}

async fn files_now(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    workflow: &Workflow,
) -> Result<Vec<FileEntry>> {
    files_seen(tx, caller, (&workflow.id, workflow.current_version)).await
}

async fn current(
    tx: &mut Tx<'_>,
    caller: &AccountId,
    target: &ReachableWorkflow,
) -> Result<Result<WorkflowVersion, WorkflowRefusal>> {
    let which = jurat_core::workflow::WorkflowSelector::Id(target.workflow.id.clone());
    let asked = WorkflowLookup { caller: caller.clone(), which, version: None };
    Ok(match read::get(tx, &asked).await? {
        NameMatch::One(view) => Ok(view.version),
        NameMatch::Nothing | NameMatch::Elsewhere(_) => Err(WorkflowRefusal::NotFound),
    })
}

fn patched(
    old: &[FileEntry],
    new: Vec<FileEntry>,
    delete: &[String],
) -> Result<Vec<FileEntry>, WorkflowRefusal> {
    let has = |path: &String| old.iter().any(|file| file.path == *path);
    if let Some(path) = delete.iter().find(|path| !has(path)) {
        return Err(WorkflowRefusal::Field(WrongField::PathUnknown { path: path.clone() }));
    }
    let is_replaced = |file: &FileEntry| new.iter().any(|other| other.path == file.path);
    let stays = |file: &&FileEntry| !delete.contains(&file.path) && !is_replaced(file);
    let mut files: Vec<FileEntry> = old.iter().filter(stays).cloned().collect();
    files.extend(new);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Writes a workflow with its newest version.
pub(crate) async fn write(
    tx: &mut Tx<'_>,
    workflow: &Workflow,
    content: &VersionContent,
) -> Result<Result<(), WorkflowRefusal>> {
    tried!(files::within_limits(&content.files.entries));
    let tags = json(&workflow.tags)?;
    let index = index_of(workflow, &content.body);
    if workflow.current_version == 1 {
        add(tx, workflow, &tags, index).await?;
    } else {
        let args = args![
            &workflow.name,
            &workflow.description,
            &workflow.outcome,
            &tags,
            index.name,
            index.text,
            index.body,
            workflow.current_version,
            &workflow.version_token,
            workflow.updated_at,
            &workflow.account,
            &workflow.id
        ];
        tx.run(NEXT, args).await?;
    }
    let args = args![
        &workflow.account,
        &workflow.id,
        workflow.current_version,
        &workflow.name,
        &workflow.description,
        &workflow.outcome,
        &tags,
        &content.body,
        content.source.as_str(),
        bindings_text(&content.bindings)?,
        &content.created_by,
        workflow.updated_at
    ];
    tx.run(VERSION_ADD, args).await?;
    files::write(tx, workflow, &content.files).await?;
    bind(tx, workflow, &content.bindings).await?;
    Ok(Ok(()))
}

async fn add(tx: &mut Tx<'_>, workflow: &Workflow, tags: &str, index: SearchIndex) -> Result<()> {
    let parent = workflow.parent.as_ref();
    let args = args![
        &workflow.account,
        &workflow.id,
        &workflow.slug,
        &workflow.name,
        &workflow.description,
        &workflow.outcome,
        tags,
        index.name,
        index.text,
        index.body,
        workflow.current_version,
        &workflow.version_token,
        parent.map(|parent| parent.template_id.as_str()),
        parent.map(|parent| parent.version),
        workflow.created_at,
        workflow.updated_at
    ];
    tx.run(ADD, args).await.map(drop)
}

async fn bind(tx: &mut Tx<'_>, workflow: &Workflow, bindings: &[VerifierBinding]) -> Result<()> {
    tx.run(BINDINGS_REMOVE, args![&workflow.account, &workflow.id]).await?;
    for binding in bindings {
        let args = args![
            &workflow.account,
            &workflow.id,
            &binding.name,
            &binding.verifier_id,
            binding.version
        ];
        tx.run(BINDING_ADD, args).await?;
    }
    Ok(())
}

/// Adds a new workflow for another operation, such as a fork: its slug gets a number if it is
/// taken.
pub(crate) async fn add_new(
    tx: &mut Tx<'_>,
    mut workflow: Workflow,
    content: &VersionContent,
) -> Result<Result<Workflow, WorkflowRefusal>> {
    reach::lock(tx, &workflow.account).await?;
    let Some(slug) = Slug::of_name(&workflow.slug) else {
        return Ok(Err(WorkflowRefusal::Field(WrongField::NameMissing)));
    };
    for number in 2..MOST_NUMBERS {
        if reach::own_by_slug(tx, &workflow.account, &workflow.slug).await?.is_none() {
            tried!(write(tx, &workflow, content).await?);
            return Ok(Ok(workflow));
        }
        slug.numbered(number).as_str().clone_into(&mut workflow.slug);
    }
    Err(StoreError::conflict("all numbers of a slug are taken"))
}

/// Maximum number of workflows whose slugs differ only in their number.
const MOST_NUMBERS: u32 = 1_000;
