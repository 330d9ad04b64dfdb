//! Agent events: an outbox of signed messages to executors, which callers can list and add to.

mod decision;
mod deliver;
mod quota;
mod send;

use std::time::Duration;

use jurat_core::{
    account::caller::{Caller, Scope},
    id::{AccountId, uuid},
    task::agent_event::{
        AgentEventAddition, AgentEventFilter, AgentEventOrder, AgentEventRecord, AgentEventType,
        EventDirection, NewAgentEvent, RetryTerms,
    },
    time::Timestamp,
};
use jurat_store::{AgentEventAdd, TooManyPending};
use jurat_wire::executor::AgentEvent as AgentEventBody;
use serde_json::{Value, json};

use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, LimitExceeded,
    access::{behalf_of, require_scope},
    executors::signature::is_node_id,
};

/// How long and how often delivery of agent events is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentEventTerms {
    /// How long an executor may take to answer.
    pub timeout: Duration,
    pub retry_terms: RetryTerms,
    /// How many events of an account may wait for one executor; more are refused, or dropped if a
    /// task causes them.
    pub pending: u32,
    /// How long an event is kept after its delivery has ended.
    pub keep: Duration,
}

impl Default for AgentEventTerms {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            retry_terms: RetryTerms::default(),
            pending: 1_000,
            keep: Duration::from_hours(30 * 24),
        }
    }
}

/// An event before it has an id.
#[derive(Debug, Clone)]
pub(crate) struct AgentNotice {
    pub(crate) direction: EventDirection,
    pub(crate) event_type: AgentEventType,
    pub(crate) executor: String,
    /// The origin, as the sender names it; events of tasks come from this node.
    pub(crate) source_node_id: Option<String>,
    pub(crate) target_agent_id: Option<String>,
    pub(crate) agent_envelope: Option<Value>,
    pub(crate) payload: Value,
    pub(crate) requires_commit: bool,
    pub(crate) correlation_id: Option<String>,
    pub(crate) dedupe_key: Option<String>,
}

impl Engine {
    /// Sends an event from outside to an executor. The same key for the same executor is the same
    /// event.
    pub async fn agent_event_send(
        &self,
        caller: &Caller,
        order: AgentEventOrder,
        keyed: Option<IdempotentWrite<AgentEventAddition>>,
    ) -> Result<IdempotentOutcome<AgentEventAddition>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        check_source(&order)?;
        self.check_listens(&order.target_executor).await?;
        let at = self.inner.clock.now();
        let event = self.new_agent_event(caller.account(), notice_of(order), at);
        let most_pending = self.inner.limits.agent_events.pending;
        let add = AgentEventAdd { account: caller.account().clone(), event, at, most_pending };
        let (tasks, behalf) = (self.inner.store.agent_events(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Rows, async |once| {
                let writing = tasks.add(&behalf, &add, once);
                self.inner.metrics.write("agent_event_add", writing).await
            })
            .await?;
        let done = written.map_err(|TooManyPending| {
            self.inner.metrics.agent_events.refused();
            LimitExceeded::AgentEvents(most_pending)
        })?;
        self.inner.agent_event_wake.notify_one();
        Ok(done)
    }

    pub async fn agent_event_show(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<AgentEventRecord, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let agent_events = self.inner.store.agent_events();
        let found = agent_events.get(&behalf_of(caller), caller.account(), id).await?;
        found.ok_or_else(|| EngineError::NotFound { what: "agent event", id: id.to_owned() })
    }

