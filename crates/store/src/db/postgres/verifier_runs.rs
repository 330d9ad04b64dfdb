//! Runs in PostgreSQL.

use jurat_core::{id::AccountId, verifier::run::VerifierRun};
use sqlx::PgConnection;

use crate::{
    Result, VerifierRunFilter,
    db::{
        rows::verifier_runs::{VerifierRunEndRow, VerifierRunRow, id_range, read_verifier_run},
        sql::verifier_runs as sql,
    },
};

/// Adds a run; `false` when its verifier is gone. The verifier cannot be deleted before the run is
/// on record.
pub(super) async fn add(tx: &mut PgConnection, run: &VerifierRunRow) -> Result<bool> {
    let text = if run.is_system { sql::SYSTEM_RUN_ADD } else { sql::RUN_ADD_LOCKING };
    let added = sqlx::query(text)
        .bind(&run.account_id)
        .bind(&run.verifier_id)
        .bind(&run.id)
        .bind(run.version)
        .bind(run.purpose)
        .bind(&run.round_id)
        .bind(&run.provenance)
        .bind(&run.inputs_digest)
        .bind(run.created_at)
        .execute(tx)
        .await?;
    Ok(added.rows_affected() == 1)
}

pub(super) async fn end(
    tx: &mut PgConnection,
    account: &str,
    end: &VerifierRunEndRow,
) -> Result<()> {
    sqlx::query(sql::RUN_END)
        .bind(end.verdict)
        .bind(end.error_code)
        .bind(&end.error_message)
        .bind(&end.reasoning)
        .bind(end.duration_ms)
        .bind(end.cost_micros)
        .bind(account)
        .bind(&end.id)
        .execute(tx)
        .await?;
    Ok(())
}

pub(super) async fn get(
    db: &mut PgConnection,
    account: &AccountId,
    id: &str,
) -> Result<Option<VerifierRun>> {
    let query = sqlx::query(sql::RUN_GET).bind(account.as_str()).bind(id);
    query.fetch_optional(&mut *db).await?.as_ref().map(read_verifier_run).transpose()
}

pub(super) async fn list(
    db: &mut PgConnection,
    account: &AccountId,
    filter: &VerifierRunFilter,
) -> Result<Vec<VerifierRun>> {
    let (below, from) = id_range(filter);
    let (text, words) = sql::POSTGRES.of(filter);
    let mut query = sqlx::query(text)
        .bind(account.as_str())
        .bind(below)
        .bind(from)
        .bind(filter.version.map(i64::from));
    for word in words {
        query = query.bind(word);
    }
    let query = query.bind(i64::from(filter.limit));
    query.fetch_all(&mut *db).await?.iter().map(read_verifier_run).collect()
}
