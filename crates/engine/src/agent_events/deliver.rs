//! Delivers agent events: takes due ones, delivers a limited number concurrently, and sleeps until
//! the next.

use std::{collections::BTreeMap, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use jurat_core::{
    task::agent_event::{AgentEventRecord, Delivery, after_attempt},
    time::Timestamp,
};
use jurat_store::{AgentEventOutcome, AgentEventTake, Behalf, StoreError, WriteOutcome};
use serde_json::json;

use super::decision::DecisionEffect;
use crate::Engine;

/// How many deliveries run concurrently.
const AT_ONCE: usize = 64;
/// How many concurrent deliveries one executor may have before others come first.
const PER_EXECUTOR: usize = 8;
/// Added to the timeout of an answer, for the write that follows.
const MARGIN_MS: u64 = 5_000;
/// How long to wait for a store that does not answer.
const TROUBLE_MS: u64 = 1_000;
/// The maximum sleep of a node: other nodes may have added events to the same store.
const LONGEST_SLEEP_MS: u64 = 1_000;
/// The grace period for deliveries in progress when this node stops.
const GRACE: Duration = Duration::from_secs(2);

/// The due events.
struct DueEvents {
    taken: Vec<AgentEventRecord>,
    /// When the next event is due.
    next: Option<Timestamp>,
}

/// The events that wake the loop.
enum DeliveryWake {
    Stop,
    Found(Result<DueEvents, StoreError>),
    Told(String),
    Woken,
    Time,
}

type OutboxLookup<'a> = Option<BoxFuture<'a, Result<DueEvents, StoreError>>>;
type Deliveries<'a> = FuturesUnordered<BoxFuture<'a, String>>;

impl Engine {
    /// Delivers agent events until this node stops.
    pub fn deliver_agent_events(&self) {
        let engine = self.clone();
        let _telling = self.inner.background.spawn(async move { engine.delivery_loop().await });
    }

    async fn delivery_loop(&self) {
        let mut letters: Deliveries<'_> = FuturesUnordered::new();
        let mut busy: BTreeMap<String, usize> = BTreeMap::new();
        let mut looking: OutboxLookup<'_> = None;
        let mut look_at = self.inner.clock.now();
        loop {
            let now = self.inner.clock.now();
            let free = AT_ONCE.saturating_sub(letters.len());
            if looking.is_none() && free != 0 && look_at <= now {
                looking =
                    Some(self.take_due_events(now, free.min(PER_EXECUTOR), full(&busy)).boxed());
                look_at = now.plus_millis(LONGEST_SLEEP_MS);
            }
            let sleep = Duration::from_millis(look_at.millis_since(now) + 1);
            match self.next_delivery_wake(&mut looking, &mut letters, sleep).await {
                DeliveryWake::Stop => break,
                DeliveryWake::Found(found) => {
                    looking = None;
                    let now = self.inner.clock.now();
                    let next = self.start_deliveries(found, &letters, &mut busy);
                    look_at = look_at.min(next.unwrap_or(now.plus_millis(LONGEST_SLEEP_MS)));
                }
                DeliveryWake::Told(executor) => {
                    let count = busy.entry(executor).or_default();
                    *count = count.saturating_sub(1);
                    // More events may wait for it, which were skipped.
                    if *count + 1 == PER_EXECUTOR || letters.len() + 1 == AT_ONCE {
                        look_at = self.inner.clock.now();
                    }
                    busy.retain(|_, count| 0 < *count);
                }
                // The sleep is over, even if the clock was set back meanwhile.
                DeliveryWake::Woken | DeliveryWake::Time => look_at = self.inner.clock.now(),
            }
        }
        let ending = async { while letters.next().await.is_some() {} };
        let _elapsed = tokio::time::timeout(GRACE, ending).await;
    }

    async fn next_delivery_wake<'w>(
        &self,
        looking: &mut OutboxLookup<'w>,
        letters: &mut Deliveries<'w>,
        sleep: Duration,
    ) -> DeliveryWake {
        let is_looking = looking.is_some();
        let look = async {
            match looking {
                Some(looking) => looking.await,
                None => std::future::pending().await,
            }
        };
        let turn = async {
            tokio::select! {
                biased;
                () = self.inner.stopping.cancelled() => DeliveryWake::Stop,
                found = look, if is_looking => DeliveryWake::Found(found),
                Some(executor) = letters.next(), if !letters.is_empty() => DeliveryWake::Told(executor),
                () = self.inner.agent_event_wake.notified() => DeliveryWake::Woken,
            }
        };
        tokio::time::timeout(sleep, turn).await.unwrap_or(DeliveryWake::Time)
    }

    /// Takes due events. If there are none, nothing is written.
    async fn take_due_events(
        &self,
        now: Timestamp,
        limit: usize,
        without: Vec<String>,
    ) -> Result<DueEvents, StoreError> {
        let tasks = self.inner.store.tasks();
        let next = tasks.agent_event_next(&Behalf::Platform).await?;
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
        let writing = tasks.agent_event_take(&Behalf::Platform, &take, None);
        let taken = match self.inner.metrics.write("agent_event_take", writing).await? {
            WriteOutcome::Done(taken) => taken,
            WriteOutcome::Refused(never) => match never {},
            WriteOutcome::Repeated => Vec::new(),
        };
        if !taken.is_empty() {
            self.inner.failpoints.pass("event_take_after");
        }
        if limit <= taken.len() {
            return Ok(DueEvents { taken, next: Some(now) });
        }
        let next = tasks.agent_event_next(&Behalf::Platform).await?;
        // Due events that were skipped wait until their executor has accepted some.
        Ok(DueEvents { taken, next: next.filter(|at| now < *at) })
    }

    /// Starts deliveries, and returns when to look again.
    fn start_deliveries<'w>(
        &'w self,
        found: Result<DueEvents, StoreError>,
        letters: &Deliveries<'w>,
        busy: &mut BTreeMap<String, usize>,
    ) -> Option<Timestamp> {
        match found {
            Ok(found) => {
                for event in found.taken {
                    *busy.entry(event.event.executor.clone()).or_default() += 1;
                    letters.push(self.deliver_event(event).boxed());
                }
                found.next
            }
            Err(error) => {
                tracing::warn!(error = %error, "could not look for agent events to deliver");
                Some(self.inner.clock.now().plus_millis(TROUBLE_MS))
            }
        }
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
        let tasks = self.inner.store.tasks();
        let writing = tasks.agent_event_note(&behalf, &outcome, None);
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
        let times = (event.created_at, outcome.at);
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

/// Executors with the maximum number of deliveries.
fn full(busy: &BTreeMap<String, usize>) -> Vec<String> {
    let full = busy.iter().filter(|(_, count)| PER_EXECUTOR <= **count);
    full.map(|(executor, _)| executor.clone()).collect()
}
