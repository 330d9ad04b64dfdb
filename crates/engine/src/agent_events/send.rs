//! One attempt to deliver an agent event: the request, and the meaning of its reply.

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use jurat_core::{
    executor::Executor,
    task::agent_event::{AgentEventRecord, DeliveryOutcome},
};
use jurat_guard::client::{CallError, HttpReply};
use jurat_wire::{
    executor::{AgentDecision, AgentEventCallbackResponse, decode_agent_event_response},
    signature::{EVENT_ID, content_digest},
    strict_json,
};
use serde_json::json;
use url::Url;

use crate::{
    Engine, EngineError,
    executors::signature::{CONTENT_DIGEST, CoveredParts, SIGNATURE, SIGNATURE_INPUT},
    rounds::ask::{CORRELATION_HEADER, excerpt},
};

const EVENT: HeaderName = HeaderName::from_static(EVENT_ID);
/// The maximum stored size of a decision.
const MOST_OF_A_DECISION: usize = 64 * 1024;

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct DeliveryAttempt {
    pub(super) told: DeliveryOutcome,
    /// Why it failed.
    pub(super) error: Option<String>,
    pub(super) decision: Option<AgentDecision>,
}

impl DeliveryAttempt {
    fn failed(told: DeliveryOutcome, error: impl Into<String>) -> Self {
        Self { told, error: Some(error.into()), decision: None }
    }
}

/// The address and credentials for the events of an executor.
struct EventAddress {
    uri: Uri,
    authority: String,
    path: String,
    token: Option<String>,
}

impl Engine {
    /// Makes one attempt to deliver an event.
    pub(super) async fn attempt_delivery(&self, event: &AgentEventRecord) -> DeliveryAttempt {
        let address = match self.events_address(&event.event.executor).await {
            Ok(Ok(address)) => address,
            Ok(Err(why)) => return DeliveryAttempt::failed(DeliveryOutcome::Status, why),
            Err(error) => {
                return DeliveryAttempt::failed(DeliveryOutcome::Unreachable, error.to_string());
            }
        };
        let body = json!({ "event": event.event.body }).to_string().into_bytes();
        let headers = self.event_headers(event, &address, &content_digest(&body));
        let within = self.inner.limits.agent_events.timeout;
        let replied = self.inner.client.post_json(&address.uri, headers, body.into(), within).await;
        match replied {
            Ok(reply) => read_delivery_reply(&reply),
            Err(error) => DeliveryAttempt::failed(failed_delivery(&error), error.to_string()),
        }
    }

    /// An executor as this node knows it; an unknown one is read again from the store.
    pub(super) async fn find_executor(&self, name: &str) -> Result<Option<Executor>, EngineError> {
        let known = self.pool_view().await?.pool.executors.get(name).cloned();
        if known.as_ref().is_some_and(|it| it.agent_events_url.is_some()) {
            return Ok(known);
        }
        // Another node may have added it.
        self.pool_refresh().await?;
        Ok(self.pool_view().await?.pool.executors.get(name).cloned())
    }

    async fn events_address(
        &self,
        name: &str,
    ) -> Result<Result<EventAddress, String>, EngineError> {
        let Some(executor) = self.find_executor(name).await? else {
            return Ok(Err(format!("the executor `{name}` is no longer registered")));
        };
        let nowhere = || format!("the executor `{name}` no longer has an address for agent events");
        let token = executor.token_env.as_deref().and_then(|it| (self.inner.secrets)(it));
        Ok(event_address(&executor, token).ok_or_else(nowhere))
    }

    fn event_headers(
        &self,
        event: &AgentEventRecord,
        address: &EventAddress,
        digest: &str,
    ) -> HeaderMap {
        let id = event.event.id.as_str();
        let signed = self.inner.node_key.sign(&CoveredParts {
            authority: &address.authority,
            path: &address.path,
            content_digest: digest,
            about: &[(EVENT.as_str(), id)],
            created: self.inner.clock.now(),
        });
        let mut heads = HeaderMap::new();
        for (name, value) in [
            (EVENT, id),
            (CORRELATION_HEADER, id),
            (CONTENT_DIGEST, digest),
            (SIGNATURE_INPUT, &signed.input),
            (SIGNATURE, &signed.signature),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                heads.insert(name, value);
            }
        }
        let token = address.token.as_ref();
        let bearer = token.and_then(|it| HeaderValue::from_str(&format!("Bearer {it}")).ok());
        if let Some(mut bearer) = bearer {
            bearer.set_sensitive(true);
            heads.insert(header::AUTHORIZATION, bearer);
        }
        crate::trace::inject(&mut heads);
        heads
    }
}

/// The token belongs to the executor, and is sent only to the host where the executor works.
fn event_address(executor: &Executor, token: Option<String>) -> Option<EventAddress> {
    let base = executor.agent_events_url.as_deref()?;
    let url = Url::parse(base).ok()?;
    let host = url.host_str()?;
    let is_same = Url::parse(&executor.url).is_ok_and(|it| it.origin() == url.origin());
    Some(EventAddress {
        uri: Uri::try_from(format!("{base}/agent-events")).ok()?,
        authority: url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
        path: format!("{}/agent-events", url.path().trim_end_matches('/')),
        token: token.filter(|_| is_same),
    })
}

/// The outcome of a failed call. A reply that breaks the rules would break them again.
const fn failed_delivery(error: &CallError) -> DeliveryOutcome {
    match error {
        CallError::Timeout | CallError::Unreachable(_) | CallError::Disconnected(_) => {
            DeliveryOutcome::Unreachable
        }
        CallError::TooLarge { .. } | CallError::Encoded { .. } => DeliveryOutcome::Unread,
        CallError::Redirect { .. } | CallError::Tls(_) => DeliveryOutcome::Status,
    }
}

fn read_delivery_reply(reply: &HttpReply) -> DeliveryAttempt {
    let status = reply.status.as_u16();
    if !reply.status.is_success() {
        let error = format!("the executor answered {}: {}", reply.status, excerpt(&reply.body));
        return DeliveryAttempt::failed(DeliveryOutcome::of(status, None), error);
    }
    match response(reply) {
        Ok(response) if response.ok => DeliveryAttempt {
            told: DeliveryOutcome::of(status, Some(true)),
            error: None,
            decision: response.decision,
        },
        Ok(response) => {
            let detail = response.detail.as_deref().map(|it| excerpt(it.as_bytes()));
            let said = detail.unwrap_or_else(|| "no reason given".to_owned());
            let error = format!("the executor refused the event: {said}");
            let told = DeliveryOutcome::of(status, Some(false));
            DeliveryAttempt { told, error: Some(error), decision: response.decision }
        }
        Err(why) => DeliveryAttempt::failed(
            DeliveryOutcome::of(status, None),
            format!("the answer cannot be read: {why}"),
        ),
    }
}

fn response(reply: &HttpReply) -> Result<AgentEventCallbackResponse, String> {
    let body = strict_json::parse(&reply.body).map_err(|error| error.to_string())?;
    let response = decode_agent_event_response(body).map_err(|error| error.to_string())?;
    let length = response.decision.as_ref().map_or(0, |it| json!(it).to_string().len());
    if MOST_OF_A_DECISION < length {
        return Err(format!("`decision` is larger than {MOST_OF_A_DECISION} bytes"));
    }
    Ok(response)
}
