//! Forks: private workflows made from a published version, with verifiers of their own.

use std::collections::BTreeSet;

use jurat_core::{
    id::AccountId,
    verifier::{NAME_CHARS, Verifier, VerifierStanding},
    workflow::{
        ForkOrigin, VerifierBinding, VersionSource, Workflow,
        template::{ForkedWorkflow, free_name},
    },
};

use super::{ForkRefusal, ForkedVerifier, TemplateFork};
use crate::{
    Result, WorkflowRefusal,
    db::{
        row::{DbRow, RowReader, json as text_of},
        tx::{Tx, args},
    },
    ops::{
        verifiers::rows::{VERIFIER_ADD, VERSION_ADD},
        workflows::{VersionContent, VersionFiles, add_new},
    },
};

const SEEN: &str = "\
    select templates.id from templates join template_versions \
    on template_versions.template_id = templates.id \
    where templates.id = $1 and template_versions.version = $2 \
    and (templates.account_id = $3 \
    or (templates.archived_at is null and template_versions.unpublished_at is null))";
const NAMES: &str = "select name from verifiers where account_id = $1";
const BLOBS_ADD: &str = "\
    insert into workflow_blobs (account_id, sha256, content, created_at) \
    select $1, files.sha256, files.content, $2 from template_files as files \
    where files.template_id = $3 and files.version = $4 and files.path = ( \
    select min(others.path) from template_files as others where others.template_id = $3 \
    and others.version = $4 and others.sha256 = files.sha256) \
    on conflict (account_id, sha256) do nothing";
const FILES_ADD: &str = "\
    insert into workflow_files (account_id, workflow_id, version, path, sha256, size_bytes, \
    is_executable, content_kind, purpose) \
    select $1, $2, 1, path, sha256, size_bytes, is_executable, content_kind, purpose \
    from template_files where template_id = $3 and version = $4";

pub(super) async fn fork(
    tx: &mut Tx<'_>,
    fork: &TemplateFork,
) -> Result<Result<ForkedWorkflow, ForkRefusal>> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "templates", "id")?.text("id");
    let seen = args![&fork.template_id, fork.version, &fork.account];
    if tx.first(SEEN, seen, read).await?.is_none() {
        return Ok(Err(ForkRefusal::Unknown));
    }
    // Makes other forks of the account wait while the names of verifiers are chosen.
    tx.lock(&format!("workflows of {}", fork.account)).await?;
    let mut taken = names(tx, NAMES, &fork.account).await?;
    for verifier in &fork.verifiers {
        let Some(name) = free_name(&verifier.name, NAME_CHARS, |name| taken.contains(name)) else {
            return Ok(Err(ForkRefusal::NoNameLeft(verifier.name.clone())));
        };
        deploy(tx, fork, verifier, &name).await?;
        taken.insert(name);
    }
    let saved = match save(tx, fork).await? {
        Ok(saved) => saved,
        Err(refused) => return Ok(Err(ForkRefusal::Workflow(refused))),
    };
    let verifiers = fork.verifiers.iter().map(|it| (it.binding.clone(), it.id.clone()));
    Ok(Ok(ForkedWorkflow {
        workflow_id: fork.workflow_id.clone(),
        slug: saved.slug,
        name: fork.name.clone(),
        version_token: fork.workflow_token.clone(),
        template_id: fork.template_id.clone(),
        template_version: fork.version,
        verifiers: verifiers.collect(),
        notes: fork.notes.clone(),
    }))
}

async fn names(
    tx: &mut Tx<'_>,
    text: &'static str,
    account: &AccountId,
) -> Result<BTreeSet<String>> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "names", "name")?.text("name");
    Ok(tx.all(text, args![account], read).await?.into_iter().collect())
}

async fn deploy(
    tx: &mut Tx<'_>,
    fork: &TemplateFork,
    forked: &ForkedVerifier,
    name: &str,
) -> Result<()> {
    let (account, at) = (&fork.account, fork.at);
    let verifier = Verifier {
        account: account.clone(),
        id: forked.id.clone(),
        name: name.to_owned(),
        description: forked.description.clone(),
        current_version: 1,
        version_token: forked.token.clone(),
        standing: VerifierStanding::Active,
        created_at: at,
        updated_at: at,
    };
    let args = args![
        account,
        &verifier.id,
        name,
        &verifier.description,
        verifier.current_version,
        &verifier.version_token,
        verifier.standing.as_str(),
        at,
        at
    ];
    tx.run(VERIFIER_ADD, args).await?;
    let config = text_of(&forked.config.document())?;
    let args = args![
        account,
        &verifier.id,
        verifier.current_version,
        &verifier.description,
        config,
        forked.config.hash(),
        at
    ];
    tx.run(VERSION_ADD, args).await.map(drop)
}

async fn save(tx: &mut Tx<'_>, fork: &TemplateFork) -> Result<Result<Workflow, WorkflowRefusal>> {
    let (account, id, summary) = (&fork.account, &fork.workflow_id, &fork.summary);
    let workflow = Workflow {
        account: account.clone(),
        id: id.clone(),
        slug: fork.slug.clone(),
        name: fork.name.clone(),
        description: summary.description.clone(),
        outcome: summary.outcome.clone(),
        tags: summary.tags.clone(),
        current_version: 1,
        version_token: fork.workflow_token.clone(),
        parent: Some(ForkOrigin { template_id: fork.template_id.clone(), version: fork.version }),
        created_at: fork.at,
        updated_at: fork.at,
        archived_at: None,
    };
    let bindings = fork.verifiers.iter().map(|it| VerifierBinding {
        name: it.binding.clone(),
        verifier_id: it.id.clone(),
        version: None,
    });
    let content = VersionContent {
        body: fork.body.clone(),
        source: VersionSource::Fork,
        bindings: bindings.collect(),
        files: VersionFiles::default(),
        created_by: account.clone(),
    };
    let saved = match add_new(tx, workflow, &content).await? {
        Ok(saved) => saved,
        Err(refused) => return Ok(Err(refused)),
    };
    tx.run(BLOBS_ADD, args![account, fork.at, &fork.template_id, fork.version]).await?;
    tx.run(FILES_ADD, args![account, id, &fork.template_id, fork.version]).await?;
    Ok(Ok(saved))
}
