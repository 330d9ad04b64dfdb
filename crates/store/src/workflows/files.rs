//! The files of versions, and what is in them.

use std::collections::BTreeMap;

use jurat_core::{
    id::AccountId,
    time::Timestamp,
    workflow::{
        ContentKind, FileContent, FileEntry, NewFile, Reached, Role,
        file::{ALL_FILES_BYTES, MOST_FILES, digest},
    },
};

use super::{
    FileRead, FilesAsked, Found, WorkflowRefused,
    reach::seen,
    rows::{file_columns, read_file},
    tried,
};
use crate::{
    Result,
    both::{Tx, args},
    rows::{Cells, Columns, to_bigint},
};

const CONTENT: &str = seen!(
    concat!(file_columns!(), ", workflow_blobs.content"),
    "join workflow_files on workflow_files.account_id = workflows.account_id \
     and workflow_files.workflow_id = workflows.id \
     join workflow_blobs on workflow_blobs.account_id = workflow_files.account_id \
     and workflow_blobs.sha256 = workflow_files.sha256",
    "and workflow_files.version = $3 \
     and (workflows.account_id = $1 or granted.floor_version <= $3) \
     and workflow_files.path = $4"
);
const FILE_ADD: &str = "\
    insert into workflow_files (account_id, workflow_id, version, path, sha256, size_bytes, \
    is_executable, content_kind, purpose) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const BLOB_ADD: &str = "\
    insert into workflow_blobs (account_id, sha256, content, created_at) \
    values ($1, $2, $3, $4) on conflict (account_id, sha256) do nothing";
/// A content by its digest, in the files that somebody sees: all of an owner, or those of one
/// workflow from a version on.
const KNOWN: &str = concat!(
    "select ",
    file_columns!(),
    " from workflow_files where account_id = $1 and sha256 = $2 \
     and (cast($3 as text) is null or workflow_id = $3) and version >= $4 limit 1"
);
const BLOBS_FORGET: &str = "\
    delete from workflow_blobs where account_id = $1 and not exists ( \
    select 1 from workflow_files where workflow_files.account_id = workflow_blobs.account_id \
    and workflow_files.sha256 = workflow_blobs.sha256)";

pub(super) async fn read(tx: &mut impl Tx, asked: &FilesAsked) -> Result<Found<Vec<FileRead>>> {
    let FilesAsked { asked, paths } = asked;
    let reached = match super::read::find(tx, asked).await? {
        Found::One(reached) => reached,
        Found::Nothing => return Ok(Found::Nothing),
        Found::Ambiguous => return Ok(Found::Ambiguous),
    };
    let version = asked.version.unwrap_or(reached.workflow.current_version);
    let mut files = Vec::new();
    for path in paths {
        let args = args![&asked.caller, &reached.workflow.id, version, path];
        files.extend(tx.first(CONTENT, args, read_content).await?);
    }
    Ok(Found::One(Box::new(files)))
}

fn read_content(cells: &dyn Cells) -> Result<FileRead> {
    let content = Columns::new(&cells, "workflow_blobs", "path")?.bytes("content")?;
    Ok(FileRead { entry: read_file(cells)?, content })
}

/// The files of the next version, with their contents kept. Whose content is known by its digest
/// must be able to see it.
pub(super) async fn kept(
    tx: &mut impl Tx,
    target: Option<&Reached>,
    (owner, at): (&AccountId, Timestamp),
    files: &[NewFile],
) -> Result<Result<Vec<FileEntry>, WorkflowRefused>> {
    let mut entries = Vec::with_capacity(files.len());
    for file in files {
        let entry = match &file.content {
            FileContent::Bytes(bytes) => Some(add(tx, (owner, at), file, bytes).await?),
            FileContent::Known(sha256) => known(tx, target, owner, (file, sha256)).await?,
        };
        let unknown = || WorkflowRefused::ContentUnknown { path: file.path.clone() };
        entries.push(tried!(entry.ok_or_else(unknown)));
    }
    Ok(Ok(entries))
}

async fn add(
    tx: &mut impl Tx,
    (owner, at): (&AccountId, Timestamp),
    file: &NewFile,
    bytes: &[u8],
) -> Result<FileEntry> {
    let sha256 = digest(bytes);
    tx.run(BLOB_ADD, args![owner, &sha256, bytes.to_vec(), at]).await?;
    Ok(FileEntry {
        path: file.path.clone(),
        sha256,
        size_bytes: bytes.len() as u64,
        is_executable: file.is_executable,
        kind: ContentKind::of(bytes),
        purpose: file.purpose.clone(),
    })
}

async fn known(
    tx: &mut impl Tx,
    target: Option<&Reached>,
    owner: &AccountId,
    (file, sha256): (&NewFile, &str),
) -> Result<Option<FileEntry>> {
    let others = target.filter(|it| it.role != Role::Owner);
    let floor = others.map_or(0, |it| it.floor);
    let within = others.map(|it| it.workflow.id.as_str());
    let found = tx.first(KNOWN, args![owner, sha256, within, floor], read_file).await?;
    Ok(found.map(|found| FileEntry {
        path: file.path.clone(),
        is_executable: file.is_executable,
        purpose: file.purpose.clone(),
        ..found
    }))
}

/// Whether the files of a version are not too many and not too large together.
pub(super) fn within_bounds(files: &[FileEntry]) -> Result<(), WorkflowRefused> {
    if files.len() > MOST_FILES {
        return Err(WorkflowRefused::TooManyFiles);
    }
    let bytes: u64 = files.iter().map(|file| file.size_bytes).sum();
    if bytes > ALL_FILES_BYTES { Err(WorkflowRefused::FilesTooLarge) } else { Ok(()) }
}

pub(super) async fn write(
    tx: &mut impl Tx,
    owner: &AccountId,
    (id, version): (&str, u32),
    files: &[FileEntry],
) -> Result<()> {
    for file in files {
        let args = args![
            owner,
            id,
            version,
            &file.path,
            &file.sha256,
            to_bigint(file.size_bytes),
            file.is_executable,
            file.kind.as_str(),
            &file.purpose
        ];
        tx.run(FILE_ADD, args).await?;
    }
    Ok(())
}

/// Erases the contents that no file of the account has any more.
pub(super) async fn forget(tx: &mut impl Tx, owner: &AccountId) -> Result<()> {
    tx.run(BLOBS_FORGET, args![owner]).await.map(drop)
}

/// What differs between the files of two versions: changed paths, then deleted ones.
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
