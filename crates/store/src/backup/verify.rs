//! Verifies a backup: its manifest, its files, its database and every decision in it.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{BackupError, BackupWatcher, DATABASE, Manifest, Result, contents, files};
use crate::db::migrations;

/// A verified backup, the only kind that can be restored.
#[derive(Debug)]
pub struct VerifiedBackup {
    pub(super) folder: PathBuf,
    pub manifest: Manifest,
}

/// Checks everything that can be checked without the original store.
pub fn verify(folder: &Path, watch: BackupWatcher<'_>) -> Result<VerifiedBackup> {
    let manifest = Manifest::read(folder)?;
    check_schema(&manifest)?;
    for expected in &manifest.files {
        let found = match files::record(folder, &expected.name, watch) {
            Err(BackupError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(BackupError::damaged(&expected.name, "it is missing"));
            }
            found => found?,
        };
        if found.size_bytes != expected.size_bytes {
            let (found, expected_bytes) = (found.size_bytes, expected.size_bytes);
            let why = format!("it has {found} bytes instead of {expected_bytes}");
            return Err(BackupError::damaged(&expected.name, why));
        }
        if found.sha256 != expected.sha256 {
            return Err(BackupError::damaged(&expected.name, "its checksum is wrong"));
        }
    }
    contents::check(&folder.join(DATABASE), &manifest.counts(), watch)?;
    Ok(VerifiedBackup { folder: folder.to_owned(), manifest })
}

/// An older schema is migrated when the store is opened; a newer one cannot be read.
fn check_schema(manifest: &Manifest) -> Result<()> {
    let (found, known) = (manifest.schema_version, migrations::NEWEST_SERVED);
    if found <= known {
        return Ok(());
    }
    Err(BackupError::SchemaNew { found, known, program: manifest.program_version.clone() })
}
