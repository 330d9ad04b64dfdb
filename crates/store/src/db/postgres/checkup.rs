//! The check-up of PostgreSQL.

use jurat_core::{
    id::{AccountId, RoundId},
    time::Timestamp,
};
use sqlx::{Connection as _, PgConnection, Row as _};

use super::{LONG_STATEMENT_TIMEOUT, migrate, rounds};
use crate::{
    EndedRoundsQuery, Result, RoundRecord, StoreCheckup,
    db::{
        migrations,
        rows::checkup::{page_start, read_ended, read_record},
        sql::checkup as sql,
    },
    ops::checkup::MOST_FAULTS,
};

const CLOCK: &str = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";

/// Indexes whose making failed, and which the database does not use.
const INVALID: &str = "\
    select index.relname::text from pg_index join pg_class index on index.oid = indexrelid \
    join pg_namespace on pg_namespace.oid = index.relnamespace \
    where not indisvalid and nspname = current_schema() limit $1";

/// Without either, a power cut may lose what was acknowledged or tear a page.
const DURABLE: [&str; 2] = ["fsync", "full_page_writes"];

pub(super) async fn check(db: &mut PgConnection) -> Result<StoreCheckup> {
    let schema_version = migrate::version(&mut *db).await?;
    let mut tx = db.begin().await?;
    sqlx::query(LONG_STATEMENT_TIMEOUT).execute(&mut *tx).await?;
    let ended: i64 = sqlx::query_scalar(sql::ENDED_COUNT).fetch_one(&mut *tx).await?;
    let newest: Option<i64> = sqlx::query_scalar(sql::NEWEST).fetch_optional(&mut *tx).await?;
    let strays = sqlx::query_scalar(sql::STRAYS).bind(MOST_FAULTS).fetch_all(&mut *tx).await?;
    let invalid: Vec<String> =
        sqlx::query_scalar(INVALID).bind(MOST_FAULTS).fetch_all(&mut *tx).await?;
    let risks = risks(&mut tx).await?;
    let clock: i64 = sqlx::query_scalar(CLOCK).fetch_one(&mut *tx).await?;
    Ok(StoreCheckup {
        schema_version,
        schema_needed: migrations::NEEDED,
        faults: invalid
            .into_iter()
            .map(|name| format!("the index `{name}` is not valid"))
            .collect(),
        risks,
        clock: Some(Timestamp::from_micros(clock)),
        newest: newest.map(Timestamp::from_micros),
        ended_rounds: ended.unsigned_abs(),
        strays,
    })
}

async fn risks(tx: &mut PgConnection) -> Result<Vec<String>> {
    let mut risks = Vec::new();
    for name in DURABLE {
        let row = sqlx::query("select current_setting($1)").bind(name).fetch_one(&mut *tx).await?;
        let value: String = row.try_get(0)?;
        if value != "on" {
            risks.push(format!("the database runs with `{name} = {value}`"));
        }
    }
    Ok(risks)
}

pub(super) async fn ended_since(db: &mut PgConnection, count: u32) -> Result<Option<RoundId>> {
    let Some(before) = count.checked_sub(1) else { return Ok(None) };
    let id: Option<String> = sqlx::query_scalar(sql::ENDED_SINCE)
        .bind(i64::from(before))
        .fetch_optional(&mut *db)
        .await?;
    Ok(id.and_then(|id| RoundId::parse(&id).ok()))
}

pub(super) async fn ended_page(
    db: &mut PgConnection,
    page: &EndedRoundsQuery,
) -> Result<Vec<(AccountId, RoundId)>> {
    let (account, id, since) = page_start(page);
    let rows = sqlx::query(sql::ENDED_PAGE)
        .bind(account)
        .bind(id)
        .bind(since)
        .bind(i64::from(page.limit))
        .fetch_all(&mut *db)
        .await?;
    rows.iter().map(read_ended).collect()
}

pub(super) async fn record(
    db: &mut PgConnection,
    account: &AccountId,
    id: &RoundId,
) -> Result<Option<RoundRecord>> {
    let row = sqlx::query(sql::RECORD)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(&mut *db)
        .await?;
    let Some(mut record) = row.as_ref().map(read_record).transpose()? else { return Ok(None) };
    if let Some(closing) = &mut record.round.closing {
        closing.replicas = rounds::replicas(&mut *db, account, id).await?;
    }
    Ok(Some(record))
}
