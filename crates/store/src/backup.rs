//! Backups of a SQLite store: written while a server writes, verified, and restored.
//!
//! A backup is a folder with a copy of the database, the keys of the state folder, and a manifest
//! that describes them. These functions block; async callers run them on a thread of their own.

mod contents;
mod error;
mod files;
mod manifest;
mod restore;
mod verify;
mod write;

use std::{ops::ControlFlow, path::Path};

pub use self::{
    error::BackupError,
    manifest::{FileRecord, Manifest},
    restore::{RestoreTarget, check_free},
    verify::{VerifiedBackup, verify},
    write::{BackupSource, write},
};

/// The name of the database in a backup, whatever the store is called.
pub const DATABASE: &str = "jurat.db";
/// The keys, which have the same names in the state folder.
pub const KEYS: [&str; 2] = ["node.key", "admin.key"];

type Result<T, E = BackupError> = std::result::Result<T, E>;

/// The progress of a backup, a verification or a restore. The watcher may stop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    pub stage: BackupStage,
    pub done: u64,
    /// In the unit of the stage: pages, bytes or entries.
    pub total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupStage {
    Copying,
    Checksums,
    /// SQLite checks its file, without reporting progress.
    Integrity,
    Entries,
}

/// Called repeatedly; after `Break` the work ends with [`BackupError::Stopped`].
pub type BackupWatcher<'a> = &'a mut dyn FnMut(BackupProgress) -> ControlFlow<()>;

fn tell(watch: BackupWatcher<'_>, stage: BackupStage, done: u64, total: u64) -> Result<()> {
    match watch(BackupProgress { stage, done, total }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(BackupError::Stopped),
    }
}

/// Opens a database that no process writes to. SQLite then creates no files next to it and reads
/// none, such as the write-ahead log of another database of the same name.
fn open_still(path: &Path) -> rusqlite::Result<rusqlite::Connection> {
    use rusqlite::OpenFlags;
    let address = format!("file:{}?immutable=1", files::encoded(path));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    rusqlite::Connection::open_with_flags(address, flags)
}
