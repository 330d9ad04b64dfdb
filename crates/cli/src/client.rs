//! How commands reach the engine: over HTTP, or through the same router in this process.

mod events;
mod follow;
mod transport;

use std::{io, time::Duration};

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use jurat_core::time::Timestamp;
use jurat_guard::client::{CallError, ClientLimits, OutboundClient as HttpClient};
use jurat_store::{StoreLocation, TakeoverScope};
use serde_json::Value;

pub(crate) use self::events::SseEvent;
use self::{
    events::SseReader,
    transport::{InProcessServer, StreamingReply, Transport},
};
use crate::{
    config::{CliConfig, StoreChoice},
    failure::{CliFailure, RETRY_AFTER},
    lock_wait::retry_while_locked,
    node,
    output::Output,
    state::{StateError, StateFolder, StoreLock, store_name},
};

/// Five replicas may each say as much as one executor may.
const LARGEST_REPLY: usize = 64 * 1024 * 1024;
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);
const NO_KEY: &str = "the database has an operator's key, but this folder has none; set JURAT_KEY, copy `admin.key` from another node, or start `jurat serve --new-admin-key` once";
/// Longer than any round may take.
const LONGEST_ROUND: Duration = Duration::from_secs(630);

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("cannot use the server at {url}; is it running? start it with `jurat serve`")]
    Call { url: String, source: CallError },
    #[error("the reply is incomplete")]
    InProcess(#[source] axum::Error),
    #[error("the key has characters that a header cannot hold; check JURAT_KEY or `admin.key`")]
    Key,
    #[error("the request could not be built")]
    Request(#[from] http::Error),
    #[error("the reply does not come from a Jurat server (status {status}); check `--server`")]
    Foreign { status: StatusCode },
}

#[derive(Debug)]
pub(crate) struct ApiClient {
    transport: Transport,
    /// Nothing for calls that send none.
    key: Option<HeaderValue>,
}

/// What a command may use: a server, or the store itself.
enum StoreAccess {
    Server(Box<ApiClient>),
    Lock(Option<StoreLock>),
}

/// One request to the API.
#[derive(Debug, Clone)]
pub(crate) struct ApiCall {
    method: Method,
    path: String,
    body: Option<CallBody>,
    headers: Vec<(&'static str, String)>,
    /// How long the whole reply may take.
    within: Duration,
}

/// The body of a request.
#[derive(Debug, Clone)]
enum CallBody {
    Value(Value),
    /// JSON as somebody else wrote it.
    Written(Bytes),
}

impl From<CallBody> for Bytes {
    fn from(content: CallBody) -> Self {
        match content {
            CallBody::Value(value) => Self::from(value.to_string()),
            CallBody::Written(bytes) => bytes,
        }
    }
}

impl ApiCall {
    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path, None)
    }

    pub(crate) fn delete(path: String) -> Self {
        Self::new(Method::DELETE, path, None)
    }

    pub(crate) fn patch(path: String, body: Value) -> Self {
        Self::new(Method::PATCH, path, Some(CallBody::Value(body)))
    }

    /// Sends a body along with a method that seldom has one.
    pub(crate) fn sending(self, body: Value) -> Self {
        Self { body: Some(CallBody::Value(body)), ..self }
    }

    pub(crate) fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::POST, path.into(), Some(CallBody::Value(body)))
    }

    /// Sends JSON as somebody else wrote it.
    pub(crate) fn post_written(path: impl Into<String>, body: Bytes) -> Self {
        Self::new(Method::POST, path.into(), Some(CallBody::Written(body)))
    }

    fn new(method: Method, path: String, body: Option<CallBody>) -> Self {
        Self { method, path, body, headers: Vec::new(), within: LONGEST_ROUND }
    }

    /// Has more patience, or less.
    pub(crate) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Adds a header where there is a value for it.
    pub(crate) fn with(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.headers.extend(value.map(|value| (name, value.to_owned())));
        self
    }
}

