//! Asks all chosen sessions at once. Each ends by the deadline, and none gets lost.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use jurat_core::{
    consensus::{Ballot, is_settled},
    executor::{Breaker, BreakerState},
    job::Toggle,
    replica::{Answer, FailureCode, Replica},
    round::OpenRound,
};
use jurat_guard::bounded::NotDone;
use serde_json::Value;

use crate::{
    Engine, Progress, Watcher,
    ask::{Asked, Errand},
    round::Ended,
    trace,
    under_way::{Entered, Stop},
};

/// Outputs of so many values are compared on a thread of their own.
const MANY_NODES: usize = 5_000;
/// How long an executor may take at the least before its silence speaks against it.
const FAIR_TRY_MS: u64 = 5_000;

impl Engine {
    pub(crate) async fn fan_out(
        &self,
        open: &OpenRound,
        errand: Arc<Errand>,
        watcher: &Watcher,
        entered: &Entered,
    ) -> Ended {
        let started_at = self.inner.clock.now();
        let mut calls: FuturesUnordered<_> = (0..open.seats.len())
            .map(|index| {
                let call = AssertUnwindSafe(trace::asked(open, index, self.ask(&errand, index)));
                let call = call.catch_unwind();
                call.map(move |answer| (index, answer))
            })
            .collect();
        for (index, seat) in open.seats.iter().enumerate() {
            watcher.tell(|| Progress::ReplicaStarted {
                round: open.id.clone(),
                index,
                seat: seat.clone(),
            });
        }
        let mut replicas: Vec<Replica> = Vec::with_capacity(open.seats.len());
        let mut stopping = pin!(entered.stopped());
        let mut stopped = None;
        loop {
            // What has arrived counts, even if the round is stopped in the same moment.
            let next = tokio::select! {
                biased;
                next = calls.next() => next,
                why = &mut stopping => {
                    stopped = Some(why);
                    None
                }
            };
            let Some((index, answer)) = next else { break };
            let asked = answer.unwrap_or_else(|_| {
                Answer::nothing(FailureCode::Internal, "the call ended in a panic").into()
            });
            let latency_ms = self.inner.clock.now().millis_since(started_at);
            let replica = replica(open, index, asked, latency_ms);
            self.note_call(&errand, &replica);
            watcher.tell(|| Progress::ReplicaDone {
                round: open.id.clone(),
                kind: open.kind,
                replica: Box::new(replica.clone()),
            });
            replicas.push(replica);
            let may_stop = errand.job.terms.early_stop == Toggle::On;
            if may_stop && self.is_decided(open, &errand, &replicas).await {
                break;
            }
        }
        // Dropping the calls cancels what is still under way.
        drop(calls);
        let missing: Vec<usize> = (0..open.seats.len())
            .filter(|index| replicas.iter().all(|replica| replica.index != *index))
            .collect();
        for index in missing {
            let answer = unasked(stopped);
            let latency_ms = self.inner.clock.now().millis_since(started_at);
            replicas.push(replica(open, index, answer.into(), latency_ms));
        }
        // The order is that of choice, never of arrival.
        replicas.sort_by_key(|replica| replica.index);
        self.count_calls(&errand, &replicas);
        Ended { errand, replicas, stopped }
    }

    /// Judges are no executors: their names come from callers, and figures have none of those.
    fn count_calls(&self, errand: &Errand, replicas: &[Replica]) {
        if errand.places.are_executors() {
            self.inner.metrics.executors.ended(replicas);
        }
    }

    async fn is_decided(&self, open: &OpenRound, errand: &Arc<Errand>, ended: &[Replica]) -> bool {
        let mut ended: Vec<Replica> = ended.to_vec();
        ended.sort_by_key(|replica| replica.index);
        let asked = open.seats.len();
        let count = move |ballot: &Ballot<'_>| is_settled(ballot, asked);
        // A count that fails stops nothing.
        self.count(errand, &Arc::new(ended), count).await.unwrap_or(false)
    }

    /// Counts votes: at once when the outputs are small, else where it holds up nobody.
    pub(crate) async fn count<T: Send + 'static>(
        &self,
        errand: &Arc<Errand>,
        replicas: &Arc<Vec<Replica>>,
        count: impl Fn(&Ballot<'_>) -> T + Clone + Send + 'static,
    ) -> Result<T, NotDone> {
        let (errand, replicas) = (Arc::clone(errand), Arc::clone(replicas));
        let is_small = replicas
            .iter()
            .filter_map(|replica| replica.answer.said()?.output.as_ref())
            .map(nodes)
            .sum::<usize>()
            < MANY_NODES;
        let work = move || {
            count(&Ballot {
                kind: errand.job.work.kind(),
                has_schema: errand.job.has_schema,
                terms: &errand.job.terms,
                replicas: &replicas,
            })
        };
        if is_small {
            return Ok(work());
        }
        match self.inner.bounded.run(work.clone()).await {
            // Answers that are there must be counted, even if it holds somebody up.
            Err(NotDone::Busy) => Ok(work()),
            ended => ended,
        }
    }

    /// Lets the circuit breaker see that a call is sent, which it may be waiting for.
    pub(crate) fn note_dispatch(&self, executor: &str) {
        let now = self.inner.clock.now();
        if self.inner.pool.standing(executor).breaker.state(now) == BreakerState::HalfOpen {
            self.inner.pool.update(executor, |standing| {
                standing.breaker = standing.breaker.after_dispatch(now);
            });
        }
    }

    /// Lets the circuit breaker of an executor see how the call went.
    fn note_call(&self, errand: &Errand, replica: &Replica) {
        if !errand.places.are_executors() {
            return;
        }
        let now = self.inner.clock.now();
        let is_failure = match replica.answer.failure() {
            None => false,
            // A caller who gives no time learns nothing about the executor.
            Some(failure) if failure.code == FailureCode::Timeout => {
                FAIR_TRY_MS <= replica.latency_ms
            }
            Some(failure) => failure.code.is_executors_fault(),
        };
        let has_answered = replica.answer.said().is_some();
        let is_closed = self.inner.pool.standing(&replica.executor).breaker == Breaker::closed();
        if is_failure {
            self.inner.pool.update(&replica.executor, |standing| {
                standing.breaker = standing.breaker.after_failure(now);
            });
        } else if has_answered && !is_closed {
            self.inner.pool.update(&replica.executor, |standing| {
                standing.breaker = Breaker::closed();
            });
        }
    }
}

/// What stands for a replica whose answer was not waited for.
fn unasked(stopped: Option<Stop>) -> Answer {
    match stopped {
        None => {
            Answer::nothing(FailureCode::Cancelled, "the round was decided without this replica")
        }
        Some(Stop::Caller) => {
            Answer::nothing(FailureCode::Cancelled, "the round was called off by its caller")
        }
        Some(Stop::Node) => Answer::nothing(
            FailureCode::NodeStopped,
            "the node stopped before the round was closed",
        ),
    }
}

fn replica(open: &OpenRound, index: usize, asked: Asked, latency_ms: u64) -> Replica {
    let Asked { answer, cost_micros, usage } = asked;
    let seat = &open.seats[index];
    Replica {
        index,
        session_id: seat.session_id.clone(),
        executor: seat.executor.clone(),
        independence: seat.independence.clone(),
        reliability: seat.reliability,
        answer,
        latency_ms,
        cost_micros,
        usage,
    }
}

/// How many values an output has; long texts count by their length.
fn nodes(output: &Value) -> usize {
    match output {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
    }
}
