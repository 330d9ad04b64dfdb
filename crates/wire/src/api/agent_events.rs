//! The resource `/v1/agent-events`: what executors are told besides their work.

use jurat_core::{
    code::ProblemCode,
    task::agent_event::{AgentEventType, Delivery},
    time::Timestamp,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    kit::{
        choices::EventPayload, faults::RequestFaults, fields::RequestFields,
        known_fields::SearchDepth, time::Time, words,
    },
    tasks::is_name,
};
use crate::{executor::AgentEvent, problem::Problem};

/// How much an event may say, in bytes of JSON.
const MOST_BYTES: usize = 65_536;
const LONGEST_NAME: usize = 256;

/// An event from outside to an executor.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventOrder {
    pub event_type: AgentEventType,
    pub target_executor: String,
    pub payload: Value,
    pub source_node_id: Option<String>,
    pub target_agent_id: Option<String>,
    pub agent_envelope: Option<Value>,
    pub requires_commit: bool,
    pub correlation_id: Option<String>,
    pub dedupe_key: Option<String>,
}

/// An event to send to an executor. Events of tasks are caused by tasks, and cannot be sent.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendAgentEventRequest {
    pub event_type: SendableEvent,
    /// An executor that is registered with `agent_events_url`.
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
    pub target_executor: String,
    pub payload: EventPayload,
    /// The node it comes from, according to its sender; never the public key of a node, which is 64
    /// hex digits.
    #[schema(pattern = r"\S", max_length = 256)]
    pub source_node_id: Option<String>,
    #[schema(pattern = r"\S", max_length = 256)]
    pub target_agent_id: Option<String>,
    /// The envelope it came in, passed on unchanged.
    pub agent_envelope: Option<AgentEnvelope>,
    /// Whether the sender waits for a decision; defaults to false.
    pub requires_commit: Option<bool>,
    #[schema(pattern = r"\S", max_length = 256)]
    pub correlation_id: Option<String>,
    /// Deduplication key: repeating it for the same executor returns the existing event. The
    /// executor receives a key derived from it.
    #[schema(pattern = r"\S", max_length = 256)]
    pub dedupe_key: Option<String>,
}

/// Types of events that can be sent.
#[derive(Debug, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SendableEvent {
    FriendRequest,
    DmReceived,
    PaymentRequest,
    PaymentUpdate,
    TopicMessageRequiresReply,
    ThirdPartyResult,
}

/// An envelope of a message between agents; other members are passed on unchanged.
#[derive(Debug, ToSchema)]
pub struct AgentEnvelope {
    #[schema(pattern = r"\S")]
    pub protocol: String,
}

/// Reads an event to send, and says all that is wrong with it.
pub fn decode_send(body: &Value) -> Result<AgentEventOrder, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let mut faults = RequestFaults::default();
    faults.note_unknown::<SendAgentEventRequest>(&fields, SearchDepth::All);
    let event_type = faults.take(event_type(&fields));
    let target_executor = faults.take(executor(&fields));
    let payload = faults.take(payload(&fields));
    let envelope = faults.take(envelope(&fields));
    let requires_commit = faults.take(fields.flag("requires_commit"));
    let mut name = |it| faults.take(name(&fields, it));
    let (source, agent) = (name("source_node_id"), name("target_agent_id"));
    let (correlation, key) = (name("correlation_id"), name("dedupe_key"));
    let read = || {
        Some(AgentEventOrder {
            event_type: event_type?,
            target_executor: target_executor?,
            payload: payload?,
            source_node_id: source?,
            target_agent_id: agent?,
            agent_envelope: envelope?,
            requires_commit: requires_commit?.unwrap_or_default(),
            correlation_id: correlation?,
            dedupe_key: key?,
        })
    };
    match (read(), faults.problem(ProblemCode::ValidationError)) {
        (Some(read), None) => Ok(read),
        (_, Some(problem)) => Err(problem),
        // A field that cannot be read has said why.
        (None, None) => Err(Problem::new(ProblemCode::ValidationError, "the event cannot be read")),
    }
}