/// A reply as it came.
#[derive(Debug, Clone)]
pub(crate) struct ApiReply {
    pub(crate) bytes: Bytes,
    pub(crate) value: Value,
    /// The clock of the server; without one there is only this machine.
    pub(crate) date: Option<Timestamp>,
    is_problem: bool,
}

impl ApiReply {
    fn new(status: StatusCode, bytes: Bytes) -> Result<Self, ClientError> {
        let value: Value = if status == StatusCode::NO_CONTENT {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).map_err(|_| ClientError::Foreign { status })?
        };
        Ok(Self { bytes, value, date: None, is_problem: !status.is_success() })
    }

    /// A reply that was put together here.
    pub(crate) fn made(value: Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        Self { bytes, value, date: None, is_problem: false }
    }

    /// A problem tells when to try again, which stands in a header.
    fn with_retry(mut self, seconds: Option<u64>) -> Self {
        if let (true, Some(seconds), Some(body)) =
            (self.is_problem, seconds, self.value.as_object_mut())
        {
            body.insert(RETRY_AFTER.to_owned(), seconds.into());
        }
        self
    }

    /// The body, unless it is a problem.
    pub(crate) fn success(self) -> Result<Self, CliFailure> {
        if self.is_problem { Err(CliFailure::Refused(self.value)) } else { Ok(self) }
    }

    pub(crate) const fn is_problem(&self) -> bool {
        self.is_problem
    }
}

impl ApiClient {
    /// Finds the server of the state folder, or takes the lock and does the work here.
    pub(crate) async fn connect(config: &CliConfig, out: Output) -> anyhow::Result<Self> {
        if let Some(url) = &config.server {
            return Self::named(config, url);
        }
        let state = StateFolder::of_another(&config.state_dir)?;
        // Another command ends soon; a server that starts soon answers; one that stops is soon gone.
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

    pub(crate) fn http(url: &str, key: &str) -> Result<Self, ClientError> {
        let limits = ClientLimits { body_bytes: LARGEST_REPLY, ..ClientLimits::default() };
        let client = HttpClient::new(limits)
            .map_err(|source| ClientError::Call { url: url.to_owned(), source })?;
        Ok(Self {
            transport: Transport::Http { client: Box::new(client), url: url.to_owned() },
            key: Some(bearer(key)?),
        })
    }

    /// The key of this folder goes to a server on this machine, and to no other.
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
        Ok(Self::http(url, &key)?)
    }

    /// The server that runs in the state folder. It has the store that is wanted, unless nobody
    /// says which; without its answer, only a store that was named can be opened past it.
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
        if client.transport.answers(HEALTH_TIMEOUT).await {
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
        let terms = (config.judges.clone(), node::accounts(config)?);
        let engine = node::engine(state, &config.store, config.limits, terms);
        let engine = engine.await?;
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
        let transport = Transport::InProcess(Box::new(InProcessServer::new(engine, lock)));
        Ok(Self { transport, key: Some(bearer(&key)?) })
    }

    /// Sends no key from here on.
    pub(crate) fn forget_key(&mut self) {
        self.key = None;
    }

    /// Sends a request and returns the reply.
    pub(crate) async fn send(&self, call: ApiCall) -> Result<ApiReply, ClientError> {
        let mut arriving = self.begin(call, "application/json").await?;
        let bytes = arriving.rest().await?;
        let reply = ApiReply::new(arriving.status, bytes)?.with_retry(arriving.retry_after);
        Ok(ApiReply { date: arriving.date, ..reply })
    }

