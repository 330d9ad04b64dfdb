//! The files of versions and their contents.

use const_format::concatcp;
use std::collections::BTreeMap;

use jurat_core::{
    id::AccountId,
    workflow::{
        AccessRole, ContentKind, FileContent, FileEntry, NewFile, ReachableWorkflow, Workflow,
        file::{ALL_FILES_BYTES, MOST_FILES, also_folder, digest},
        operation::WorkflowFileBytes,
    },
};

use super::{
    NameMatch, WorkflowFileSet, WorkflowFilesLookup, WorkflowRefusal, WrongField,
    reach::seen,
    rows::{FILE_COLUMNS, read_file},
    tried,
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, to_bigint},
        tx::{Tx, args},
    },
};

const CONTENT: &str = seen!(
    concatcp!(FILE_COLUMNS, ", workflow_blobs.content"),
    "join workflow_files on workflow_files.account_id = workflows.account_id \
     and workflow_files.workflow_id = workflows.id \
     join workflow_blobs on workflow_blobs.account_id = workflow_files.account_id \
     and workflow_blobs.sha256 = workflow_files.sha256",
    "and workflow_files.version = $3 \
     and reached.floor_version <= $3 \
     and workflow_files.path = $4"
);
const FILE_ADD: &str = "\
    insert into workflow_files (account_id, workflow_id, version, path, sha256, size_bytes, \
    is_executable, content_kind, purpose) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const BLOB_ADD: &str = "\
    insert into workflow_blobs (account_id, sha256, content, created_at) \
    values ($1, $2, $3, $4) on conflict (account_id, sha256) do nothing";
/// A content by its digest, among the files that the caller sees: all files of an owner, or those
/// of one workflow from a version on.
const KNOWN: &str = concatcp!(
    "select ",
    FILE_COLUMNS,
    " from workflow_files where account_id = $1 and sha256 = $2 \
     and (cast($3 as text) is null or workflow_id = $3) and version >= $4 limit 1"
);
const BLOBS_FORGET: &str = "\
    delete from workflow_blobs where account_id = $1 and not exists ( \
    select 1 from workflow_files where workflow_files.account_id = workflow_blobs.account_id \
    and workflow_files.sha256 = workflow_blobs.sha256)";

pub(super) async fn read(
    tx: &mut Tx<'_>,
    asked: &WorkflowFilesLookup,
) -> Result<NameMatch<WorkflowFileSet>> {
    let WorkflowFilesLookup { asked, paths } = asked;
    let reached = match super::read::find(tx, asked).await? {
        NameMatch::One(reached) => *reached,
        NameMatch::Nothing => return Ok(NameMatch::Nothing),
        NameMatch::Elsewhere(names) => return Ok(NameMatch::Elsewhere(names)),
    };
    let version = asked.version.unwrap_or(reached.workflow.current_version);
    let mut files = Vec::new();
    for path in paths {
        let args = args![&asked.caller, &reached.workflow.id, version, path];
        files.extend(tx.first(CONTENT, args, read_content).await?);
    }
    Ok(NameMatch::One(Box::new(WorkflowFileSet { reached, files })))
}

fn read_content(cells: &dyn DbRow) -> Result<WorkflowFileBytes> {
    let content = RowReader::new(cells, "workflow_blobs", "path")?.bytes("content")?;
    Ok(WorkflowFileBytes { entry: read_file(cells)?, content })
}

/// The files of a version, and the contents that may not be stored yet.
#[derive(Debug, Default)]
pub(crate) struct VersionFiles {
    pub(crate) entries: Vec<FileEntry>,
    /// By their digests.
    pub(crate) contents: BTreeMap<String, Vec<u8>>,
}

