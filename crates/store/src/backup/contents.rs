//! Reads the contents of a copied database: its counts, and whether every decision is intact.

use std::path::Path;

use jurat_core::canonical::digest;
use rusqlite::{Connection, OptionalExtension as _};
use serde::Deserialize;

use super::{
    BackupError, BackupStage, BackupWatcher, DATABASE, Result, manifest::Counts, open_still, tell,
};

/// The number of entries to read between two calls of the watcher.
const CHUNK_ROWS: u64 = 10_000;

/// Each query finds one round that breaks a rule, and its text describes the violation. The queries
/// use only columns of the first schema, because a backup may be older than the program.
const RULES: [(&str, &str); 3] = [
    (
        "it has ended, but its decision entry is missing or different",
        "select rounds.id from rounds left join entries \
         on entries.account_id = rounds.account_id and entries.round_id = rounds.id \
         where rounds.state <> 'open' and \
         (rounds.receipt_id is null or rounds.receipt_id is not entries.receipt_id) limit 1",
    ),
    (
        "it has a decision entry but has not ended",
        "select entries.round_id from entries left join rounds \
         on rounds.account_id = entries.account_id and rounds.id = entries.round_id \
         where rounds.id is null or rounds.state = 'open' limit 1",
    ),
    (
        "it has ended, but the number of recorded replicas is wrong",
        "select rounds.id from rounds where rounds.state <> 'open' and \
         json_array_length(rounds.seats) <> (select count(*) from replicas \
         where replicas.account_id = rounds.account_id and replicas.round_id = rounds.id) limit 1",
    ),
];

/// The first schema with a ledger.
const WITH_LEDGER: i64 = 3;

/// The owner of an entry, according to the entry itself.
#[derive(Deserialize)]
struct EntryOwner<'a> {
    account_id: &'a str,
    round_id: &'a str,
}

/// Checks a closed database from its pages to its entries.
pub(super) fn check(path: &Path, expected: &Counts, watch: BackupWatcher<'_>) -> Result<()> {
    let connection = open_still(path).map_err(|error| unreadable(&error))?;
    integrity(&connection, watch)?;
    let found = counts(&connection).map_err(|error| unreadable(&error))?;
    if found != *expected {
        let why = format!("it contains {found:?}, but the manifest says {expected:?}");
        return Err(BackupError::damaged(DATABASE, why));
    }
    entries(&connection, found.entries, watch)?;
    for (why, sql) in RULES {
        let round: Option<String> = connection
            .query_row(sql, [], |row| row.get(0))
            .optional()
            .map_err(|error| unreadable(&error))?;
        if let Some(round) = round {
            return Err(broken(&round, why));
        }
    }
    if found.schema_version < WITH_LEDGER { Ok(()) } else { ledger(&connection) }
}

/// Checks that every balance is the sum of its lines, and that the holds of rounds are in the
/// ledger.
fn ledger(connection: &Connection) -> Result<()> {
    for (why, sql) in crate::ops::ledger::RULES {
        let what: Option<String> = connection
            .query_row(sql, [1], |row| row.get(0))
            .optional()
            .map_err(|error| unreadable(&error))?;
        if let Some(what) = what {
            let what = format!("the ledger of `{what}`");
            return Err(BackupError::Contents { what, why: why.to_owned() });
        }
    }
    Ok(())
}

pub(super) fn counts(connection: &Connection) -> rusqlite::Result<Counts> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).map(i64::unsigned_abs);
    Ok(Counts {
        schema_version: connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
        rounds: count("select count(*) from rounds")?,
        open_rounds: count("select count(*) from rounds where state = 'open'")?,
        entries: count("select count(*) from entries")?,
        newest_round_id: connection
            .query_row("select max(id) from rounds", [], |row| row.get(0))?,
    })
}

fn integrity(connection: &Connection, watch: BackupWatcher<'_>) -> Result<()> {
    tell(watch, BackupStage::Integrity, 0, 1)?;
    let found: String = connection
        .query_row("pragma integrity_check(1)", [], |row| row.get(0))
        .map_err(|error| unreadable(&error))?;
    if found != "ok" {
        return Err(BackupError::damaged(DATABASE, found));
    }
    let loose: Option<String> = connection
        .query_row("pragma foreign_key_check", [], |row| row.get(0))
        .optional()
        .map_err(|error| unreadable(&error))?;
    if let Some(table) = loose {
        let why = format!("a row of `{table}` refers to a missing row");
        return Err(BackupError::damaged(DATABASE, why));
    }
    tell(watch, BackupStage::Integrity, 1, 1)
}

/// Checks that every entry has the digest of its receipt, and belongs to its round.
fn entries(connection: &Connection, total: u64, watch: BackupWatcher<'_>) -> Result<()> {
    let mut done = 0;
    let mut statement = connection
        .prepare("select account_id, round_id, receipt_id, entry from entries")
        .map_err(|error| unreadable(&error))?;
    let mut rows = statement.query([]).map_err(|error| unreadable(&error))?;
    while let Some(row) = rows.next().map_err(|error| unreadable(&error))? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let read = || Ok::<_, rusqlite::Error>([text(0)?, text(1)?, text(2)?, text(3)?]);
        let [account, round, receipt, entry] = read().map_err(|error| unreadable(&error))?;
        if digest(entry.as_bytes()) != receipt {
            return Err(broken(
                round,
                "its decision entry does not match the digest in its receipt",
            ));
        }
        let owner = serde_json::from_str::<EntryOwner<'_>>(entry);
        if !owner.is_ok_and(|owner| owner.account_id == account && owner.round_id == round) {
            return Err(broken(round, "its decision entry belongs to another round"));
        }
        done += 1;
        if done % CHUNK_ROWS == 0 {
            tell(watch, BackupStage::Entries, done, total)?;
        }
    }
    tell(watch, BackupStage::Entries, done, total)
}

fn unreadable(error: &rusqlite::Error) -> BackupError {
    BackupError::damaged(DATABASE, error.to_string())
}

fn broken(round: &str, why: &str) -> BackupError {
    BackupError::Contents { what: format!("round `{round}`"), why: why.to_owned() }
}
