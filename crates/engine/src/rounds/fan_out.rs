//! Asks all chosen sessions concurrently. Each ends by the deadline, and none is lost.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use jurat_core::{
    executor::Independence,
    round::{
        OpenRound, Seat,
        consensus::{TallyInput, is_settled},
        job::Toggle,
        replica::{FailureCode, Replica, ReplicaAnswer},
        select::next_spare,
    },
    time::Timestamp,
};
use jurat_guard::sandbox::SandboxError;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ask::{ReplicaPlan, ReplicaReply},
    in_flight::{RoundInFlightGuard, StopReason},
    walk::ReplicaResults,
};
use crate::{Engine, RoundProgress, RoundWatcher, trace};

/// Outputs of this many values are compared on a sandbox thread.
const MANY_VALUES: usize = 5_000;

/// A call in progress.
#[derive(Debug, Clone, Copy)]
struct ReplicaCall {
    /// The replica: a seat, or after the seats a spare.
    index: usize,
    /// The seat that it is asked for.
    seat: usize,
    started_at: Timestamp,
}

/// The seats of a round while they are filled.
struct SeatProgress<'a> {
    open: &'a OpenRound,
    errand: &'a ReplicaPlan,
    watcher: &'a RoundWatcher,
    /// Spares that have not been asked.
    spares: Vec<usize>,
    in_flight: Vec<ReplicaCall>,
    ended: Vec<Replica>,
}

impl Engine {
    /// Asks every seat, and replaces a failed one with a spare while there is time.
    pub(crate) async fn fan_out(
        &self,
        open: &OpenRound,
        errand: Arc<ReplicaPlan>,
        watcher: &RoundWatcher,
        entered: &RoundInFlightGuard,
    ) -> ReplicaResults {
        let now = || self.inner.clock.now();
        let mut seats = SeatProgress::new(open, &errand, watcher);
        let call = |attempt: ReplicaCall| {
            let who = seat_of(open, &errand, attempt.index);
            let asking = self.ask(&errand, attempt.index);
            let call = AssertUnwindSafe(trace::trace_replica(open, attempt.index, who, asking));
            call.catch_unwind().map(move |answer| (attempt, answer))
        };
        let mut calls: FuturesUnordered<_> =
            (0..open.seats.len()).map(|seat| call(seats.begin_call(seat, seat, now()))).collect();
        let mut stopping = pin!(entered.stopped());
        let mut stopped = None;
        loop {
            // An answer that has arrived counts, even if the round is stopped at the same moment.
            let next = tokio::select! {
                biased;
                next = calls.next() => next,
                why = &mut stopping => {
                    stopped = Some(why);
                    None
                }
            };
            let Some((attempt, answer)) = next else { break };
            let asked = answer.unwrap_or_else(|_| {
                let answer = ReplicaAnswer::nothing(FailureCode::Internal, "the call panicked");
                ReplicaReply::cut_off(answer, errand.judge_costs.charge(attempt.index))
            });
            if let Some(spare) = seats.end_call(attempt, asked, now()) {
                calls.push(call(seats.begin_call(spare, attempt.seat, now())));
            }
            let may_stop = errand.job.terms.early_stop == Toggle::On;
            if may_stop && self.is_decided(open, &errand, &seats.ended).await {
                break;
            }
        }
        // Dropping the calls cancels those in progress.
        drop(calls);
        let replicas = seats.finish(stopped, now());
        self.count_calls(&errand, &replicas);
        // The order is that of choice, never of arrival.
        let (mut replicas, replaced): (Vec<Replica>, Vec<Replica>) =
            replicas.into_iter().partition(Replica::is_counted);
        replicas.sort_by_key(|replica| replica.seat);
        ReplicaResults { plan: errand, replicas, replaced, stopped }
    }

    /// Judges are not executors: callers choose their names, which must not become metric labels.
    fn count_calls(&self, errand: &ReplicaPlan, replicas: &[Replica]) {
        if errand.targets.are_executors() {
            self.inner.metrics.executors.ended(replicas);
        }
    }

    async fn is_decided(
        &self,
        open: &OpenRound,
        errand: &Arc<ReplicaPlan>,
        ended: &[Replica],
    ) -> bool {
        let counted = ended.iter().filter(|replica| replica.is_counted());
        let mut ended: Vec<Replica> = counted.cloned().collect();
        ended.sort_by_key(|replica| replica.seat);
        let asked = open.seats.len();
        let count = move |ballot: &TallyInput<'_>| is_settled(ballot, asked);
        // A failed count does not stop the round.
        self.count_votes(errand, &Arc::new(ended), count).await.unwrap_or(false)
    }

    /// Counts votes: inline if the outputs are small, otherwise on a sandbox thread.
    pub(crate) async fn count_votes<T: Send + 'static>(
        &self,
        errand: &Arc<ReplicaPlan>,
        replicas: &Arc<Vec<Replica>>,
        count: impl Fn(&TallyInput<'_>) -> T + Clone + Send + 'static,
    ) -> Result<T, SandboxError> {
        let (errand, replicas) = (Arc::clone(errand), Arc::clone(replicas));
        let bounded = self.inner.bounded.of(&errand.account);
        let is_small = replicas
            .iter()
            .filter_map(|replica| replica.answer.content()?.output.as_ref())
            .map(value_count)
            .sum::<usize>()
            < MANY_VALUES;
        let work = move || {
            count(&TallyInput {
                kind: errand.job.work.kind(),
                has_schema: errand.job.has_schema,
                terms: &errand.job.terms,
                replicas: &replicas,
            })
        };
        if is_small {
            return Ok(work());
        }
        match bounded.run(work.clone()).await {
            // Existing answers must be counted, even if that delays other work.
            Err(SandboxError::Busy) => Ok(work()),
            ended => ended,
        }
    }
}

