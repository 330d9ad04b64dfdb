//! Archives, unarchives and deletes workflows.

use jurat_core::{
    account::team::InvitationKind,
    time::Timestamp,
    workflow::{AccessRole, Workflow},
};

use super::{WorkflowChange, WorkflowRefusal, files, reach::held, tried};
use crate::{
    Result,
    db::tx::{Tx, args},
    ops::invitations::cancel_all,
};

const ARCHIVE: &str = "update workflows set archived_at = $1 where account_id = $2 and id = $3";
const VERSION_DELETE: &str = "\
    delete from workflow_versions where account_id = $1 and workflow_id = $2 and version = $3";
const VERSION_FILES_DELETE: &str = "\
    delete from workflow_files where account_id = $1 and workflow_id = $2 and version = $3";
/// Everything that is deleted with a workflow.
const DELETIONS: [&str; 6] = [
    "delete from workflow_grants where account_id = $1 and workflow_id = $2",
    "delete from named_grants where account_id = $1 and workflow_id = $2",
    "delete from workflow_bindings where account_id = $1 and workflow_id = $2",
    "delete from workflow_files where account_id = $1 and workflow_id = $2",
    "delete from workflow_versions where account_id = $1 and workflow_id = $2",
    "delete from workflows where account_id = $1 and id = $2",
];
pub(super) async fn archive(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
) -> Result<Result<Workflow, WorkflowRefusal>> {
    set_archived(tx, change, Some(change.at)).await
}

pub(super) async fn unarchive(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
) -> Result<Result<Workflow, WorkflowRefusal>> {
    set_archived(tx, change, None).await
}

async fn set_archived(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
    at: Option<Timestamp>,
) -> Result<Result<Workflow, WorkflowRefusal>> {
    let mut workflow = tried!(owned(tx, change).await?);
    if at.is_none() || workflow.archived_at.is_none() {
        tx.run(ARCHIVE, args![at, &workflow.account, &workflow.id]).await?;
        workflow.archived_at = at;
    }
    Ok(Ok(workflow))
}

pub(super) async fn delete(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
) -> Result<Result<Workflow, WorkflowRefusal>> {
    let workflow = tried!(owned(tx, change).await?);
    for text in DELETIONS {
        tx.run(text, args![&workflow.account, &workflow.id]).await?;
    }
    cancel_all(tx, &workflow.id, Some(InvitationKind::WorkflowOwnership), change.at).await?;
    files::forget(tx, &workflow.account).await?;
    Ok(Ok(workflow))
}

pub(super) async fn delete_version(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
) -> Result<Result<Workflow, WorkflowRefusal>> {
    let workflow = tried!(owned(tx, change).await?);
    let version = change.version.unwrap_or(workflow.current_version);
    if version == workflow.current_version {
        return Ok(Err(WorkflowRefusal::VersionIsCurrent));
    }
    let place = || args![&workflow.account, &workflow.id, version];
    if tx.run(VERSION_DELETE, place()).await? == 0 {
        return Ok(Err(WorkflowRefusal::NotFound));
    }
    tx.run(VERSION_FILES_DELETE, place()).await?;
    files::forget(tx, &workflow.account).await?;
    Ok(Ok(workflow))
}

async fn owned(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
) -> Result<Result<Workflow, WorkflowRefusal>> {
    let found = held(tx, &change.caller, &change.which, AccessRole::Owner).await?;
    Ok(found.map(|found| found.workflow))
}
