//! The check-up of a store, for `jurat doctor`.

use const_format::concatcp;
use jurat_core::{
    id::{AccountId, RoundId},
    round::{ClosingSummary, Round},
    time::Timestamp,
};
use rusqlite::Connection;

use super::rounds::{
    rows::{OPEN_COLUMNS, read_key, read_round, read_summary},
    with_replicas,
};
use crate::{
    Result,
    db::{
        migrations,
        postgres::migrate,
        row::{DbRow, RowReader, read_name, read_number},
        tx::{Tx, TxConnection, args, operations},
    },
};

operations! {
    /// The check-up of the store.
    pub struct CheckupOps = store.checkup();
    reads {
        /// Checks the whole database, which may take minutes.
        fn run() -> StoreCheckup = run;
        /// The oldest of the newest `count` ended rounds; `None` if there are fewer.
        fn ended_since(count: &u32) -> Option<RoundId> = ended_since;
        /// Ended rounds of all accounts.
        fn ended_rounds(page: &EndedRoundsQuery) -> Vec<(AccountId, RoundId)> = ended_rounds;
        /// Everything that is stored about an ended round. An unreadable row is reported as
        /// `Corrupt`.
        fn record(account: &AccountId, id: &RoundId) -> Option<RoundRecord> = record;
    }
}

/// Maximum number of faults of a kind to report; one is enough to act on.
pub(crate) const MOST_FAULTS: i64 = 20;

/// The state of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCheckup {
    pub schema_version: i64,
    /// The version that this program is written for.
    pub schema_needed: i64,
    /// Damage that the database itself finds, one line each.
    pub faults: Vec<String>,
    /// Settings of the database that put acknowledged writes at risk, one line each.
    pub risks: Vec<String>,
    /// The time by the clock of the database, if it has one of its own.
    pub clock: Option<Timestamp>,
    /// When the newest round was opened.
    pub newest: Option<Timestamp>,
    pub ended_rounds: u64,
    /// Rounds with an entry that are open or missing.
    pub strays: Vec<String>,
}

/// A part of the ended rounds, by account and identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRoundsQuery {
    /// Starts after this round.
    pub after: Option<(AccountId, RoundId)>,
    /// Skips older rounds.
    pub since: Option<RoundId>,
    pub limit: u32,
}

/// Everything that is stored about an ended round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundRecord {
    pub round: Round,
    /// The round's line in lists.
    pub listed: ClosingSummary,
    /// The identifier by which its entry is found.
    pub entry_receipt_id: String,
    /// When its texts were erased.
    pub erased_at: Option<Timestamp>,
}

const ENDED_COUNT: &str =
    "select 'rounds' as name, count(*) as number from rounds where state <> 'open'";
const NEWEST: &str =
    "select 'rounds' as name, opened_at as number from rounds order by id desc limit 1";
/// The oldest of the newest ended rounds; `$1` is one less than their number.
const ENDED_SINCE: &str =
    "select id as name from rounds where state <> 'open' order by id desc limit 1 offset $1";
const ENDED_PAGE: &str = "\
    select account_id, id from rounds where (account_id, id) > ($1, $2) and id >= $3 \
    and state <> 'open' order by account_id, id limit $4";
const STRAYS: &str = "\
    select entries.round_id as name from entries where not exists ( \
    select 1 from rounds where rounds.account_id = entries.account_id \
    and rounds.id = entries.round_id and rounds.state <> 'open') limit $1";
const RECORD: &str = concatcp!(
    "select ",
    OPEN_COLUMNS,
    ", rounds.state, rounds.closed_at, rounds.outcome, rounds.verdict, rounds.agreement_bp, \
     rounds.confidence_bp, rounds.consensus, rounds.receipt_id, rounds.erased_at, entries.entry, \
     entries.receipt_id as entry_receipt_id from rounds left join entries \
     on entries.account_id = rounds.account_id and entries.round_id = rounds.id \
     where rounds.account_id = $1 and rounds.id = $2 and rounds.state <> 'open'"
);

// These are for PostgreSQL only.
const CLOCK: &str = "\
    select 'clock' as name, (extract(epoch from clock_timestamp()) * 1000000)::bigint as number";
/// Indexes whose creation failed, and which the database does not use.
const INVALID: &str = "\
    select index.relname::text as name from pg_index join pg_class index on index.oid = indexrelid \
    join pg_namespace on pg_namespace.oid = index.relnamespace \
    where not indisvalid and nspname = current_schema() limit $1";