/// The answer of a replica that was not waited for.
fn unfinished_answer(stopped: Option<StopReason>) -> ReplicaAnswer {
    match stopped {
        None => ReplicaAnswer::nothing(
            FailureCode::Cancelled,
            "the round was decided without this replica",
        ),
        Some(StopReason::Caller) => {
            ReplicaAnswer::nothing(FailureCode::Cancelled, "the round was cancelled by its caller")
        }
        Some(StopReason::Node) => ReplicaAnswer::nothing(
            FailureCode::NodeStopped,
            "the node stopped before the round was closed",
        ),
    }
}

impl<'a> SeatProgress<'a> {
    fn new(open: &'a OpenRound, errand: &'a ReplicaPlan, watcher: &'a RoundWatcher) -> Self {
        let seats = open.seats.len();
        let spares = (seats..seats + errand.spares.len()).collect();
        Self { open, errand, watcher, spares, in_flight: Vec::new(), ended: Vec::new() }
    }

    fn begin_call(&mut self, index: usize, seat: usize, started_at: Timestamp) -> ReplicaCall {
        let attempt = ReplicaCall { index, seat, started_at };
        self.in_flight.push(attempt);
        // A seat that has failed from the start is not called.
        if self.errand.targets.problem(index).is_none() {
            self.watcher.send(|| RoundProgress::ReplicaStarted {
                round: self.open.id.clone(),
                index,
                seat: seat_of(self.open, self.errand, index).clone(),
            });
        }
        attempt
    }

    /// Records the end of a call, and returns the spare to ask instead.
    fn end_call(
        &mut self,
        attempt: ReplicaCall,
        asked: ReplicaReply,
        now: Timestamp,
    ) -> Option<usize> {
        self.in_flight.retain(|other| other.index != attempt.index);
        let mut replica = self.replica(attempt, asked, now);
        replica.replaced_by = self.next_spare(&replica);
        let spare = replica.replaced_by;
        self.spares.retain(|other| Some(*other) != spare);
        self.watcher.send(|| RoundProgress::ReplicaDone {
            round: self.open.id.clone(),
            kind: self.open.kind,
            replica: Box::new(replica.clone()),
        });
        self.ended.push(replica);
        spare
    }

    /// All replicas; those in progress are not waited for.
    fn finish(mut self, stopped: Option<StopReason>, now: Timestamp) -> Vec<Replica> {
        for attempt in std::mem::take(&mut self.in_flight) {
            // A judge call is paid even if nobody waited for its answer.
            let sent_micros = self.errand.judge_costs.charge(attempt.index);
            let asked = ReplicaReply::cut_off(unfinished_answer(stopped), sent_micros);
            let replica = self.replica(attempt, asked, now);
            self.ended.push(replica);
        }
        self.ended
    }

    fn replica(&self, attempt: ReplicaCall, asked: ReplicaReply, now: Timestamp) -> Replica {
        let ReplicaReply { answer, cost_micros, usage } = asked;
        let who = seat_of(self.open, self.errand, attempt.index);
        Replica {
            index: attempt.index,
            seat: attempt.seat,
            replaced_by: None,
            session_id: who.session_id.clone(),
            executor: who.executor.clone(),
            independence: who.independence.clone(),
            reliability: who.reliability,
            answer,
            latency_ms: now.millis_since(attempt.started_at),
            cost_micros,
            usage,
        }
    }

    /// The remaining spare that replaces a failed replica.
    fn next_spare(&self, failed: &Replica) -> Option<usize> {
        let failure = failed.answer.failure()?;
        let has_answered = failed.answer.content().is_some();
        let is_late = self.errand.deadline <= Instant::now();
        if has_answered || is_late || !failure.code.leaves_the_seat() {
            return None;
        }
        let key = |index: &usize| &seat_of(self.open, self.errand, *index).independence;
        let has_failed = |it: &&Replica| it.answer.failure().is_some();
        let all = self.ended.iter().chain([failed]);
        let all_failed: Vec<&Independence> =
            all.filter(has_failed).map(|it| &it.independence).collect();
        // The replica in each other seat is the one asked last for it.
        let occupant = |seat: usize| {
            let of_seat = self.ended.iter().filter(|it| it.seat == seat);
            of_seat.filter_map(|it| it.replaced_by).next_back().unwrap_or(seat)
        };
        let others = (0..self.open.seats.len()).filter(|seat| *seat != failed.seat);
        let counted: Vec<&Independence> = others.map(|seat| key(&occupant(seat))).collect();
        let keys: Vec<&Independence> = self.spares.iter().map(key).collect();
        next_spare(&keys, &counted, &all_failed).map(|slot| self.spares[slot])
    }
}

/// The seat of a replica: seats first, then spares.
fn seat_of<'a>(open: &'a OpenRound, errand: &'a ReplicaPlan, index: usize) -> &'a Seat {
    open.seats.get(index).unwrap_or_else(|| &errand.spares[index - open.seats.len()])
}

/// How many values an output has; long texts count by their length.
fn value_count(output: &Value) -> usize {
    match output {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(value_count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(value_count).sum::<usize>(),
    }
}