fn event_type(fields: &RequestFields<'_>) -> Result<AgentEventType, Problem> {
    let text = fields.required_text("event_type")?;
    let known: Option<AgentEventType> = text.parse().ok();
    if let Some(event_type) = known.filter(|it| it.is_sendable()) {
        return Ok(event_type);
    }
    let sendable = AgentEventType::ALL.iter().filter(|it| it.is_sendable());
    let sendable: Vec<&str> = sendable.map(|it| it.as_str()).collect();
    let sendable = sendable.join(", ");
    let reason = if known.is_some() {
        format!("is caused by tasks only; send one of {sendable}")
    } else {
        format!("must be one of {sendable}")
    };
    Err(fields.wrong("event_type", &reason))
}

fn executor(fields: &RequestFields<'_>) -> Result<String, Problem> {
    let text = fields.required_text("target_executor")?;
    if is_name(text) {
        return Ok(text.to_owned());
    }
    Err(fields.wrong("target_executor", "is not a valid executor name"))
}

fn payload(fields: &RequestFields<'_>) -> Result<Value, Problem> {
    let payload = fields.get("payload").ok_or_else(|| fields.wrong("payload", "is required"))?;
    let envelope = fields.get("agent_envelope").map_or(0, |it| it.to_string().len());
    if MOST_BYTES < payload.to_string().len() + envelope {
        let reason = format!("must have at most {MOST_BYTES} bytes, including the envelope");
        return Err(fields.wrong("payload", &reason));
    }
    Ok(payload.clone())
}

fn envelope(fields: &RequestFields<'_>) -> Result<Option<Value>, Problem> {
    let Some(envelope) = fields.object("agent_envelope")? else { return Ok(None) };
    envelope.required_text("protocol")?;
    Ok(fields.get("agent_envelope").cloned())
}

fn name(fields: &RequestFields<'_>, name: &str) -> Result<Option<String>, Problem> {
    if fields.get(name).is_none() {
        return Ok(None);
    }
    let text = fields.required_text(name)?;
    if LONGEST_NAME < text.chars().count() {
        let reason = format!("must have at most {LONGEST_NAME} characters");
        return Err(fields.wrong(name, &reason));
    }
    Ok(Some(text.to_owned()))
}

/// What is shown of an event.
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
    /// The whole event, as its executor gets it.
    pub event: Option<&'a Value>,
}

/// An event to an executor, with its delivery state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentEventEntry)]
pub struct AgentEventEntry<'a> {
    event_id: &'a str,
    direction: words::AgentEventDirection,
    target_executor: &'a str,
    event_type: &'a str,
    source_kind: &'a str,
    /// The key as it was sent.
    #[schema(required = true)]
    dedupe_key: Option<&'a str>,
    state: words::AgentEventState,
    /// Number of delivery attempts.
    attempts: u32,
    /// When the next delivery attempt is due; null if there is none.
    #[schema(required = true)]
    next_attempt_at: Option<Time>,
    /// What the executor decided.
    #[schema(required = true, value_type = Option<crate::executor::AgentDecision>)]
    decision: Option<&'a Value>,
    /// Whether the executor asks for human review.
    needs_review: bool,
    /// Why delivery failed, or why the decision has no effect.
    #[schema(required = true)]
    last_error: Option<&'a str>,
    created_at: Time,
    updated_at: Time,
    /// The whole event as the executor receives it; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = AgentEvent)]
    event: Option<&'a Value>,
}

pub fn entry(view: AgentEventView<'_>) -> AgentEventEntry<'_> {
    AgentEventEntry {
        event_id: view.id,
        direction: words::AgentEventDirection(view.direction),
        target_executor: view.executor,
        event_type: view.event_type,
        source_kind: view.source_kind,
        dedupe_key: view.dedupe_key,
        state: words::AgentEventState(view.state),
        attempts: view.attempts,
        next_attempt_at: view.next_at.map(Time),
        decision: view.decision,
        needs_review: view.decision.is_some_and(|it| it["action"] == "human_review"),
        last_error: view.last_error,
        created_at: Time(view.created_at),
        updated_at: Time(view.updated_at),
        event: view.event,
    }
}
