//! Executors and sessions in PostgreSQL.

use jurat_core::{
    executor::{
        Executor,
        session::{Session, SessionPool},
    },
    list::ListPage,
};
use sqlx::{Connection as _, PgConnection};

use super::idempotency;
use crate::{
    ExecutorAddOutcome, RemoveOutcome, Result, SessionAddOutcome,
    db::{
        rows::{
            idempotency::IdempotencyRow,
            installation::{ExecutorRow, SessionRow, pool_of, read_executor, read_session},
        },
        sql,
    },
};

pub(super) async fn executor_add(
    db: &mut PgConnection,
    executor: &ExecutorRow,
    session: Option<&SessionRow>,
    idempotency: Option<&IdempotencyRow>,
) -> Result<ExecutorAddOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(ExecutorAddOutcome::Repeated);
    }
    pool_changed(&mut tx).await?;
    let added = sqlx::query(sql::EXECUTOR_ADD)
        .bind(&executor.name)
        .bind(&executor.url)
        .bind(&executor.token_env)
        .bind(&executor.agent_events_url)
        .bind(executor.created_at)
        .bind(&executor.probe)
        .execute(&mut *tx)
        .await?;
    if added.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(ExecutorAddOutcome::ExecutorExists);
    }
    if let Some(session) = session
        && insert_session(&mut tx, session).await? == 0
    {
        tx.rollback().await?;
        return Ok(ExecutorAddOutcome::SessionExists);
    }
    tx.commit().await?;
    Ok(ExecutorAddOutcome::Added)
}

pub(super) async fn executor_get(db: &mut PgConnection, name: &str) -> Result<Option<Executor>> {
    let row = sqlx::query(sql::EXECUTOR_GET).bind(name).fetch_optional(&mut *db).await?;
    row.as_ref().map(read_executor).transpose()
}

pub(super) async fn executor_list(db: &mut PgConnection, page: &ListPage) -> Result<Vec<Executor>> {
    let rows = sqlx::query(sql::EXECUTOR_LIST)
        .bind(page.after.as_deref().unwrap_or_default())
        .bind(i64::from(page.limit))
        .fetch_all(&mut *db)
        .await?;
    rows.iter().map(read_executor).collect()
}

pub(super) async fn executor_probed(
    db: &mut PgConnection,
    name: &str,
    probe: &str,
) -> Result<bool> {
    let probed = sqlx::query(sql::EXECUTOR_PROBED).bind(probe).bind(name).execute(&mut *db).await?;
    Ok(probed.rows_affected() == 1)
}

pub(super) async fn executor_remove(
    db: &mut PgConnection,
    name: &str,
    idempotency: Option<&IdempotencyRow>,
) -> Result<RemoveOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(RemoveOutcome::Repeated);
    }
    pool_changed(&mut tx).await?;
    let mut sessions: Vec<String> =
        sqlx::query_scalar(sql::SESSIONS_REMOVE).bind(name).fetch_all(&mut *tx).await?;
    let removed = sqlx::query(sql::EXECUTOR_REMOVE).bind(name).execute(&mut *tx).await?;
    if removed.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(RemoveOutcome::Unknown);
    }
    sessions.sort_unstable();
    idempotency::save_answer(&mut tx, idempotency, |answer| answer.of_removal(&sessions)).await?;
    tx.commit().await?;
    Ok(RemoveOutcome::Removed(sessions))
}

pub(super) async fn session_add(
    db: &mut PgConnection,
    session: &SessionRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<SessionAddOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(SessionAddOutcome::Repeated);
    }
    pool_changed(&mut tx).await?;
    let executor =
        sqlx::query(sql::EXECUTOR_GET).bind(&session.executor).fetch_optional(&mut *tx).await?;
    if executor.is_none() {
        tx.rollback().await?;
        return Ok(SessionAddOutcome::ExecutorUnknown);
    }
    if insert_session(&mut tx, session).await? == 0 {
        tx.rollback().await?;
        return Ok(SessionAddOutcome::Exists);
    }
    tx.commit().await?;
    Ok(SessionAddOutcome::Added)
}

pub(super) async fn session_get(db: &mut PgConnection, id: &str) -> Result<Option<Session>> {
    let row = sqlx::query(sql::SESSION_GET).bind(id).fetch_optional(&mut *db).await?;
    row.as_ref().map(read_session).transpose()
}

pub(super) async fn session_list(db: &mut PgConnection, page: &ListPage) -> Result<Vec<Session>> {
    let rows = sqlx::query(sql::SESSION_LIST)
        .bind(page.after.as_deref().unwrap_or_default())
        .bind(i64::from(page.limit))
        .fetch_all(&mut *db)
        .await?;
    rows.iter().map(read_session).collect()
}

pub(super) async fn session_remove(
    db: &mut PgConnection,
    id: &str,
    idempotency: Option<&IdempotencyRow>,
) -> Result<RemoveOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(RemoveOutcome::Repeated);
    }
    pool_changed(&mut tx).await?;
    let removed = sqlx::query(sql::SESSION_REMOVE).bind(id).execute(&mut *tx).await?;
    if removed.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(RemoveOutcome::Unknown);
    }
    tx.commit().await?;
    Ok(RemoveOutcome::Removed(vec![id.to_owned()]))
}

pub(super) async fn pool(db: &mut PgConnection) -> Result<SessionPool> {
    // Both lists from the same moment.
    let mut tx = db.begin_with("begin isolation level repeatable read read only").await?;
    let executors = sqlx::query(sql::EXECUTOR_ALL).fetch_all(&mut *tx).await?;
    let sessions = sqlx::query(sql::SESSION_ALL).fetch_all(&mut *tx).await?;
    tx.commit().await?;
    let executors = executors.iter().map(read_executor).collect::<Result<_>>()?;
    let sessions = sessions.iter().map(read_session).collect::<Result<_>>()?;
    Ok(pool_of(executors, sessions))
}

pub(super) async fn pool_version(db: &mut PgConnection) -> Result<i64> {
    Ok(sqlx::query_scalar(sql::POOL_VERSION).fetch_one(&mut *db).await?)
}

async fn insert_session(tx: &mut PgConnection, session: &SessionRow) -> Result<u64> {
    let added = sqlx::query(sql::SESSION_ADD)
        .bind(&session.id)
        .bind(&session.executor)
        .bind(&session.profile)
        .bind(session.tier)
        .bind(&session.labels)
        .bind(&session.task_types)
        .bind(session.reliability_permille)
        .bind(session.price_micros)
        .bind(session.created_at)
        .execute(tx)
        .await?;
    Ok(added.rows_affected())
}

/// Comes first in a transaction: the lock on this row lets changes of the pool happen one after
/// another, so that what is looked up stays true until the commit.
async fn pool_changed(tx: &mut PgConnection) -> Result<()> {
    sqlx::query(sql::POOL_CHANGED).execute(tx).await?;
    Ok(())
}
