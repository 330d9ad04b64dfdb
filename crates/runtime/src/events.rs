//! `POST /agent-events`: handles each agent event once.

use std::collections::BTreeSet;
use std::time::SystemTime;

use moka::sync::Cache;
use parking_lot::Mutex;
use serde_json::Value;

use jurat_wire::executor::{AgentEvent, AgentEventCallbackResponse, decode_agent_event};

use crate::executor::ExecutorError;
use crate::http::RuntimeState;
use crate::options::ExecutorLimits;
use crate::refusal::RequestRefusal;
use crate::signature::NodePublicKey;

/// The events that were handled, and those in progress.
pub(crate) struct EventInbox {
    now: Mutex<BTreeSet<EventKey>>,
    before: Cache<EventKey, AgentEventCallbackResponse>,
}

/// The identity of an event. A key counts per signer, so that nobody can suppress another node's
/// event by using its key first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct EventKey {
    signer: Option<NodePublicKey>,
    key: String,
}

impl EventKey {
    fn of(signer: Option<NodePublicKey>, event: &AgentEvent) -> Self {
        // An event without a key is identified by its name.
        let key = match &event.dedupe_key {
            Some(key) => format!("key:{key}"),
            None => format!("event:{}", event.event_id),
        };
        Self { signer, key }
    }
}

impl EventInbox {
    pub(crate) fn new(limits: ExecutorLimits) -> Self {
        let before = Cache::builder()
            .weigher(|known: &EventKey, answer: &AgentEventCallbackResponse| {
                let decision = answer.decision.as_ref().and_then(|it| it.payload.as_ref());
                let length = decision.map_or(0, |it| it.to_string().len());
                u32::try_from(known.key.len() + length + 512).unwrap_or(u32::MAX)
            })
            .max_capacity(limits.remembered_bytes / 8)
            .time_to_live(limits.remembered)
            .build();
        Self { now: Mutex::default(), before }
    }

    /// Reserves an event until it is dropped; `None` if it is reserved already.
    fn hold(&self, known: &EventKey) -> Option<EventHold<'_>> {
        let mut now = self.now.lock();
        now.insert(known.clone()).then(|| EventHold { heard: self, known: known.clone() })
    }
}

struct EventHold<'a> {
    heard: &'a EventInbox,
    known: EventKey,
}

impl Drop for EventHold<'_> {
    fn drop(&mut self) {
        let mut now = self.heard.now.lock();
        now.remove(&self.known);
    }
}

/// Passes an event to the executor, unless it was handled before, and returns the decision.
pub(crate) async fn answer(
    shared: &RuntimeState,
    signer: Option<NodePublicKey>,
    body: Value,
) -> Result<AgentEventCallbackResponse, RequestRefusal> {
    let event = decode_agent_event(body)?.event;
    let known = EventKey::of(signer, &event);
    // A concurrent duplicate gets its answer when it is sent again.
    let _held = shared.heard.hold(&known).ok_or_else(RequestRefusal::overloaded)?;
    if let Some(answer) = shared.heard.before.get(&known) {
        return Ok(answer);
    }
    let hearing = shared.executor.on_event(&event);
    let decision = tokio::time::timeout(shared.options.limits.execute, hearing)
        .await
        .map_err(|_| ExecutorError::Timeout)
        .and_then(|decided| decided)
        .inspect_err(
            |error| tracing::warn!(event.id = %event.event_id, %error, "could not handle an event"),
        )?;
    let answer = AgentEventCallbackResponse {
        ok: true,
        acked_at: now_ms(),
        detail: Some(format!("received {}", event.event_type)),
        decision,
    };
    shared.heard.before.insert(known, answer.clone());
    Ok(answer)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "an answer says when it was given")]
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