/// Unless both are on, a power failure may lose acknowledged writes or tear a page.
const RISKS: &str = "\
    select 'the database runs with `' || name || ' = ' || setting || '`' as name from pg_settings \
    where name in ('fsync', 'full_page_writes') and setting <> 'on' order by name";

async fn run(tx: &mut Tx<'_>) -> Result<StoreCheckup> {
    tx.allow_long_statements().await?;
    let ended = tx.first(ENDED_COUNT, args![], read_number).await?.unwrap_or_default();
    let newest = tx.first(NEWEST, args![], read_number).await?;
    let strays = tx.all(STRAYS, args![MOST_FAULTS], read_name).await?;
    let (faults, risks) = match &mut tx.connection {
        TxConnection::Sqlite(connection) => (damage(connection)?, Vec::new()),
        TxConnection::Postgres(_) => {
            let invalid = tx.all(INVALID, args![MOST_FAULTS], read_name).await?.into_iter();
            let faults = invalid.map(|name| format!("the index `{name}` is not valid"));
            (faults.collect(), tx.all(RISKS, args![], read_name).await?)
        }
    };
    let (schema_version, clock) = match &mut tx.connection {
        // SQLite runs in this process and has the same clock.
        TxConnection::Sqlite(connection) => {
            (connection.pragma_query_value(None, "user_version", |row| row.get(0))?, None)
        }
        TxConnection::Postgres(connection) => {
            let version = migrate::version(connection).await?;
            (version, tx.first(CLOCK, args![], read_number).await?)
        }
    };
    Ok(StoreCheckup {
        schema_version,
        schema_needed: migrations::NEEDED,
        faults,
        risks,
        clock: clock.map(Timestamp::from_micros),
        newest: newest.map(Timestamp::from_micros),
        ended_rounds: ended.unsigned_abs(),
        strays,
    })
}

/// Damage that SQLite finds. An unreadable page ends the search, and is a fault too.
fn damage(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("pragma quick_check({MOST_FAULTS})"))?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut faults: Vec<String> = found
        .map(|line| line.unwrap_or_else(|error| error.to_string()))
        .filter(|line| line != "ok")
        .collect();
    let mut statement = connection.prepare("pragma foreign_key_check")?;
    let loose = statement.query_map([], |row| row.get::<_, String>(0))?;
    let loose = loose.take(usize::try_from(MOST_FAULTS).unwrap_or_default());
    for table in loose {
        let table = table?;
        faults.push(format!("a row of `{table}` refers to a missing row"));
    }
    Ok(faults)
}

async fn ended_since(tx: &mut Tx<'_>, count: &u32) -> Result<Option<RoundId>> {
    let Some(before) = count.checked_sub(1) else { return Ok(None) };
    let id = tx.first(ENDED_SINCE, args![before], read_name).await?;
    Ok(id.and_then(|id| RoundId::parse(&id).ok()))
}

async fn ended_rounds(
    tx: &mut Tx<'_>,
    page: &EndedRoundsQuery,
) -> Result<Vec<(AccountId, RoundId)>> {
    // No identifier is less than the empty text.
    let after = page.after.as_ref();
    let (account, id) = after.map_or(("", ""), |(account, id)| (account.as_str(), id.as_str()));
    let since = page.since.as_ref().map_or("", RoundId::as_str);
    tx.all(ENDED_PAGE, args![account, id, since, page.limit], read_key).await
}

async fn record(tx: &mut Tx<'_>, account: &AccountId, id: &RoundId) -> Result<Option<RoundRecord>> {
    let found = tx.first(RECORD, args![account, id.as_str()], read_record).await?;
    let Some(mut record) = found else { return Ok(None) };
    record.round = with_replicas(tx, record.round).await?;
    Ok(Some(record))
}

/// A record without its replicas.
fn read_record(cells: &dyn DbRow) -> Result<RoundRecord> {
    let of_entry = RowReader::new(cells, "entries", "id")?;
    let missing = || of_entry.bad("entry", "the round has ended, but it has no entry");
    let entry_receipt_id = of_entry.maybe_text("entry_receipt_id")?.ok_or_else(missing)?;
    let erased_at = RowReader::new(cells, "rounds", "id")?.maybe_time("erased_at")?;
    let round = read_round(cells)?;
    let listed = read_summary(cells)?.closing.ok_or_else(missing)?;
    Ok(RoundRecord { round, listed, entry_receipt_id, erased_at })
}
