//! The errors of the store. A missing row is not an error.

use std::{error::Error, fmt};

type ErrorSource = Box<dyn Error + Send + Sync>;

#[derive(Debug)]
pub struct StoreError {
    pub kind: StoreErrorKind,
    source: Option<ErrorSource>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The database cannot be reached, cannot write, or is unsuitable for this program. A write
    /// that fails this way was not acknowledged.
    Unavailable,
    /// The write contradicts the stored data.
    Conflict,
    /// A row cannot be read back.
    Corrupt { table: &'static str, column: &'static str, row: String },
}

impl StoreError {
    pub(crate) fn unavailable(source: impl Into<ErrorSource>) -> Self {
        Self { kind: StoreErrorKind::Unavailable, source: Some(source.into()) }
    }

    /// Whether the database role lacks a right, such as the right to create tables.
    pub fn is_denied(&self) -> bool {
        let source = self.source.as_ref().and_then(|source| source.downcast_ref::<sqlx::Error>());
        let code = source.and_then(|error| error.as_database_error()?.code());
        // PostgreSQL reports a missing schema to a role that has no rights on the schema.
        code.is_some_and(|code| ["42501", "3F000"].contains(&&*code))
    }

    pub(crate) fn conflict(source: impl Into<ErrorSource>) -> Self {
        Self { kind: StoreErrorKind::Conflict, source: Some(source.into()) }
    }

    pub(crate) fn corrupt(
        (table, column): (&'static str, &'static str),
        row: &str,
        source: impl Into<ErrorSource>,
    ) -> Self {
        let kind = StoreErrorKind::Corrupt { table, column, row: row.to_owned() };
        Self { kind, source: Some(source.into()) }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StoreErrorKind::Unavailable => f.write_str("the store is unavailable"),
            StoreErrorKind::Conflict => f.write_str("the write contradicts what is stored"),
            StoreErrorKind::Corrupt { table, column, row } => {
                write!(f, "column `{column}` of row `{row}` in table `{table}` is corrupt")
            }
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// The reason why the store is unavailable, other than an error of the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DatabaseRefusal {
    #[error(
        "the database has schema version {found}, but this program needs {needed}; start `jurat serve` with `--migrate-url`, the URL for the role that owns the tables"
    )]
    SchemaOld { found: i64, needed: i64 },
    #[error(
        "the database has schema version {found}, but this program knows versions up to {known}; use a newer program"
    )]
    SchemaNew { found: i64, known: i64 },
    #[error("migration `{name}` was applied in a different form than this program's")]
    MigrationChanged { name: String },
    #[error("the store is closed")]
    Closed,
    #[error("the disk did not confirm an earlier write; no writes are accepted until a restart")]
    DiskUnsure,
    #[error("the database rolled back a group of writes because one of them failed")]
    Undone,
    #[error("the work failed because of a bug and was rolled back")]
    Panicked,
    #[error("the database accepts no writes")]
    ReadOnly,
    #[error(
        "the role `{role}` {why}, so row security would not apply to it; serve with a separate role, and pass the owner's to `jurat serve` with `--migrate-url`"
    )]
    RoleTooStrong { role: String, why: &'static str },
}
