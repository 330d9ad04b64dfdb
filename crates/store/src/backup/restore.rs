//! Restores a verified backup to a location without a store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{
    BackupError, BackupWatcher, DATABASE, FileRecord, KEYS, Result, VerifiedBackup, files,
};

/// The target of a restore. Both folders exist already.
#[derive(Debug, Clone, Copy)]
pub struct RestoreTarget<'a> {
    pub database: &'a Path,
    /// The state folder, which gets the keys.
    pub keys: &'a Path,
}

/// Refuses a location with a store or its leftovers: SQLite would use the log of another database
/// of the same name.
pub fn check_free(place: RestoreTarget<'_>) -> Result<()> {
    for suffix in ["", "-wal", "-journal"] {
        let mut path = place.database.as_os_str().to_owned();
        path.push(suffix);
        let path = PathBuf::from(path);
        // A read-only command may have created an empty file.
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file() || 0 < found.len()) {
            return Err(BackupError::StoreThere { path });
        }
    }
    Ok(())
}

impl VerifiedBackup {
    /// Copies the files, the database last: until then there is no store. The caller holds the lock
    /// of the location.
    pub fn restore(&self, place: RestoreTarget<'_>, watch: BackupWatcher<'_>) -> Result<()> {
        check_free(place)?;
        let mut staged = Vec::new();
        for key in KEYS {
            let target = place.keys.join(key);
            if self.has_key(key, &target)? {
                continue;
            }
            staged.push((self.staged(key, &target, watch)?, target));
        }
        let database = self.staged(DATABASE, place.database, watch)?;
        let mut placed: Vec<PathBuf> = Vec::new();
        for (file, target) in staged {
            if let Err(error) = file.persist_noclobber(&target) {
                undo(&placed);
                return Err(BackupError::Io { path: target, source: error.error });
            }
            placed.push(target);
        }
        if let Err(error) = database.persist(place.database) {
            undo(&placed);
            let path = place.database.to_owned();
            return Err(BackupError::Io { path, source: error.error });
        }
        files::sync(place.keys)?;
        files::sync(&files::parent(place.database))
    }

    /// Whether the location already has the same key; another key is not overwritten.
    fn has_key(&self, key: &str, target: &Path) -> Result<bool> {
        if !files::is_there(target) {
            return Ok(false);
        }
        let there = fs::read(target).map_err(files::wrong(target))?;
        let ours = self.folder.join(key);
        let ours = fs::read(&ours).map_err(files::wrong(&ours))?;
        if there.trim_ascii() == ours.trim_ascii() {
            return Ok(true);
        }
        Err(BackupError::KeyThere { path: target.to_owned() })
    }

    /// A synced copy next to its target, compared again with the manifest.
    fn staged(&self, name: &str, target: &Path, watch: BackupWatcher<'_>) -> Result<NamedTempFile> {
        let folder = files::parent(target);
        // Only the owner can read such a file.
        let mut file = NamedTempFile::new_in(&folder).map_err(files::wrong(&folder))?;
        let copied = files::copied(&self.folder.join(name), name, file.as_file_mut(), watch)?;
        let expected: Option<&FileRecord> =
            self.manifest.files.iter().find(|file| file.name == name);
        if expected != Some(&copied) {
            return Err(BackupError::damaged(name, "it changed while it was read"));
        }
        file.as_file().sync_all().map_err(files::wrong(file.path()))?;
        Ok(file)
    }
}

/// Removes the keys again if the store could not be restored.
fn undo(placed: &[PathBuf]) {
    for path in placed {
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                file.path = %path.display(),
                "could not remove a key of a failed restore"
            );
        }
    }
}
