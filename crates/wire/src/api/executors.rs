//! The resource `/v1/executors`.

mod remote;

use std::borrow::Cow;

use jurat_core::{
    code::ProblemCode,
    executor::{
        BreakerState, Capabilities, Executor, Probe, breakers::PauseScope, session::Session,
    },
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        RefOr, SchemaFormat,
        schema::{ObjectBuilder, Schema, Type},
    },
};

use self::remote::{TargetNode, TargetScope, remote_target};
use super::{
    kit::{
        faults::RequestFaults,
        member::OptionalMember,
        request::{
            self, DraftField, DraftValue, FieldFault, FieldPath, Hidden, RequestField, SchemaParts,
            add_component, component, named, one_of, request, text,
            unknown::FieldShape,
            values,
            values::{ResourceName, text_of},
        },
        time::Time,
    },
    sessions::{self, SessionBody, SessionOfExecutor, SessionOfExecutorDraft},
};
use crate::problem::Problem;

/// An executor to register, with the session to add for it, if any.
#[derive(Debug, Clone)]
pub struct ExecutorOrder {
    pub executor: Executor,
    pub session: Option<Session>,
    /// Whether to refuse an executor that does not answer now.
    pub must_answer: bool,
}

request! {
    /// A request to register an executor.
    pub strict struct AddExecutorRequest, draft AddExecutorDraft {
        /// The name of the executor.
        name: ResourceName,
        /// Base URL, `http` or `https`, without credentials, query or fragment. With `remote`, the
        /// address of the executor as its own node knows it; this server never calls it.
        url: BaseUrl,
        /// Whether the executor belongs to another node, which calls it for this one; defaults to
        /// `false`. It needs `target_node`.
        remote: Option<bool>,
        /// The node of a remote executor: the public key of a peer, in 64 hexadecimal digits.
        target_node: Option<TargetNode>,
        /// The part of the network in which a remote executor is: `global`, `region:<name>`,
        /// `group:<name>` or `node:<public key>`. It is shown, and does not choose the node.
        scope: Option<TargetScope>,
        /// Name of the environment variable with the bearer token, set where the server runs.
        token_env: Option<EnvVariable>,
        /// Base URL under which `/agent-events` receives events; if left out, no events are sent.
        /// `agent_event_callback_base_url` is an alias.
        agent_events_url: Option<BaseUrl>,
        agent_event_callback_base_url: Hidden<BaseUrl>,
        /// The session to add with it; `false` for none; defaults to a session with the executor's
        /// name.
        session: Option<SessionChoice>,
        /// Registers the executor only if it is healthy and reports its capabilities now; if left out,
        /// it is registered anyway and `probe` shows its health.
        must_answer: Option<bool>,
    }
}

values! {
    /// An `http` or `https` URL without a query or a trailing slash.
    pub struct BaseUrl(String):
        text()
            .format(Some(SchemaFormat::Custom("uri".to_owned())))
            .pattern(Some(r"^https?://[^@?#\s]+$"))
        => base_url;

    /// The name of an environment variable.
    pub struct EnvVariable(String): text().pattern(Some("^[A-Za-z_][A-Za-z0-9_]*$")) => variable;
}

/// The session to add with an executor, or whether to add one.
#[derive(Debug)]
pub enum SessionChoice {
    /// Whether to add a session with default properties.
    Wanted(bool),
    /// The session to add.
    Session(SessionOfExecutor),
}

impl RequestField for SessionChoice {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        match value.as_bool() {
            Some(is_wanted) => Some(Self::Wanted(is_wanted)),
            None => SessionOfExecutor::read(value, at, faults).map(Self::Session),
        }
    }

    fn describe() -> RefOr<Schema> {
        component::<Self>()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        add_component::<Self>(parts);
    }

    fn shape() -> FieldShape {
        SessionOfExecutor::shape()
    }
}

/// The session to add with an executor, as a caller writes it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum SessionChoiceDraft {
    Wanted(bool),
    Session(SessionOfExecutorDraft),
}

impl DraftValue for SessionChoiceDraft {}

impl DraftField for SessionChoice {
    type Draft = SessionChoiceDraft;
}

named!(
    SessionChoice:
        one_of("The session to add with the executor, or a boolean for whether to add one.")
            .item(ObjectBuilder::new().schema_type(Type::Boolean))
            .item(SessionOfExecutor::describe()),
    with SessionOfExecutor
);