    /// Sends a request and shows its events on the way to the reply, which is the event `last`.
    pub(crate) async fn watch(
        &self,
        call: ApiCall,
        last: &str,
        mut show: impl FnMut(&SseEvent),
    ) -> Result<ApiReply, ClientError> {
        let mut arriving = self.begin(call, "text/event-stream").await?;
        if !arriving.is_events {
            let bytes = arriving.rest().await?;
            return Ok(ApiReply::new(arriving.status, bytes)?.with_retry(arriving.retry_after));
        }
        let mut reader = SseReader::default();
        while let Some(chunk) = arriving.next().await? {
            for event in reader.push(&chunk) {
                match event.name.as_str() {
                    name if name == last => {
                        return ApiReply::new(StatusCode::OK, Bytes::from(event.data));
                    }
                    jurat_wire::api::events::ERROR => {
                        let status = StatusCode::INTERNAL_SERVER_ERROR;
                        return ApiReply::new(status, Bytes::from(event.data));
                    }
                    _ => show(&event),
                }
            }
        }
        Err(ClientError::Foreign { status: arriving.status })
    }

    /// Sends a message and hands over every message that comes back for it.
    pub(crate) async fn exchange(
        &self,
        call: ApiCall,
        mut take: impl FnMut(&str) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut arriving = self.begin(call, "application/json, text/event-stream").await?;
        if !arriving.is_events {
            let bytes = arriving.rest().await?;
            return Ok(take(&String::from_utf8_lossy(&bytes))?);
        }
        let mut reader = SseReader::default();
        while let Some(chunk) = arriving.next().await? {
            for event in reader.push(&chunk) {
                take(&event.data)?;
            }
        }
        Ok(())
    }

    /// Whether the work is done by this process, and ends with it.
    pub(crate) const fn is_in_process(&self) -> bool {
        matches!(self.transport, Transport::InProcess(_))
    }

    /// Works on runs and their tasks in this process, where no server does.
    pub(crate) fn work_on_agent_runs(&self) {
        self.transport.work_on_agent_runs();
    }

    /// Drives tasks in this process, where there is no server that does.
    pub(crate) fn drive_tasks(&self) {
        self.transport.drive_tasks();
    }

    /// Lets go of the store, after what is under way has ended.
    pub(crate) async fn close(self) {
        self.transport.close().await;
    }

    async fn begin(
        &self,
        call: ApiCall,
        accept: &'static str,
    ) -> Result<StreamingReply, ClientError> {
        let within = call.within;
        let mut request = http::Request::builder()
            .method(call.method)
            .uri(self.transport.address(&call.path))
            .header(header::ACCEPT, accept);
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, key.clone());
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = call.body.map(Bytes::from).unwrap_or_default();
        self.transport.begin(request.body(body)?, within).await
    }
}

/// The key in the folder, as it is sent.
fn kept_key(state: &StateFolder) -> Result<Option<String>, StateError> {
    Ok(state.existing_admin_key()?.map(|key| key.reveal()))
}

fn bearer(key: &str) -> Result<HeaderValue, ClientError> {
    let value = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut value = value.map_err(|_| ClientError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A path whose last part came from the user.
pub(crate) fn path(base: &str, parts: &[&str]) -> String {
    let Ok(mut url) = url::Url::parse("http://localhost") else { return base.to_owned() };
    url.set_path(base);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.extend(parts);
    }
    url.path().to_owned()
}

/// A path with those parameters that have a value.
pub(crate) fn query(base: &str, parameters: &[(&str, Option<String>)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        if let Some(value) = value {
            text.append_pair(name, value);
        }
    }
    let text = text.finish();
    if text.is_empty() { base.to_owned() } else { format!("{base}?{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_input_stays_within_its_part_of_the_url() {
        assert_eq!(path("/v1/rounds", &["a/b ?c"]), "/v1/rounds/a%2Fb%20%3Fc");
        assert_eq!(path("/v1/executors", &["x", "check"]), "/v1/executors/x/check");
        let parameters = [("kind", Some("a&b".to_owned())), ("limit", None)];
        assert_eq!(query("/v1/rounds", &parameters), "/v1/rounds?kind=a%26b");
        assert_eq!(query("/v1/rounds", &[("limit", None)]), "/v1/rounds");
    }
}
