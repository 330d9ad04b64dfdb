//! Executors, with their addresses and the results of their last probes.

use const_format::concatcp;
use jurat_core::{
    executor::{Executor, Probe, session::Session},
    list::ListPage,
    peer::{
        PeerId,
        scope::{NodeScope, RemoteTarget},
    },
};

use super::{
    documents::ProbeDocument,
    sessions::{self, pool_changed},
};
use crate::{
    IdempotencyRecord, NotFound, Result, WriteOutcome,
    db::{
        row::{DbRow, RowReader, json, read_name},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Executors of the installation.
    pub struct ExecutorOps = store.executors();
    reads {
        fn get(name: &str) -> Option<Executor> = get;
        /// Executors in the order of their names.
        fn list(page: &ListPage) -> Vec<Executor> = list;
    }
    changes {
        /// Stores the result of the last probe; `false` if there is no such executor.
        fn set_probe(name: &str, probe: &Probe) -> bool = set_probe;
    }
    writes {
        /// Removes an executor and its sessions, whose identifiers it returns.
        fn remove(name: &str) -> Vec<String>, or NotFound = remove;
    }
}

impl ExecutorOps<'_> {
    /// Adds an executor and, if given, a session on it: both or neither.
    pub async fn add(
        self,
        behalf: &crate::Behalf,
        executor: &Executor,
        session: Option<&Session>,
        idempotency: Option<&IdempotencyRecord<()>>,
    ) -> Result<WriteOutcome<(), ExecutorAddRefusal>> {
        let (executor, session) = (executor.clone(), session.cloned());
        let name = ("executors", "add");
        let write = Box::pin(self.0.write(name, behalf, idempotency, move |tx| {
            Box::pin(async move { add(tx, &executor, session.as_ref()).await })
        }));
        write.await
    }
}

/// Why an executor was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorAddRefusal {
    ExecutorExists,
    SessionExists,
}

// Columns are named one by one: a `*` would break the statements that PostgreSQL has prepared when
// a migration adds a column.
const COLUMNS: &str = "\
    name, url, token_env, agent_events_url, created_at, probe, is_remote, target_node, scope";
const SELECT: &str = concatcp!("select ", COLUMNS, " from executors");
const ADD: &str = concatcp!(
    "insert into executors (",
    COLUMNS,
    ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing"
);
const GET: &str = concatcp!(SELECT, " where name = $1");
const LIST: &str = concatcp!(SELECT, " where name > $1 order by name limit $2");
const SET_PROBE: &str = "update executors set probe = $1 where name = $2";
const REMOVE: &str = "delete from executors where name = $1";
const REMOVE_SESSIONS: &str = "delete from sessions where executor = $1 returning id as name";

async fn add(
    tx: &mut Tx<'_>,
    executor: &Executor,
    session: Option<&Session>,
) -> Result<Result<(), ExecutorAddRefusal>> {
    pool_changed(tx).await?;
    let target = executor.remote.as_ref();
    let node = target.and_then(|target| target.node.as_ref());
    let scope = target.and_then(|target| target.scope.as_ref());
    let args = args![
        &executor.name,
        &executor.url,
        executor.token_env.as_ref(),
        executor.agent_events_url.as_ref(),
        executor.created_at,
        executor.probe.as_ref().map(probe_text).transpose()?,
        target.is_some(),
        node.map(PeerId::as_str),
        scope.map(NodeScope::to_string)
    ];
    if tx.run(ADD, args).await? == 0 {
        return Ok(Err(ExecutorAddRefusal::ExecutorExists));
    }
    if let Some(session) = session
        && !sessions::insert(tx, session).await?
    {
        return Ok(Err(ExecutorAddRefusal::SessionExists));
    }
    Ok(Ok(()))
}

pub(super) async fn get(tx: &mut Tx<'_>, name: &str) -> Result<Option<Executor>> {
    tx.first(GET, args![name], read).await
}

async fn list(tx: &mut Tx<'_>, page: &ListPage) -> Result<Vec<Executor>> {
    tx.all(LIST, args![page.after.as_deref().unwrap_or_default(), page.limit], read).await
}

/// All executors.
pub(super) async fn all(tx: &mut Tx<'_>) -> Result<Vec<Executor>> {
    tx.all(SELECT, args![], read).await
}

async fn set_probe(tx: &mut Tx<'_>, name: &str, probe: &Probe) -> Result<bool> {
    Ok(tx.run(SET_PROBE, args![probe_text(probe)?, name]).await? == 1)
}

async fn remove(tx: &mut Tx<'_>, name: &str) -> Result<Result<Vec<String>, NotFound>> {
    pool_changed(tx).await?;
    let mut sessions = tx.all(REMOVE_SESSIONS, args![name], read_name).await?;
    if tx.run(REMOVE, args![name]).await? == 0 {
        return Ok(Err(NotFound));
    }
    sessions.sort_unstable();
    Ok(Ok(sessions))
}

fn probe_text(probe: &Probe) -> Result<String> {
    json(&ProbeDocument::from(probe))
}

fn read(cells: &dyn DbRow) -> Result<Executor> {
    let columns = RowReader::new(cells, "executors", "name")?;
    let probe: Option<ProbeDocument<'_>> = columns.maybe_document("probe")?;
    Ok(Executor {
        name: columns.text("name")?,
        url: columns.text("url")?,
        token_env: columns.maybe_text("token_env")?,
        agent_events_url: columns.maybe_text("agent_events_url")?,
        remote: remote_of(&columns)?,
        created_at: columns.time("created_at")?,
        probe: probe.map(Into::into),
    })
}

fn remote_of(columns: &RowReader<'_>) -> Result<Option<RemoteTarget>> {
    if columns.number("is_remote")? == 0 {
        return Ok(None);
    }
    let (node, scope) = (columns.maybe_word("target_node")?, columns.maybe_word("scope")?);
    Ok(Some(RemoteTarget { node, scope }))
}
