//! The resource `/v1/agent-events`: signed messages to executors besides their work.

use std::borrow::Cow;

use jurat_core::{
    code::ProblemCode,
    task::agent_event::{AgentEventOrder, AgentEventType, Delivery},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        RefOr,
        schema::{ArrayBuilder, ObjectBuilder, Schema, Type, empty},
    },
};

use super::kit::{
    faults::RequestFaults,
    request::{
        self, DraftField, FieldFault, FieldPath, RequestField, SchemaParts, object, one_of,
        request, text,
        unknown::FieldShape,
        values,
        values::{NAME, NOT_BLANK, NotBlank, anything, filled_text, is_name},
    },
    time::Time,
    words,
};
use crate::{
    executor::{AgentDecision, AgentEvent},
    problem::Problem,
};

/// Maximum size of an event's content, in bytes of JSON.
const MOST_BYTES: usize = 65_536;
const LONGEST_LABEL: usize = 256;

request! {
    /// An event to send to an executor. Events of tasks are caused by tasks, and cannot be sent.
    pub strict struct SendAgentEventRequest, draft SendAgentEventDraft {
        event_type: SendableEvent,
        /// An executor that is registered with `agent_events_url`.
        target_executor: EventTarget,
        payload: EventPayload,
        /// The node it comes from, according to its sender; never the public key of a node, which is 64
        /// hex digits.
        source_node_id: Option<EventLabel>,
        target_agent_id: Option<EventLabel>,
        /// The envelope it came in, passed on unchanged.
        agent_envelope: Option<PassedEnvelope>,
        /// Whether the sender waits for a decision; defaults to false.
        requires_commit: Option<bool>,
        correlation_id: Option<EventLabel>,
        /// Deduplication key: repeating it for the same executor returns the existing event. The
        /// executor receives a key derived from it.
        dedupe_key: Option<EventLabel>,
    }

    /// An envelope of a message between agents; other members are passed on unchanged.
    pub open struct AgentEnvelope {
        protocol: NotBlank,
    }
}

values! {
    /// Types of events that can be sent.
    pub named struct SendableEvent(AgentEventType as String):
        text()
            .description(Some("Types of events that can be sent."))
            .enum_values(Some(sendable()))
        => event_type;

    /// The executor that an event is sent to.
    pub struct EventTarget(String): text().pattern(Some(NAME)) => target;

    /// The content of an event.
    pub named struct EventPayload(Value):
        one_of("The content of the event: at most 65536 bytes, including the envelope.")
            .item(object())
            .item(text())
            .item(ArrayBuilder::new().items(RefOr::T(empty())))
            .item(ObjectBuilder::new().schema_type(Type::Number))
            .item(ObjectBuilder::new().schema_type(Type::Boolean))
        => anything;

    /// A short text about an event.
    pub struct EventLabel(String):
        text().pattern(Some(NOT_BLANK)).max_length(Some(LONGEST_LABEL)) => label;
}

/// A checked envelope, which is passed on unchanged.
#[derive(Debug)]
pub struct PassedEnvelope(pub Value);

impl RequestField for PassedEnvelope {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        AgentEnvelope::read(value, at, faults).map(|_| Self(value.clone()))
    }

    fn describe() -> RefOr<Schema> {
        AgentEnvelope::describe()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        AgentEnvelope::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        AgentEnvelope::shape()
    }
}

impl DraftField for PassedEnvelope {
    type Draft = Value;
}

/// Reads an event to send; a problem names all faults.
pub fn decode_send(body: &Value) -> Result<AgentEventOrder, Problem> {
    let code = ProblemCode::ValidationError;
    let event: SendAgentEventRequest =
        request::read_all(body, code).map_err(|faults| faults.into_problem(code))?;
    let envelope = event.agent_envelope.map(|envelope| envelope.0);
    let envelope_bytes = envelope.as_ref().map_or(0, |it| it.to_string().len());
    if MOST_BYTES < event.payload.0.to_string().len() + envelope_bytes {
        let reason = format!("must have at most {MOST_BYTES} bytes, including the envelope");
        return Err(request::wrong("payload", &reason));
    }
    let text = |label: Option<EventLabel>| label.map(|label| label.0);
    Ok(AgentEventOrder {
        event_type: event.event_type.0,
        target_executor: event.target_executor.0,
        payload: event.payload.0,
        source_node_id: text(event.source_node_id),
        target_agent_id: text(event.target_agent_id),
        agent_envelope: envelope,
        requires_commit: event.requires_commit.unwrap_or_default(),
        correlation_id: text(event.correlation_id),
        dedupe_key: text(event.dedupe_key),
    })
}

