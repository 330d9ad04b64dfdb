//! The check-up of SQLite.

use jurat_core::{
    id::{AccountId, RoundId},
    time::Timestamp,
};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{all, first, rounds::with_replicas};
use crate::{
    EndedRoundsQuery, Result, RoundRecord, StoreCheckup,
    db::{
        migrations,
        rows::checkup::{page_start, read_ended, read_record},
        sql::checkup as sql,
    },
    ops::checkup::MOST_FAULTS,
};

pub(super) fn check(tx: &Connection) -> Result<StoreCheckup> {
    let ended: i64 = tx.query_row(sql::ENDED_COUNT, [], |row| row.get(0))?;
    let newest: Option<i64> = tx.query_row(sql::NEWEST, [], |row| row.get(0)).optional()?;
    Ok(StoreCheckup {
        schema_version: tx.pragma_query_value(None, "user_version", |row| row.get(0))?,
        schema_needed: migrations::NEEDED,
        faults: faults(tx)?,
        risks: Vec::new(),
        // It runs in this process and has the same clock.
        clock: None,
        newest: newest.map(Timestamp::from_micros),
        ended_rounds: ended.unsigned_abs(),
        strays: all(tx, sql::STRAYS, params![MOST_FAULTS], |row| Ok(row.get(0)?))?,
    })
}

/// What SQLite finds damaged. A page that cannot be read ends its search, and is a fault too.
fn faults(tx: &Connection) -> Result<Vec<String>> {
    let mut statement = tx.prepare(&format!("pragma quick_check({MOST_FAULTS})"))?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut faults: Vec<String> = found
        .map(|line| line.unwrap_or_else(|error| error.to_string()))
        .filter(|line| line != "ok")
        .collect();
    let mut statement = tx.prepare("pragma foreign_key_check")?;
    let loose = statement.query_map([], |row| row.get::<_, String>(0))?;
    let loose = loose.take(usize::try_from(MOST_FAULTS).unwrap_or_default());
    for table in loose {
        let table = table?;
        faults.push(format!("a row of `{table}` refers to a missing row"));
    }
    Ok(faults)
}

pub(super) fn ended_since(tx: &Connection, count: u32) -> Result<Option<RoundId>> {
    let Some(before) = count.checked_sub(1) else { return Ok(None) };
    let id: Option<String> = first(tx, sql::ENDED_SINCE, params![before], |row| Ok(row.get(0)?))?;
    Ok(id.and_then(|id| RoundId::parse(&id).ok()))
}

pub(super) fn ended_page(
    tx: &Connection,
    page: &EndedRoundsQuery,
) -> Result<Vec<(AccountId, RoundId)>> {
    let (account, id, since) = page_start(page);
    all(tx, sql::ENDED_PAGE, params![account, id, since, page.limit], |row| read_ended(row))
}

pub(super) fn record(
    tx: &Connection,
    account: &AccountId,
    id: &RoundId,
) -> Result<Option<RoundRecord>> {
    let params = params![account.as_str(), id.as_str()];
    let Some(mut record) = first(tx, sql::RECORD, params, |row| read_record(row))? else {
        return Ok(None);
    };
    record.round = with_replicas(tx, record.round)?;
    Ok(Some(record))
}
