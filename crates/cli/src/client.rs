//! Finds a server for a command, or opens the store and serves the command in this process.

mod follow;
mod transport;

use std::{io, time::Duration};

use anyhow::Context as _;
use jurat_client::Client;
pub(crate) use jurat_client::{Call, ClientError, Page, Refusal, Reply, SseEvent};
use jurat_guard::client::{ClientLimits, OutboundClient as HttpClient};
use jurat_store::{StoreLocation, TakeoverScope};
use serde::de::DeserializeOwned;

use self::transport::{InProcessServer, ServerTransport, TransportError};
use crate::{
    config::{CliConfig, StoreChoice},
    failure::CliFailure,
    lock_wait::retry_while_locked,
    node::{self, EngineSettings},
    output::Output,
    state::{StateError, StateFolder, StoreLock, store_name},
};

/// Maximum size of a reply: each of five replicas may be as large as the answer of one executor.
const LARGEST_REPLY: usize = 64 * 1024 * 1024;
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);
const NO_KEY: &str = "the database has an operator's key, but this folder has none; set JURAT_KEY, copy `admin.key` from another node, or start `jurat serve --new-admin-key` once";

/// A client of a server, or of the same router in this process.
#[derive(Debug)]
pub(crate) struct ApiClient {
    client: Client<ServerTransport>,
}

/// Access to the store: through a server, or directly with its lock.
enum StoreAccess {
    Server(Box<ApiClient>),
    Lock(Option<StoreLock>),
}

impl ApiClient {
    /// Finds the server of the state folder, or takes the lock and does the work in this process.
    pub(crate) async fn connect(config: &CliConfig, out: Output) -> anyhow::Result<Self> {
        if let Some(url) = &config.server {
            return Self::named(config, url);
        }
        let state = StateFolder::of_another(&config.state_dir)?;
        // These pass soon: another command ends, and a server finishes starting or stopping.
        let passes = |error: &StateError| {
            use StateError::{Locked, Served, Silent};
            matches!(error, Locked { .. } | Served { .. } | Silent { .. })
        };
        let attempt = async || match Self::running(config, &state).await? {
            Some(client) => Ok(StoreAccess::Server(Box::new(client))),
            None => Ok(StoreAccess::Lock(state.lock(&config.store)?)),
        };
        match retry_while_locked(passes, |text| out.note(text), attempt).await? {
            StoreAccess::Server(client) => Ok(*client),
            StoreAccess::Lock(lock) => Self::in_process(config, &state, lock).await,
        }
    }

    pub(crate) fn http(url: &str, key: &str) -> anyhow::Result<Self> {
        let limits = ClientLimits { body_bytes: LARGEST_REPLY, ..ClientLimits::default() };
        let client = HttpClient::new(limits)
            .map_err(|source| TransportError::Http { url: url.to_owned(), source })?;
        let transport = ServerTransport::Http { client: Box::new(client), url: url.to_owned() };
        Ok(Self { client: Client::new(transport, key)? })
    }

    /// A client of the server at this URL. The state folder's own key is sent only to a server on
    /// this machine.
    fn named(config: &CliConfig, url: &str) -> anyhow::Result<Self> {
        let parsed = url::Url::parse(url).context("the address of the server is not a URL")?;
        let is_local = match parsed.host() {
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        };
        let state = StateFolder::existing(&config.state_dir);
        let key = match config.key.clone().or_else(|| state.login_for(url)) {
            None if is_local => kept_key(&state)?,
            found => found,
        };
        let key = key.context("there is no key for this server; set the variable JURAT_KEY")?;
        Self::http(url, &key)
    }

