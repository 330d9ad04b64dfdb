//! Delivers due agent events: the outbox of messages to executors.

use std::time::Duration;

use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{
    id::AccountId,
    task::agent_event::{AgentEventRecord, AttemptTimes, Delivery, after_attempt},
    time::Timestamp,
};
use jurat_store::{AgentEventOutcome, AgentEventTake, Behalf, StoreError, WriteOutcome};
use serde_json::json;
use tokio::sync::Notify;

use super::decision::DecisionEffect;
use crate::{
    Engine,
    outbox::{MessageOutbox, OutboxTake},
};

/// The outbox of agent events, whose receivers are executors.
struct AgentEventOutbox;

impl MessageOutbox for AgentEventOutbox {
    type Message = AgentEventRecord;

    const ITEMS: &'static str = "agent events";
    const AT_ONCE: usize = 64;
    // More than webhooks, because the operator chooses the executors.
    const PER_ACCOUNT: usize = 32;
    const SHARE: usize = 2;

    fn wake(engine: &Engine) -> &Notify {
        &engine.inner.agent_event_wake
    }

    fn timeout(engine: &Engine) -> Duration {
        engine.inner.limits.agent_events.timeout
    }

    fn receiver(event: &AgentEventRecord) -> &str {
        &event.event.executor
    }

    fn account(event: &AgentEventRecord) -> &AccountId {
        &event.account
    }

    fn next_due(engine: &Engine) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        async { engine.inner.store.agent_events().next_due(&Behalf::Platform).await }.boxed()
    }

    fn take(
        engine: &Engine,
        taking: OutboxTake,
    ) -> BoxFuture<'_, Result<Vec<AgentEventRecord>, StoreError>> {
        engine.take_due_events(taking).boxed()
    }

    fn deliver(engine: &Engine, event: AgentEventRecord) -> BoxFuture<'_, ()> {
        engine.deliver_event(event).boxed()
    }
}

impl Engine {
    /// Delivers agent events until this node stops.
    pub fn deliver_agent_events(&self) {
        self.deliver_outbox::<AgentEventOutbox>();
    }

    async fn take_due_events(
        &self,
        taking: OutboxTake,
    ) -> Result<Vec<AgentEventRecord>, StoreError> {
        let OutboxTake { now, until, limit, without, without_accounts } = taking;
        let take = AgentEventTake { now, until, limit, without, without_accounts };
        let agent_events = self.inner.store.agent_events();
        let writing = agent_events.take_due(&Behalf::Platform, &take);
        let taken = self.inner.metrics.write("agent_event_take", writing).await?;
        if !taken.is_empty() {
            self.inner.failpoints.pass("event_take_after");
        }
        Ok(taken)
    }

    /// Delivers an event and records the result.
    async fn deliver_event(&self, event: AgentEventRecord) {
        let outcome = self.event_outcome(&event).await;
        let (executor, state) = (event.event.executor, outcome.state);
        tracing::debug!(
            event.id = %outcome.id, executor.name = %executor, state = state.as_str(),
            "delivered an agent event"
        );
        let behalf = Behalf::Account(event.account);
        let tasks = self.inner.store.agent_events();
        let writing = tasks.note(&behalf, &outcome, None);
        match self.inner.metrics.write("agent_event_note", writing).await {
            Ok(WriteOutcome::Done(()) | WriteOutcome::Repeated) => {
                self.inner.metrics.agent_events.ended(state);
            }
            Ok(WriteOutcome::Refused(_)) => {
                tracing::debug!(event.id = %outcome.id, "event already taken by another node");
            }
            // It is delivered again later, under the same key.
            Err(error) => {
                tracing::warn!(error = %error, event.id = %outcome.id, "could not record the outcome of an agent event");
            }
        }
    }

    async fn event_outcome(&self, event: &AgentEventRecord) -> AgentEventOutcome {
        let patience = self.inner.limits.agent_events.retry_terms;
        let mut outcome = AgentEventOutcome {
            account: event.account.clone(),
            id: event.event.id.clone(),
            attempt: event.attempts,
            state: Delivery::Expired,
            next_at: None,
            decision: None,
            last_error: Some("it expired before delivery".to_owned()),
            at: self.inner.clock.now(),
        };
        if event.created_at.plus_millis(patience.expires_ms) <= outcome.at {
            return outcome;
        }
        if patience.attempts < event.attempts {
            outcome.state = Delivery::Failed;
            let reason = "the outcome of the last attempt is unknown";
            outcome.last_error =
                Some(event.last_error.clone().unwrap_or_else(|| reason.to_owned()));
            return outcome;
        }
        let attempt = self.attempt_delivery(event).await;
        self.inner.failpoints.pass("event_tell_after");
        outcome.at = self.inner.clock.now();
        let times = AttemptTimes { created_at: event.created_at, now: outcome.at };
        (outcome.state, outcome.next_at) =
            after_attempt(attempt.told, event.attempts, patience, times);
        outcome.last_error = attempt.error;
        if let Some(decision) = &attempt.decision {
            outcome.decision = Some(json!(decision));
            // Only an executor that accepted the event may decide about it.
            if outcome.state == Delivery::Acked {
                match self.apply_decision(event, decision).await {
                    Ok(DecisionEffect::Done) => outcome.state = Delivery::Completed,
                    Ok(DecisionEffect::Noted) => {}
                    Err(why) => outcome.last_error = Some(why),
                }
            }
        }
        outcome
    }
}