/// Reads a request to register an executor.
pub fn decode_add(body: &Value, now: Timestamp) -> Result<ExecutorOrder, Problem> {
    let new: AddExecutorRequest = request::read(body, ProblemCode::ValidationError)?;
    let remote = remote_target(&new)?;
    let name = new.name.0;
    let session = match new.session {
        Some(SessionChoice::Wanted(false)) => None,
        Some(SessionChoice::Wanted(true)) | None => Some(sessions::plain(&name, now)),
        Some(SessionChoice::Session(session)) => Some(session.session(&name, now)),
    };
    let executor = Executor {
        name,
        url: new.url.0,
        token_env: new.token_env.map(|it| it.0),
        agent_events_url: events_url(new.agent_events_url, new.agent_event_callback_base_url.0)?,
        remote,
        created_at: now,
        probe: None,
    };
    Ok(ExecutorOrder { executor, session, must_answer: new.must_answer.unwrap_or(false) })
}

/// The URL for events, from either of its two fields.
fn events_url(ours: Option<BaseUrl>, theirs: Option<BaseUrl>) -> Result<Option<String>, Problem> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours != theirs => Err(request::wrong(
            "agent_event_callback_base_url",
            "contradicts `agent_events_url`; leave one out",
        )),
        (ours, theirs) => Ok(ours.or(theirs).map(|url| url.0)),
    }
}

fn base_url(value: &Value) -> Result<String, FieldFault> {
    let Ok(url) = url::Url::parse(text_of(value)?) else {
        return Err("is not a URL; write it like http://127.0.0.1:8787".into());
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("must start with http:// or https:// and name a host".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason =
            "must not contain credentials; name an environment variable with `token_env` instead";
        return Err(reason.into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or a fragment".into());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn variable(value: &Value) -> Result<String, FieldFault> {
    let text = text_of(value)?;
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("must be the name of an environment variable, not a token".into())
    }
}

/// An executor and its current state.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Executor)]
pub struct ExecutorBody<'a> {
    pub name: Cow<'a, str>,
    pub url: Cow<'a, str>,
    /// Name of the environment variable with the bearer token.
    #[schema(required = true)]
    pub token_env: Option<Cow<'a, str>>,
    /// Base URL under which it receives events; null if it receives none.
    #[schema(required = true)]
    pub agent_events_url: Option<Cow<'a, str>>,
    /// Whether it belongs to another node, which calls it for this one.
    #[serde(default)]
    #[schema(required = true)]
    pub remote: bool,
    /// The node of a remote executor; null if it is called directly.
    #[schema(required = true)]
    pub target_node: Option<Cow<'a, str>>,
    /// The part of the network in which a remote executor is, if one was named.
    #[schema(required = true)]
    pub scope: Option<String>,
    pub created_at: Time,
    pub status: ExecutorStatus,
    pub circuit: CircuitBody,
    /// The last probe; null before the first.
    #[schema(required = true)]
    pub probe: Option<ProbeBody<'a>>,
    /// Only in the reply to `POST`: the added session, or null.
    #[serde(default, skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<SessionBody>)]
    pub session: OptionalMember<SessionBody<'a>>,
    /// Only in the reply to `POST`, if there are any: the names of other executors at the same URL.
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub same_url: Cow<'a, [String]>,
}

/// Status of an executor; `resting` while its circuit breaker is open.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorStatus {
    Unchecked,
    Up,
    Down,
    Resting,
}

/// Circuit breaker, which stops calls to a failing executor.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Circuit)]
pub struct CircuitBody {
    pub state: CircuitState,
    /// With `open`: when calls resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Time)]
    pub until: Option<Time>,
    /// Unless `closed`: `all`, or `some` if it failed for single accounts and is blocked only for
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = CircuitScope)]
    pub rests_for: Option<CircuitScope>,
}

/// Which accounts a resting executor is blocked for.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CircuitScope {
    All,
    Some,
}

/// State of the circuit breaker: calls are made while it is `closed`.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    Closed,
    Open,
    HalfOpen,
}

/// Result of a probe: health and capabilities.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Probe)]
pub struct ProbeBody<'a> {
    pub at: Time,
    /// Whether both health and capabilities are ok.
    pub ok: bool,
    pub health: HealthBody<'a>,
    pub capabilities: CapabilitiesBody<'a>,
    /// Only in the reply to a check: the name of the executor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub name: Option<Cow<'a, str>>,
    /// Only in the reply to a check of an executor that is registered with `agent_events_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = EventsProbeBody<'_>)]
    pub agent_events: Option<EventsProbeBody<'a>>,
}

/// Whether the executor's event URL responds.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ExecutorEventsProbe)]
pub struct EventsProbeBody<'a> {
    pub url: Cow<'a, str>,
    pub ok: bool,
    #[schema(required = true)]
    pub error: Option<Cow<'a, str>>,
}

/// Result of `/health` of an executor.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ExecutorHealth)]
pub struct HealthBody<'a> {
    pub ok: bool,
    #[schema(required = true)]
    pub error: Option<Cow<'a, str>>,
}