    /// The server that runs in the state folder. It must use the store that the user named, if any.
    /// If the server does not answer, the command may open only a store that the user named.
    async fn running(config: &CliConfig, state: &StateFolder) -> anyhow::Result<Option<Self>> {
        let Some(server) = state.server() else { return Ok(None) };
        let wanted = store_name(&config.store);
        if config.store_chosen == StoreChoice::ByUser && server.store != wanted {
            return Err(StateError::OtherStore { running: server.store, wanted }.into());
        }
        let key = match &config.key {
            Some(key) => Some(key.clone()),
            None => match state.login_for("") {
                None => kept_key(state)?,
                found => found,
            },
        };
        let client = Self::http(&server.url, key.as_deref().unwrap_or_default())?;
        if client.client.transport().answers(HEALTH_TIMEOUT).await {
            return if key.is_some() { Ok(Some(client)) } else { Err(CliFailure::usage(NO_KEY)) };
        }
        match config.store_chosen {
            StoreChoice::ByUser => Ok(None),
            StoreChoice::ByDefault => {
                Err(StateError::Silent { pid: server.pid, url: server.url }.into())
            }
        }
    }

    async fn in_process(
        config: &CliConfig,
        state: &StateFolder,
        lock: Option<StoreLock>,
    ) -> anyhow::Result<Self> {
        let settings = EngineSettings::of(config)?;
        let engine = node::engine(state, &config.store, settings).await?;
        let orphans = match config.store {
            StoreLocation::Memory | StoreLocation::File(_) => TakeoverScope::All,
            StoreLocation::Postgres { .. } => TakeoverScope::LeaseOver,
        };
        engine.expire_orphans(orphans).await?;
        let key = match &config.key {
            Some(key) => key.clone(),
            None => match state.login_for("") {
                Some(key) => key,
                None => kept_key(state)?.ok_or_else(|| CliFailure::usage(NO_KEY.to_owned()))?,
            },
        };
        let server = InProcessServer::new(engine, lock);
        let transport = ServerTransport::InProcess(Box::new(server));
        Ok(Self { client: Client::new(transport, &key)? })
    }

    /// Stops sending the key.
    pub(crate) fn forget_key(&mut self) {
        self.client.forget_key();
    }

    /// Sends a call and returns its reply.
    pub(crate) async fn send<R: DeserializeOwned>(
        &self,
        call: Call<R>,
    ) -> Result<Reply<R>, ClientError> {
        self.client.send(call).await
    }

    /// Sends a call and shows its events until the event `last`, which is the reply.
    pub(crate) async fn watch<R: DeserializeOwned>(
        &self,
        call: Call<R>,
        last: &str,
        show: impl FnMut(&SseEvent) + Send,
    ) -> Result<Reply<R>, ClientError> {
        self.client.watch(call, last, show).await
    }

    /// Sends a message and passes each message of the reply to `take`.
    pub(crate) async fn exchange(
        &self,
        call: Call<()>,
        take: impl FnMut(&str) -> io::Result<()> + Send,
    ) -> anyhow::Result<()> {
        Ok(self.client.exchange(call, take).await??)
    }

    /// Whether this process does the work, which then ends with the process.
    pub(crate) const fn is_in_process(&self) -> bool {
        matches!(self.client.transport(), ServerTransport::InProcess(_))
    }

    /// Works on runs and their tasks in this process, if no server does.
    pub(crate) fn work_on_agent_runs(&self) {
        self.client.transport().work_on_agent_runs();
    }

    /// Drives tasks in this process, if no server does.
    pub(crate) fn drive_tasks(&self) {
        self.client.transport().drive_tasks();
    }

    /// Waits until this process has no round in progress.
    pub(crate) async fn rounds_ended(&self) {
        self.client.transport().rounds_ended().await;
    }

    /// Ends the rounds that this process has in progress, because it ends.
    pub(crate) async fn release_rounds(&self) {
        self.client.transport().release_rounds().await;
    }

    /// Releases the store after the work in progress has ended.
    pub(crate) async fn close(self) {
        self.client.into_transport().close().await;
    }
}

/// The admin key in the state folder, as text.
fn kept_key(state: &StateFolder) -> Result<Option<String>, StateError> {
    Ok(state.existing_admin_key()?.map(|key| key.reveal()))
}