fn sendable() -> Vec<&'static str> {
    AgentEventType::ALL.iter().filter(|it| it.is_sendable()).map(|it| it.as_str()).collect()
}

fn event_type(value: &Value) -> Result<AgentEventType, FieldFault> {
    let known: Option<AgentEventType> = filled_text(value)?.parse().ok();
    if let Some(event_type) = known.filter(|it| it.is_sendable()) {
        return Ok(event_type);
    }
    let sendable = sendable().join(", ");
    let reason = if known.is_some() {
        format!("is caused by tasks only; send one of {sendable}")
    } else {
        format!("must be one of {sendable}")
    };
    Err(reason.into())
}

fn target(value: &Value) -> Result<String, FieldFault> {
    let text = filled_text(value)?;
    if is_name(text) { Ok(text.to_owned()) } else { Err("is not a valid executor name".into()) }
}

fn label(value: &Value) -> Result<String, FieldFault> {
    let text = filled_text(value)?;
    if LONGEST_LABEL < text.chars().count() {
        return Err(format!("must have at most {LONGEST_LABEL} characters").into());
    }
    Ok(text.to_owned())
}

/// The parts of an event that replies show.
#[derive(Debug, Clone, Copy)]
pub struct AgentEventView<'a> {
    pub id: &'a str,
    pub direction: jurat_core::task::agent_event::EventDirection,
    pub executor: &'a str,
    pub event_type: &'a str,
    pub source_kind: &'a str,
    pub dedupe_key: Option<&'a str>,
    pub state: Delivery,
    pub attempts: u32,
    pub next_at: Option<Timestamp>,
    pub decision: Option<&'a Value>,
    pub last_error: Option<&'a str>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The whole event, as the executor receives it.
    pub event: Option<&'a Value>,
}

/// An event to an executor, with its delivery state.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = AgentEventEntry)]
pub struct AgentEventEntry<'a> {
    pub event_id: Cow<'a, str>,
    pub direction: words::AgentEventDirection,
    pub target_executor: Cow<'a, str>,
    pub event_type: Cow<'a, str>,
    pub source_kind: Cow<'a, str>,
    /// The key as it was sent.
    #[schema(required = true)]
    pub dedupe_key: Option<Cow<'a, str>>,
    pub state: words::AgentEventState,
    /// Number of delivery attempts.
    pub attempts: u32,
    /// When the next delivery attempt is due; null if there is none.
    #[schema(required = true)]
    pub next_attempt_at: Option<Time>,
    /// What the executor decided.
    #[schema(required = true, value_type = Option<AgentDecision>)]
    pub decision: Option<Cow<'a, Value>>,
    /// Whether the executor asks for human review.
    pub needs_review: bool,
    /// Why delivery failed, or why the decision has no effect.
    #[schema(required = true)]
    pub last_error: Option<Cow<'a, str>>,
    pub created_at: Time,
    pub updated_at: Time,
    /// The whole event as the executor receives it; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = AgentEvent)]
    pub event: Option<Cow<'a, Value>>,
}

impl AgentEventEntry<'_> {
    /// The executor's decision, if it gave one.
    pub fn decision(&self) -> Option<AgentDecision> {
        AgentDecision::deserialize(self.decision.as_deref()?).ok()
    }
}

/// The entry of an event in a reply.
pub fn entry(view: AgentEventView<'_>) -> AgentEventEntry<'_> {
    AgentEventEntry {
        event_id: Cow::Borrowed(view.id),
        direction: words::AgentEventDirection(view.direction),
        target_executor: Cow::Borrowed(view.executor),
        event_type: Cow::Borrowed(view.event_type),
        source_kind: Cow::Borrowed(view.source_kind),
        dedupe_key: view.dedupe_key.map(Cow::Borrowed),
        state: words::AgentEventState(view.state),
        attempts: view.attempts,
        next_attempt_at: view.next_at.map(Time),
        decision: view.decision.map(Cow::Borrowed),
        needs_review: view.decision.is_some_and(|it| it["action"] == "human_review"),
        last_error: view.last_error.map(Cow::Borrowed),
        created_at: Time(view.created_at),
        updated_at: Time(view.updated_at),
        event: view.event.map(Cow::Borrowed),
    }
}
