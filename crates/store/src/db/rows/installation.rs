//! Rows of executors and sessions.

use jurat_core::executor::{
    Executor, Probe,
    session::{Session, SessionPool, Tier},
};

use super::{DbRow, RowReader, documents::ProbeDocument, json, to_bigint};
use crate::Result;

pub(crate) struct ExecutorRow {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) token_env: Option<String>,
    pub(crate) agent_events_url: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) probe: Option<String>,
}

impl ExecutorRow {
    pub(crate) fn new(executor: &Executor) -> Result<Self> {
        Ok(Self {
            name: executor.name.clone(),
            url: executor.url.clone(),
            token_env: executor.token_env.clone(),
            agent_events_url: executor.agent_events_url.clone(),
            created_at: executor.created_at.micros(),
            probe: executor.probe.as_ref().map(probe_text).transpose()?,
        })
    }
}

pub(crate) fn probe_text(probe: &Probe) -> Result<String> {
    json(&ProbeDocument::from(probe))
}

pub(crate) fn read_executor(cells: &impl DbRow) -> Result<Executor> {
    let columns = RowReader::new(cells, "executors", "name")?;
    let probe = match columns.maybe_text("probe")? {
        None => None,
        Some(_) => Some(columns.document::<ProbeDocument<'_>>("probe")?.into()),
    };
    Ok(Executor {
        name: columns.text("name")?,
        url: columns.text("url")?,
        token_env: columns.maybe_text("token_env")?,
        agent_events_url: columns.maybe_text("agent_events_url")?,
        created_at: columns.time("created_at")?,
        probe,
    })
}

pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) executor: String,
    pub(crate) profile: String,
    pub(crate) tier: Option<&'static str>,
    pub(crate) labels: String,
    pub(crate) task_types: String,
    pub(crate) reliability_permille: Option<i64>,
    pub(crate) price_micros: i64,
    pub(crate) created_at: i64,
}

impl SessionRow {
    pub(crate) fn new(session: &Session) -> Result<Self> {
        Ok(Self {
            id: session.id.clone(),
            executor: session.executor.clone(),
            profile: session.profile.clone(),
            tier: session.tier.map(Tier::as_str),
            labels: json(&session.labels)?,
            task_types: json(&session.task_types)?,
            reliability_permille: session.reliability_permille.map(i64::from),
            price_micros: to_bigint(session.price_micros),
            created_at: session.created_at.micros(),
        })
    }
}

pub(crate) fn read_session(cells: &impl DbRow) -> Result<Session> {
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

pub(crate) fn pool_of(executors: Vec<Executor>, sessions: Vec<Session>) -> SessionPool {
    let executors = executors.into_iter().map(|executor| (executor.name.clone(), executor));
    let sessions = sessions.into_iter().map(|session| (session.id.clone(), session));
    SessionPool { executors: executors.collect(), sessions: sessions.collect() }
}
