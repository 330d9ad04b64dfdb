//! `POST /agent-events`: what the executor is told besides its work, each event once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use moka::sync::Cache;
use serde_json::Value;

use jurat_wire::executor::{AgentEventCallbackResponse, decode_agent_event};

use crate::executor::ExecutorError;
use crate::http::Shared;
use crate::options::Limits;
use crate::refusal::Refusal;

/// The events that were heard, and those that are being heard, by their keys.
pub(crate) struct Heard {
    now: Mutex<BTreeSet<String>>,
    before: Cache<String, AgentEventCallbackResponse>,
}

impl Heard {
    pub(crate) fn new(limits: Limits) -> Self {
        let before = Cache::builder()
            .weigher(|key: &String, answer: &AgentEventCallbackResponse| {
                let decision = answer.decision.as_ref().and_then(|it| it.payload.as_ref());
                let length = decision.map_or(0, |it| it.to_string().len());
                u32::try_from(key.len() + length + 512).unwrap_or(u32::MAX)
            })
            .max_capacity(limits.remembered_bytes / 8)
            .time_to_live(limits.remembered)
            .build();
        Self { now: Mutex::default(), before }
    }

    /// Holds a key until it is dropped; nothing when somebody else holds it.
    fn hold(&self, key: &str) -> Option<Held<'_>> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.insert(key.to_owned()).then(|| Held { heard: self, key: key.to_owned() })
    }
}

struct Held<'a> {
    heard: &'a Heard,
    key: String,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut now = self.heard.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.remove(&self.key);
    }
}

/// Hands an event to the executor, unless it has heard of it, and says what it decided.
pub(crate) async fn answer(
    shared: &Shared,
    body: Value,
) -> Result<AgentEventCallbackResponse, Refusal> {
    let event = decode_agent_event(body)?.event;
    // Without a key of its own an event is known by its name.
    let key = match &event.dedupe_key {
        Some(key) => format!("key:{key}"),
        None => format!("event:{}", event.event_id),
    };
    // Whoever tells of it twice at once is answered when it tells of it again.
    let _held = shared.heard.hold(&key).ok_or_else(Refusal::overloaded)?;
    if let Some(answer) = shared.heard.before.get(&key) {
        return Ok(answer);
    }
    let hearing = shared.executor.told(&event);
    let decision = tokio::time::timeout(shared.options.limits.execute, hearing)
        .await
        .map_err(|_| ExecutorError::Timeout)
        .and_then(|decided| decided)
        .inspect_err(
            |error| tracing::warn!(event.id = %event.event_id, %error, "An event was not heard."),
        )?;
    let answer = AgentEventCallbackResponse {
        ok: true,
        acked_at: now_ms(),
        detail: Some(format!("received {}", event.event_type)),
        decision,
    };
    shared.heard.before.insert(key, answer.clone());
    Ok(answer)
}

fn now_ms() -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "the answer says when it was given")]
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
