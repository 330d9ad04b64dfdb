//! Connections with the settings that durability needs, and the migrations.

use std::{fs::OpenOptions, os::unix::fs::OpenOptionsExt as _, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags};

use crate::{Result, StoreError, db::migrations};

/// How long a connection waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Larger than the number of statements, so that none is compiled twice.
const STATEMENTS: usize = 512;
/// The size of the writer's cache, which makes reads from disk rare.
const CACHE_KIB: i64 = 64 * 1024;
/// The write-ahead log shrinks to this after a checkpoint.
const LOG_LIMIT_BYTES: i64 = 64 * 1024 * 1024;

/// The connection of the writer.
pub(super) fn open_file(path: &Path) -> Result<Connection> {
    // SQLite gives its other files the mode of this one.
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(StoreError::unavailable)?;
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A weaker setting could lose acknowledged writes in a power failure.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT_BYTES)?;
    // A negative number is KiB, a positive one pages.
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    migrate(&mut connection)?;
    Ok(connection)
}

pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    Ok(connect_reader(path)?)
}

pub(crate) fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&connection)?;
    Ok(connection)
}

/// Whether the file contains no table. The check writes nothing to the file.
pub(crate) fn is_blank(path: &Path) -> rusqlite::Result<bool> {
    let connection = connect_reader(path)?;
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

pub(crate) fn open_memory() -> Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    prepare(&connection)?;
    connection.pragma_update(None, "synchronous", "off")?;
    migrate(&mut connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "foreign_keys", "on")?;
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<()> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut found: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for migration in migrations::ALL.iter().filter(|migration| found < migration.version) {
        tx.execute_batch(migration.sqlite)?;
    }
    found = found.max(migrations::NEEDED);
    migrations::check_served(found).map_err(StoreError::unavailable)?;
    tx.pragma_update(None, "user_version", found)?;
    tx.commit()?;
    Ok(())
}

/// SQLite's plan for a statement: one line for each table or index that it reads.
#[cfg(test)]
pub(crate) fn plan(text: &str) -> Vec<String> {
    let connection = open_memory().unwrap();
    let mut statement = connection.prepare(&format!("explain query plan {text}")).unwrap();
    let lines = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
    let reads = |line: &String| line.starts_with("SEARCH ") || line.starts_with("SCAN ");
    lines.map(std::result::Result::unwrap).filter(reads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_syncs_each_commit_and_checks_references() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_file(&folder.path().join("store.db")).unwrap();
        let number =
            |name| -> i64 { connection.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
        let mode: String =
            connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        assert_eq!(number("synchronous"), 2, "2 is `full`");
        assert_eq!(number("foreign_keys"), 1);
        assert_eq!(number("user_version"), migrations::NEEDED);
    }
}