/// Result of `/capabilities` of an executor, or why it cannot be used.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = Capabilities)]
pub struct CapabilitiesBody<'a> {
    pub ok: bool,
    /// Only if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub error: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>)]
    pub task_types: Option<Cow<'a, [String]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>)]
    pub profiles: Option<Cow<'a, [String]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub provider_family: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub model_id: Option<Cow<'a, str>>,
    /// Policies beyond the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>)]
    pub policies: Option<Cow<'a, [String]>>,
}

/// An executor with its circuit breaker and last probe.
pub fn body(
    executor: &Executor,
    (circuit, rests_for): (BreakerState, PauseScope),
) -> ExecutorBody<'_> {
    let node = executor.remote.as_ref().and_then(|it| it.node.as_ref());
    ExecutorBody {
        name: Cow::Borrowed(&executor.name),
        url: Cow::Borrowed(&executor.url),
        token_env: executor.token_env.as_deref().map(Cow::Borrowed),
        agent_events_url: executor.agent_events_url.as_deref().map(Cow::Borrowed),
        remote: executor.remote.is_some(),
        target_node: node.map(|it| Cow::Borrowed(it.as_str())),
        scope: executor.remote.as_ref().and_then(|it| it.scope.as_ref()).map(ToString::to_string),
        created_at: Time(executor.created_at),
        status: status(executor.probe.as_ref(), circuit),
        circuit: circuit_body(circuit, rests_for),
        probe: executor.probe.as_ref().map(probe_body),
        session: OptionalMember::LeftOut,
        same_url: Cow::Borrowed(&[]),
    }
}

impl<'a> ExecutorBody<'a> {
    /// Adds the session that was created with the executor.
    #[must_use]
    pub fn with_session(self, session: Option<SessionBody<'a>>) -> Self {
        Self { session: OptionalMember::Is(session), ..self }
    }

    /// Adds the names of other executors at the same URL.
    #[must_use]
    pub fn beside(self, same_url: &'a [String]) -> Self {
        Self { same_url: Cow::Borrowed(same_url), ..self }
    }
}

/// The executor's status; an open circuit takes precedence over the last probe.
fn status(probe: Option<&Probe>, circuit: BreakerState) -> ExecutorStatus {
    match (probe, circuit) {
        (_, BreakerState::Open(_)) => ExecutorStatus::Resting,
        (None, _) => ExecutorStatus::Unchecked,
        (Some(probe), _) if probe.is_healthy() => ExecutorStatus::Up,
        (Some(_), _) => ExecutorStatus::Down,
    }
}

fn circuit_body(circuit: BreakerState, rests_for: PauseScope) -> CircuitBody {
    let (state, until) = match circuit {
        BreakerState::Closed => (CircuitState::Closed, None),
        BreakerState::HalfOpen => (CircuitState::HalfOpen, None),
        BreakerState::Open(until) => (CircuitState::Open, Some(Time(until))),
    };
    let rests_for = match rests_for {
        PauseScope::All => CircuitScope::All,
        PauseScope::Some => CircuitScope::Some,
    };
    let is_closed = circuit == BreakerState::Closed;
    CircuitBody { state, until, rests_for: (!is_closed).then_some(rests_for) }
}

/// Result of a probe: health and capabilities.
pub fn probe_body(probe: &Probe) -> ProbeBody<'_> {
    ProbeBody {
        at: Time(probe.at),
        ok: probe.is_healthy(),
        health: HealthBody {
            ok: probe.health_error.is_none(),
            error: probe.health_error.as_deref().map(Cow::Borrowed),
        },
        capabilities: capabilities_body(&probe.capabilities),
        name: None,
        agent_events: None,
    }
}

impl<'a> ProbeBody<'a> {
    /// Adds the name of the executor, and the URL for its events with the error, if that URL
    /// failed.
    #[must_use]
    pub fn of(self, name: &'a str, events: Option<(&'a str, Option<&'a str>)>) -> Self {
        let agent_events = events.map(|(url, error)| EventsProbeBody {
            url: Cow::Borrowed(url),
            ok: error.is_none(),
            error: error.map(Cow::Borrowed),
        });
        Self { name: Some(Cow::Borrowed(name)), agent_events, ..self }
    }
}

/// What an executor can do, or why it cannot be used.
pub(super) fn capabilities_body(reported: &Result<Capabilities, String>) -> CapabilitiesBody<'_> {
    let capabilities = match reported {
        Ok(capabilities) => capabilities,
        Err(error) => {
            let error = Some(Cow::Borrowed(error.as_str()));
            return CapabilitiesBody { error, ..CapabilitiesBody::default() };
        }
    };
    CapabilitiesBody {
        ok: true,
        error: None,
        task_types: Some(Cow::Borrowed(&capabilities.task_types)),
        profiles: Some(Cow::Borrowed(&capabilities.profiles)),
        provider_family: Some(Cow::Borrowed(&capabilities.provider_family)),
        model_id: Some(Cow::Borrowed(&capabilities.model_id)),
        policies: Some(Cow::Borrowed(&capabilities.policies)),
    }
}