/// The files of the next version; `old` are the files of the previous version, if they are changed
/// one by one. A caller that names a content by its digest must be able to see it.
pub(super) async fn kept(
    tx: &mut Tx<'_>,
    target: Option<&ReachableWorkflow>,
    (owner, old): (&AccountId, &[FileEntry]),
    files: &[NewFile],
) -> Result<Result<VersionFiles, WorkflowRefusal>> {
    let mut kept = VersionFiles::default();
    for file in files {
        let entry = match &file.content {
            FileContent::Bytes(bytes) => {
                let entry = entry_of(bytes);
                kept.contents.insert(entry.sha256.clone(), bytes.clone());
                Some(entry)
            }
            FileContent::Known(sha256) => known(tx, target, owner, sha256).await?,
        };
        let before = old.iter().find(|before| before.path == file.path);
        let unknown =
            || WorkflowRefusal::Field(WrongField::ContentUnknown { path: file.path.clone() });
        let entry = tried!(entry.ok_or_else(unknown));
        kept.entries.push(FileEntry {
            path: file.path.clone(),
            is_executable: file
                .is_executable
                .unwrap_or_else(|| before.is_some_and(|before| before.is_executable)),
            purpose: file
                .purpose
                .clone()
                .unwrap_or_else(|| before.map(|before| before.purpose.clone()).unwrap_or_default()),
            ..entry
        });
    }
    Ok(Ok(kept))
}

/// The entry of a given content; its path is set later.
fn entry_of(bytes: &[u8]) -> FileEntry {
    FileEntry {
        path: String::new(),
        sha256: digest(bytes),
        size_bytes: bytes.len() as u64,
        is_executable: false,
        kind: ContentKind::of(bytes),
        purpose: String::new(),
    }
}

/// The entry of a content known by its digest; its path is set later.
async fn known(
    tx: &mut Tx<'_>,
    target: Option<&ReachableWorkflow>,
    owner: &AccountId,
    sha256: &str,
) -> Result<Option<FileEntry>> {
    let others = target.filter(|it| it.role != AccessRole::Owner);
    let floor = others.map_or(0, |it| it.floor);
    let within = others.map(|it| it.workflow.id.as_str());
    tx.first(KNOWN, args![owner, sha256, within, floor], read_file).await
}

/// Checks that the files of a version are not too many or too large together.
pub(super) fn within_limits(files: &[FileEntry]) -> Result<(), WorkflowRefusal> {
    if files.len() > MOST_FILES {
        return Err(WorkflowRefusal::Field(WrongField::TooManyFiles));
    }
    if let Some(path) = also_folder(files.iter().map(|file| file.path.as_str())) {
        return Err(WorkflowRefusal::Field(WrongField::PathIsFolder { path: path.to_owned() }));
    }
    let bytes: u64 = files.iter().map(|file| file.size_bytes).sum();
    if bytes > ALL_FILES_BYTES {
        Err(WorkflowRefusal::Field(WrongField::FilesTooLarge))
    } else {
        Ok(())
    }
}

/// Writes the files of a version before their contents: PostgreSQL lets the users of a shared
/// workflow store contents only for files that are in it.
pub(super) async fn write(tx: &mut Tx<'_>, workflow: &Workflow, kept: &VersionFiles) -> Result<()> {
    for file in &kept.entries {
        let args = args![
            &workflow.account,
            &workflow.id,
            workflow.current_version,
            &file.path,
            &file.sha256,
            to_bigint(file.size_bytes),
            file.is_executable,
            file.kind.as_str(),
            &file.purpose
        ];
        tx.run(FILE_ADD, args).await?;
    }
    for (sha256, content) in &kept.contents {
        let args = args![&workflow.account, sha256, content.clone(), workflow.updated_at];
        tx.run(BLOB_ADD, args).await?;
    }
    Ok(())
}

/// Erases the contents that no file of the account uses any more.
pub(super) async fn forget(tx: &mut Tx<'_>, owner: &AccountId) -> Result<()> {
    tx.run(BLOBS_FORGET, args![owner]).await.map(drop)
}

/// The difference between the files of two versions: changed paths, then deleted ones.
pub(super) fn differences(old: &[FileEntry], new: &[FileEntry]) -> (Vec<String>, Vec<String>) {
    let before: BTreeMap<&str, &FileEntry> =
        old.iter().map(|file| (file.path.as_str(), file)).collect();
    let after: BTreeMap<&str, &FileEntry> =
        new.iter().map(|file| (file.path.as_str(), file)).collect();
    let changed = after.iter().filter(|(path, file)| before.get(*path) != Some(file));
    let deleted = before.keys().filter(|path| !after.contains_key(*path));
    let changed = changed.map(|(path, _)| (*path).to_owned()).collect();
    (changed, deleted.map(|path| (*path).to_owned()).collect())
}