    /// The events of the caller's account, newest first.
    pub async fn agent_event_list(
        &self,
        caller: &Caller,
        filter: &AgentEventFilter,
    ) -> Result<Vec<AgentEventRecord>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let events = self.inner.store.agent_events();
        Ok(events.page(&behalf_of(caller), caller.account(), filter).await?)
    }

    /// Refuses an executor that did not subscribe to events.
    async fn check_listens(&self, name: &str) -> Result<(), EngineError> {
        let found = self.find_executor(name).await?;
        let field = "target_executor";
        let reason = match found.map(|it| it.agent_events_url.is_some()) {
            Some(true) => return Ok(()),
            Some(false) => format!(
                "names `{name}`, which has no address for agent events; register it with `agent_events_url`"
            ),
            None => format!("names `{name}`, which is not registered"),
        };
        Err(EngineError::invalid(field, reason))
    }

    /// An event as it is stored and sent.
    pub(crate) fn new_agent_event(
        &self,
        account: &AccountId,
        notice: AgentNotice,
        at: Timestamp,
    ) -> NewAgentEvent {
        let event_type = notice.event_type;
        let wire_key = self.dedupe_key_on_wire(account, &notice);
        let actions = event_type.actions().iter().map(|it| it.as_str().to_owned());
        let body = AgentEventBody {
            event_id: uuid(at, self.inner.clock.bits()),
            event_type: event_type.as_str().to_owned(),
            source_kind: event_type.source().as_str().to_owned(),
            source_node_id: match notice.direction {
                EventDirection::Out => Some(self.inner.node_key.id().to_owned()),
                EventDirection::In => notice.source_node_id,
            },
            target_agent_id: notice.target_agent_id,
            target_executor: Some(notice.executor.clone()),
            agent_envelope: notice.agent_envelope,
            payload: notice.payload,
            requires_commit: notice.requires_commit,
            allowed_actions: actions.collect(),
            correlation_id: notice.correlation_id,
            dedupe_key: wire_key,
            created_at: u64::try_from(at.millis()).unwrap_or_default(),
        };
        NewAgentEvent {
            id: body.event_id.clone(),
            direction: notice.direction,
            executor: notice.executor,
            event_type: body.event_type.clone(),
            source_kind: body.source_kind.clone(),
            dedupe_key: notice.dedupe_key,
            body: json!(body),
            next_at: Some(at),
        }
    }

    /// The key by which the executor recognizes a repeated event. An executor serves several
    /// accounts, and an account that could write the key of another's event would suppress it. The
    /// key is stored with the event, so that every attempt has the same key, whichever node makes
    /// it.
    fn dedupe_key_on_wire(&self, account: &AccountId, notice: &AgentNotice) -> Option<String> {
        let own = notice.dedupe_key.as_deref()?;
        let parts = [account.as_str(), notice.direction.as_str(), &notice.executor, own];
        Some(self.inner.node_key.keyed_digest("jurat: keys of agent events", &parts))
    }
}

/// Nodes sign their own messages, so nobody else may claim to be one. Nodes that share a store do
/// not know each other's keys, so any source name that looks like a node id is refused.
fn check_source(order: &AgentEventOrder) -> Result<(), EngineError> {
    let letter = order.agent_envelope.as_ref();
    let named = |path: &str| letter.and_then(|it| it.pointer(path)).and_then(Value::as_str);
    let in_letter = [named("/source_node_id"), named("/source_agent_card/node_id")];
    let field = if order.source_node_id.as_deref().is_some_and(is_node_id) {
        "source_node_id"
    } else if in_letter.into_iter().flatten().any(is_node_id) {
        "agent_envelope"
    } else {
        return Ok(());
    };
    let reason = "has the form of a node's public key, and nodes send only what tasks cause; name \
                  where the event comes from in another way, or leave it out";
    Err(EngineError::invalid(field, reason))
}

fn notice_of(order: AgentEventOrder) -> AgentNotice {
    AgentNotice {
        direction: EventDirection::In,
        event_type: order.event_type,
        executor: order.target_executor,
        source_node_id: order.source_node_id,
        target_agent_id: order.target_agent_id,
        agent_envelope: order.agent_envelope,
        payload: order.payload,
        requires_commit: order.requires_commit,
        correlation_id: order.correlation_id,
        dedupe_key: order.dedupe_key,
    }
}
