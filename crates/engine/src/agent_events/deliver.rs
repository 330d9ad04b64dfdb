//! Delivers due agent events, a limited number at a time.

use std::time::Duration;

use futures::{FutureExt as _, future::BoxFuture, stream::FuturesUnordered};
use jurat_core::{
    key_counts::KeyCounts,
    task::agent_event::{AgentEventRecord, AttemptTimes, Delivery, after_attempt},
    time::Timestamp,
};
use jurat_store::{AgentEventOutcome, AgentEventTake, Behalf, StoreError, WriteOutcome};
use serde_json::json;

use super::decision::DecisionEffect;
use crate::{
    Engine,
    due_loop::{DueLoop, DueWork},
};

/// How many deliveries run concurrently.
const AT_ONCE: usize = 64;
/// How many concurrent deliveries one executor may have before others come first.
const PER_EXECUTOR: usize = 8;
/// Added to the timeout of an answer, for the write that follows.
const MARGIN_MS: u64 = 5_000;
/// The maximum sleep of a node: other nodes may have added events to the same store.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The grace period for deliveries in progress when this node stops.
const GRACE: Duration = Duration::from_secs(2);

/// The due events.
struct DueEvents {
    taken: Vec<AgentEventRecord>,
    /// When the next event is due.
    next: Option<Timestamp>,
}

/// The deliveries of a node as the work of a loop.
struct EventDelivery<'w> {
    engine: &'w Engine,
    /// The deliveries in progress to each executor.
    busy: KeyCounts<String>,
}

impl<'w> DueWork for EventDelivery<'w> {
    type Found = DueEvents;
    type Error = StoreError;
    type Look = BoxFuture<'w, Result<DueEvents, StoreError>>;
    /// The executor that received an event.
    type Ended = String;
    type Item = BoxFuture<'w, String>;

    const ITEMS: &'static str = "agent events";

    fn take(&mut self, now: Timestamp, free: usize) -> Self::Look {
        let full = self.busy.iter().filter(|(_, count)| PER_EXECUTOR <= **count);
        let without = full.map(|(executor, _)| executor.clone()).collect();
        self.engine.take_due_events(now, free.min(PER_EXECUTOR), without).boxed()
    }

    fn start(
        &mut self,
        found: DueEvents,
        running: &FuturesUnordered<Self::Item>,
    ) -> Option<Timestamp> {
        for event in found.taken {
            self.busy.add(&event.event.executor, 1);
            running.push(self.engine.deliver_event(event).boxed());
        }
        found.next
    }

    fn ended(&mut self, executor: String, running: usize) -> Option<Timestamp> {
        // More events may wait for this executor, or for a slot.
        let was_full = self.busy.of(&executor) == PER_EXECUTOR || running + 1 == AT_ONCE;
        self.busy.remove(&executor, 1);
        was_full.then(|| self.engine.inner.clock.now())
    }
}

impl Engine {
    /// Delivers agent events until this node stops.
    pub fn deliver_agent_events(&self) {
        let engine = self.clone();
        let _delivering = self.inner.background.spawn(async move {
            let due_loop = DueLoop {
                clock: &*engine.inner.clock,
                at_once: AT_ONCE,
                longest_sleep: LONGEST_SLEEP,
                wake: &engine.inner.agent_event_wake,
                stop: &engine.inner.stopping,
                grace: Some(GRACE),
            };
            let mut work = EventDelivery { engine: &engine, busy: KeyCounts::new() };
            // The loop never gives up, so it does not end with an error.
            let _ended = due_loop.run(&mut work).await;
        });
    }

    /// Takes due events. If there are none, nothing is written.
    async fn take_due_events(
        &self,
        now: Timestamp,
        limit: usize,
        without: Vec<String>,
    ) -> Result<DueEvents, StoreError> {
        let tasks = self.inner.store.agent_events();
        let next = tasks.next_due(&Behalf::Platform).await?;
        if next.is_none_or(|at| now < at) {
            return Ok(DueEvents { taken: Vec::new(), next });
        }
        let timeout = self.inner.limits.agent_events.timeout;
        let window = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let take = AgentEventTake {
            now,
            until: now.plus_millis(window.saturating_add(MARGIN_MS)),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            without,
        };
        let writing = tasks.take_due(&Behalf::Platform, &take);
        let taken = self.inner.metrics.write("agent_event_take", writing).await?;
        if !taken.is_empty() {
            self.inner.failpoints.pass("event_take_after");
        }
        if limit <= taken.len() {
            return Ok(DueEvents { taken, next: Some(now) });
        }
        let next = tasks.next_due(&Behalf::Platform).await?;
        // Due events that were skipped wait until their executor has accepted some.
        Ok(DueEvents { taken, next: next.filter(|at| now < *at) })
    }

    /// Delivers an event and records the result; returns the executor.
    async fn deliver_event(&self, event: AgentEventRecord) -> String {
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
        executor
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
