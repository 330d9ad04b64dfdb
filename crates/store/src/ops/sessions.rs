//! Sessions, and the pool that executors and sessions form.

use const_format::concatcp;
use jurat_core::{
    executor::session::{Session, SessionPool, Tier},
    list::ListPage,
};

use super::executors;
use crate::{
    NotFound, Result,
    db::{
        row::{DbRow, RowReader, json, read_number},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Sessions of the installation.
    pub struct SessionOps = store.sessions();
    reads {
        fn get(id: &str) -> Option<Session> = get;
        /// Sessions in the order of their identifiers.
        fn list(page: &ListPage) -> Vec<Session> = list;
        /// All executors and sessions.
        fn pool() -> SessionPool = pool;
        /// A number that grows with every change of executors or sessions, but not with probes.
        fn pool_version() -> i64 = pool_version;
    }
    writes {
        fn add(session: &Session) -> (), or SessionAddRefusal = add;
        fn remove(id: &str) -> (), or NotFound = remove;
    }
}

/// Why a session was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAddRefusal {
    Exists,
    ExecutorUnknown,
}

const COLUMNS: &str = "\
    id, executor, profile, tier, labels, task_types, reliability_permille, price_micros, created_at";
const SELECT: &str = concatcp!("select ", COLUMNS, " from sessions");
const ADD: &str = concatcp!(
    "insert into sessions (",
    COLUMNS,
    ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing"
);
const GET: &str = concatcp!(SELECT, " where id = $1");
const LIST: &str = concatcp!(SELECT, " where id > $1 order by id limit $2");
const REMOVE: &str = "delete from sessions where id = $1";
const POOL_CHANGED: &str = "update installation set pool_version = pool_version + 1 where id = 1";
const POOL_VERSION: &str =
    "select 'pool' as name, pool_version as number from installation where id = 1";

async fn add(tx: &mut Tx<'_>, session: &Session) -> Result<Result<(), SessionAddRefusal>> {
    pool_changed(tx).await?;
    if executors::get(tx, &session.executor).await?.is_none() {
        return Ok(Err(SessionAddRefusal::ExecutorUnknown));
    }
    let is_added = insert(tx, session).await?;
    Ok(if is_added { Ok(()) } else { Err(SessionAddRefusal::Exists) })
}

/// Adds a session; `false` if its identifier is taken.
pub(super) async fn insert(tx: &mut Tx<'_>, session: &Session) -> Result<bool> {
    let args = args![
        &session.id,
        &session.executor,
        &session.profile,
        session.tier.map(Tier::as_str),
        json(&session.labels)?,
        json(&session.task_types)?,
        session.reliability_permille.map(i64::from),
        session.price_micros,
        session.created_at
    ];
    Ok(tx.run(ADD, args).await? == 1)
}

async fn get(tx: &mut Tx<'_>, id: &str) -> Result<Option<Session>> {
    tx.first(GET, args![id], read).await
}

async fn list(tx: &mut Tx<'_>, page: &ListPage) -> Result<Vec<Session>> {
    tx.all(LIST, args![page.after.as_deref().unwrap_or_default(), page.limit], read).await
}

async fn remove(tx: &mut Tx<'_>, id: &str) -> Result<Result<(), NotFound>> {
    pool_changed(tx).await?;
    let is_removed = tx.run(REMOVE, args![id]).await? == 1;
    Ok(if is_removed { Ok(()) } else { Err(NotFound) })
}

async fn pool(tx: &mut Tx<'_>) -> Result<SessionPool> {
    let executors = executors::all(tx).await?.into_iter();
    let sessions = tx.all(SELECT, args![], read).await?.into_iter();
    Ok(SessionPool {
        executors: executors.map(|executor| (executor.name.clone(), executor)).collect(),
        sessions: sessions.map(|session| (session.id.clone(), session)).collect(),
    })
}

async fn pool_version(tx: &mut Tx<'_>) -> Result<i64> {
    Ok(tx.first(POOL_VERSION, args![], read_number).await?.unwrap_or_default())
}

/// Comes first in a transaction: the lock on this row makes changes of the pool wait for each
/// other, so that the rows that are read stay valid until the commit.
pub(super) async fn pool_changed(tx: &mut Tx<'_>) -> Result<()> {
    tx.run(POOL_CHANGED, args![]).await.map(drop)
}

fn read(cells: &dyn DbRow) -> Result<Session> {
    let columns = RowReader::new(cells, "sessions", "id")?;
    Ok(Session {
        id: columns.text("id")?,
        executor: columns.text("executor")?,
        profile: columns.text("profile")?,
        tier: columns.maybe_word("tier")?,
        labels: columns.document("labels")?,
        task_types: columns.document("task_types")?,
        reliability_permille: columns.maybe_count("reliability_permille")?,
        price_micros: columns.count("price_micros")?,
        created_at: columns.time("created_at")?,
    })
}
