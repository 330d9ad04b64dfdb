//! Executors and sessions in SQLite.

use jurat_core::{
    executor::{
        Executor,
        session::{Session, SessionPool},
    },
    list::ListPage,
};
use rusqlite::{Connection, params};

use super::{all, execute, first, idempotency};
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

pub(super) fn executor_add(
    tx: &Connection,
    executor: &ExecutorRow,
    session: Option<&SessionRow>,
    idempotency: Option<&IdempotencyRow>,
) -> Result<ExecutorAddOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(ExecutorAddOutcome::Repeated);
    }
    // Looked up first, so that nothing has to be undone.
    if executor_get(tx, &executor.name)?.is_some() {
        return Ok(ExecutorAddOutcome::ExecutorExists);
    }
    if let Some(session) = session
        && session_get(tx, &session.id)?.is_some()
    {
        return Ok(ExecutorAddOutcome::SessionExists);
    }
    execute(
        tx,
        sql::EXECUTOR_ADD,
        params![
            executor.name,
            executor.url,
            executor.token_env,
            executor.agent_events_url,
            executor.created_at,
            executor.probe
        ],
    )?;
    if let Some(session) = session {
        insert_session(tx, session)?;
    }
    pool_changed(tx)?;
    idempotency::record_write(tx, idempotency, None)?;
    Ok(ExecutorAddOutcome::Added)
}

pub(super) fn executor_get(tx: &Connection, name: &str) -> Result<Option<Executor>> {
    first(tx, sql::EXECUTOR_GET, params![name], |row| read_executor(row))
}

pub(super) fn executor_list(tx: &Connection, page: &ListPage) -> Result<Vec<Executor>> {
    let after = page.after.as_deref().unwrap_or_default();
    all(tx, sql::EXECUTOR_LIST, params![after, page.limit], |row| read_executor(row))
}

pub(super) fn executor_probed(tx: &Connection, name: &str, probe: &str) -> Result<bool> {
    Ok(execute(tx, sql::EXECUTOR_PROBED, params![probe, name])? == 1)
}

pub(super) fn executor_remove(
    tx: &Connection,
    name: &str,
    idempotency: Option<&IdempotencyRow>,
) -> Result<RemoveOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(RemoveOutcome::Repeated);
    }
    let mut sessions = all(tx, sql::SESSIONS_REMOVE, params![name], |row| Ok(row.get(0)?))?;
    if execute(tx, sql::EXECUTOR_REMOVE, params![name])? == 0 {
        return Ok(RemoveOutcome::Unknown);
    }
    pool_changed(tx)?;
    sessions.sort_unstable();
    idempotency::record_answered_write(tx, idempotency, |answer| answer.of_removal(&sessions))?;
    Ok(RemoveOutcome::Removed(sessions))
}

pub(super) fn session_add(
    tx: &Connection,
    session: &SessionRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<SessionAddOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(SessionAddOutcome::Repeated);
    }
    if executor_get(tx, &session.executor)?.is_none() {
        return Ok(SessionAddOutcome::ExecutorUnknown);
    }
    if insert_session(tx, session)? == 0 {
        return Ok(SessionAddOutcome::Exists);
    }
    pool_changed(tx)?;
    idempotency::record_write(tx, idempotency, None)?;
    Ok(SessionAddOutcome::Added)
}

pub(super) fn session_get(tx: &Connection, id: &str) -> Result<Option<Session>> {
    first(tx, sql::SESSION_GET, params![id], |row| read_session(row))
}

pub(super) fn session_list(tx: &Connection, page: &ListPage) -> Result<Vec<Session>> {
    let after = page.after.as_deref().unwrap_or_default();
    all(tx, sql::SESSION_LIST, params![after, page.limit], |row| read_session(row))
}

pub(super) fn session_remove(
    tx: &Connection,
    id: &str,
    idempotency: Option<&IdempotencyRow>,
) -> Result<RemoveOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(RemoveOutcome::Repeated);
    }
    if execute(tx, sql::SESSION_REMOVE, params![id])? == 0 {
        return Ok(RemoveOutcome::Unknown);
    }
    pool_changed(tx)?;
    idempotency::record_write(tx, idempotency, None)?;
    Ok(RemoveOutcome::Removed(vec![id.to_owned()]))
}

pub(super) fn pool(tx: &Connection) -> Result<SessionPool> {
    let executors = all(tx, sql::EXECUTOR_ALL, [], |row| read_executor(row))?;
    let sessions = all(tx, sql::SESSION_ALL, [], |row| read_session(row))?;
    Ok(pool_of(executors, sessions))
}

pub(super) fn pool_version(tx: &Connection) -> Result<i64> {
    Ok(tx.prepare_cached(sql::POOL_VERSION)?.query_row([], |row| row.get(0))?)
}

fn insert_session(tx: &Connection, session: &SessionRow) -> Result<usize> {
    execute(
        tx,
        sql::SESSION_ADD,
        params![
            session.id,
            session.executor,
            session.profile,
            session.tier,
            session.labels,
            session.task_types,
            session.reliability_permille,
            session.price_micros,
            session.created_at
        ],
    )
}

fn pool_changed(tx: &Connection) -> Result<()> {
    execute(tx, sql::POOL_CHANGED, []).map(drop)
}
