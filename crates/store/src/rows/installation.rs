//! Rows of executors, sessions and keys.

use std::collections::BTreeSet;

use jurat_core::{
    caller::Scope,
    executor::{Executor, Probe},
    id::AccountId,
    session::{Pool, Session, Tier},
    time::Timestamp,
};

use super::{Cells, Columns, documents::ProbeDocument, json, to_bigint};
use crate::{KeyRecord, Result};

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

pub(crate) fn read_executor(cells: &impl Cells) -> Result<Executor> {
    let columns = Columns::new(cells, "executors", "name")?;
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

pub(crate) fn read_session(cells: &impl Cells) -> Result<Session> {
    let columns = Columns::new(cells, "sessions", "id")?;
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

pub(crate) fn pool_of(executors: Vec<Executor>, sessions: Vec<Session>) -> Pool {
    let executors = executors.into_iter().map(|executor| (executor.name.clone(), executor));
    let sessions = sessions.into_iter().map(|session| (session.id.clone(), session));
    Pool { executors: executors.collect(), sessions: sessions.collect() }
}

pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) secret_hash: String,
    pub(crate) scopes: String,
    pub(crate) name: String,
    pub(crate) created_at: i64,
    pub(crate) revoked_at: Option<i64>,
}

impl KeyRow {
    pub(crate) fn new(key: &KeyRecord) -> Result<Self> {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        Ok(Self {
            id: key.id.clone(),
            account_id: key.account.to_string(),
            secret_hash: hex::encode(key.secret_hash),
            scopes: json(&scopes)?,
            name: key.name.clone(),
            created_at: key.created_at.micros(),
            revoked_at: key.revoked_at.map(Timestamp::micros),
        })
    }
}

pub(crate) fn read_key(cells: &impl Cells) -> Result<KeyRecord> {
    let columns = Columns::new(cells, "api_keys", "id")?;
    let mut secret_hash = [0; 32];
    hex::decode_to_slice(columns.text("secret_hash")?, &mut secret_hash)
        .map_err(|why| columns.bad("secret_hash", why))?;
    let scopes: Vec<String> = columns.document("scopes")?;
    let scopes = scopes.iter().map(|scope| columns.parse("scopes", scope));
    Ok(KeyRecord {
        id: columns.text("id")?,
        account: columns.id("account_id", AccountId::parse)?,
        secret_hash,
        scopes: scopes.collect::<Result<BTreeSet<Scope>>>()?,
        name: columns.text("name")?,
        created_at: columns.time("created_at")?,
        revoked_at: columns.maybe_time("revoked_at")?,
    })
}
