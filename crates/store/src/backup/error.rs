//! The reasons why a backup cannot be written, verified or restored.

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("cannot use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("SQLite cannot use `{}`", path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    #[error("`{}` already exists, and a backup overwrites nothing; name a new folder", path.display())]
    Taken { path: PathBuf },
    #[error(
        "`{}` contains no store; name the one to back up with `--state-dir` or `--store`", path.display()
    )]
    NoStore { path: PathBuf },
    #[error(
        "there is no `{}`, which a complete backup needs; name the state folder of the server with `--state-dir`", path.display()
    )]
    NoKey { path: PathBuf },
    #[error("stopped; nothing is left behind")]
    Stopped,
    #[error(
        "`{}` does not exist; the folder is not a backup, or the backup was not finished", path.display()
    )]
    NoManifest { path: PathBuf },
    #[error("`{}` is not a manifest that this program can read: {why}", path.display())]
    Manifest { path: PathBuf, why: String },
    #[error("`{file}` of the backup is damaged: {why}; use another backup")]
    Damaged { file: String, why: String },
    #[error("{what} in the database: {why}; use another backup")]
    Contents { what: String, why: String },
    #[error(
        "the backup has schema version {found}, but this program knows versions up to {known}; use the program that wrote it, which is version {program}, or a newer one"
    )]
    SchemaNew { found: i64, known: i64, program: String },
    #[error(
        "`{}` already exists, and a restore overwrites no store; name an empty `--state-dir`, or move the store and the files that begin with its name", path.display()
    )]
    StoreThere { path: PathBuf },
    #[error(
        "`{}` already exists and differs from the key in the backup; move it, or name an empty `--state-dir`", path.display()
    )]
    KeyThere { path: PathBuf },
}

impl BackupError {
    pub(super) fn damaged(file: &str, why: impl Into<String>) -> Self {
        Self::Damaged { file: file.to_owned(), why: why.into() }
    }
}
