//! Asks all chosen sessions at once. Each ends by the deadline, and none gets lost.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use jurat_core::{
    consensus::{Ballot, is_settled},
    executor::Independence,
    job::Toggle,
    replica::{Answer, FailureCode, Replica},
    round::{OpenRound, Seat},
    select::next_spare,
    time::Timestamp,
};
use jurat_guard::bounded::NotDone;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    Engine, Progress, Watcher,
    ask::{Asked, Errand},
    round::Ended,
    trace,
    under_way::{Entered, Stop},
};

/// Outputs of so many values are compared on a thread of their own.
const MANY_NODES: usize = 5_000;

/// A call that is under way.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    /// Who is asked: a seat, or after them a spare.
    index: usize,
    /// For which seat.
    seat: usize,
    started_at: Timestamp,
}

/// The seats of a round while they are filled.
struct Seats<'a> {
    open: &'a OpenRound,
    errand: &'a Errand,
    watcher: &'a Watcher,
    /// Those who have not been asked.
    spares: Vec<usize>,
    under_way: Vec<Attempt>,
    ended: Vec<Replica>,
}

impl Engine {
    /// Asks every seat, and replaces one that fails with a spare while there is time.
    pub(crate) async fn fan_out(
        &self,
        open: &OpenRound,
        errand: Arc<Errand>,
        watcher: &Watcher,
        entered: &Entered,
    ) -> Ended {
        let now = || self.inner.clock.now();
        let mut seats = Seats::new(open, &errand, watcher);
        let call = |attempt: Attempt| {
            let who = seat_of(open, &errand, attempt.index);
            let asking = self.ask(&errand, attempt.index);
            let call = AssertUnwindSafe(trace::asked(open, (attempt.index, who), asking));
            call.catch_unwind().map(move |answer| (attempt, answer))
        };
        let mut calls: FuturesUnordered<_> =
            (0..open.seats.len()).map(|seat| call(seats.begin(seat, seat, now()))).collect();
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
            let Some((attempt, answer)) = next else { break };
            let asked = answer.unwrap_or_else(|_| {
                let answer = Answer::nothing(FailureCode::Internal, "the call panicked");
                Asked::cut_off(answer, errand.tab.charge(attempt.index))
            });
            if let Some(spare) = seats.end(attempt, asked, now()) {
                calls.push(call(seats.begin(spare, attempt.seat, now())));
            }
            let may_stop = errand.job.terms.early_stop == Toggle::On;
            if may_stop && self.is_decided(open, &errand, &seats.ended).await {
                break;
            }
        }
        // Dropping the calls cancels what is still under way.
        drop(calls);
        let replicas = seats.leave(stopped, now());
        self.count_calls(&errand, &replicas);
        // The order is that of choice, never of arrival.
        let (mut replicas, replaced): (Vec<Replica>, Vec<Replica>) =
            replicas.into_iter().partition(Replica::is_counted);
        replicas.sort_by_key(|replica| replica.seat);
        Ended { errand, replicas, replaced, stopped }
    }

    /// Judges are no executors: their names come from callers, and figures have none of those.
    fn count_calls(&self, errand: &Errand, replicas: &[Replica]) {
        if errand.places.are_executors() {
            self.inner.metrics.executors.ended(replicas);
        }
    }

    async fn is_decided(&self, open: &OpenRound, errand: &Arc<Errand>, ended: &[Replica]) -> bool {
        let counted = ended.iter().filter(|replica| replica.is_counted());
        let mut ended: Vec<Replica> = counted.cloned().collect();
        ended.sort_by_key(|replica| replica.seat);
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
        let bounded = self.inner.bounded.of(&errand.account);
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
        match bounded.run(work.clone()).await {
            // Answers that are there must be counted, even if it holds somebody up.
            Err(NotDone::Busy) => Ok(work()),
            ended => ended,
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
            Answer::nothing(FailureCode::Cancelled, "the round was cancelled by its caller")
        }
        Some(Stop::Node) => Answer::nothing(
            FailureCode::NodeStopped,
            "the node stopped before the round was closed",
        ),
    }
}

impl<'a> Seats<'a> {
    fn new(open: &'a OpenRound, errand: &'a Errand, watcher: &'a Watcher) -> Self {
        let seats = open.seats.len();
        let spares = (seats..seats + errand.spares.len()).collect();
        Self { open, errand, watcher, spares, under_way: Vec::new(), ended: Vec::new() }
    }

    fn begin(&mut self, index: usize, seat: usize, started_at: Timestamp) -> Attempt {
        let attempt = Attempt { index, seat, started_at };
        self.under_way.push(attempt);
        // A seat that has failed from the start is not called.
        if self.errand.places.problem(index).is_none() {
            self.watcher.tell(|| Progress::ReplicaStarted {
                round: self.open.id.clone(),
                index,
                seat: seat_of(self.open, self.errand, index).clone(),
            });
        }
        attempt
    }

    /// Takes in what came of a call, and says which spare is to be asked in its place.
    fn end(&mut self, attempt: Attempt, asked: Asked, now: Timestamp) -> Option<usize> {
        self.under_way.retain(|other| other.index != attempt.index);
        let mut replica = self.replica(attempt, asked, now);
        replica.replaced_by = self.next_spare(&replica);
        let spare = replica.replaced_by;
        self.spares.retain(|other| Some(*other) != spare);
        self.watcher.tell(|| Progress::ReplicaDone {
            round: self.open.id.clone(),
            kind: self.open.kind,
            replica: Box::new(replica.clone()),
        });
        self.ended.push(replica);
        spare
    }

    /// All replicas; what is still under way is not waited for.
    fn leave(mut self, stopped: Option<Stop>, now: Timestamp) -> Vec<Replica> {
        for attempt in std::mem::take(&mut self.under_way) {
            // What was sent to a judge is paid, whoever did not wait for its answer.
            let sent_micros = self.errand.tab.charge(attempt.index);
            let asked = Asked::cut_off(unasked(stopped), sent_micros);
            let replica = self.replica(attempt, asked, now);
            self.ended.push(replica);
        }
        self.ended
    }

    fn replica(&self, attempt: Attempt, asked: Asked, now: Timestamp) -> Replica {
        let Asked { answer, cost_micros, usage } = asked;
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

    /// The spare, of those left, that replaces a replica that failed.
    fn next_spare(&self, failed: &Replica) -> Option<usize> {
        let failure = failed.answer.failure()?;
        let has_answered = failed.answer.said().is_some();
        let is_late = self.errand.deadline <= Instant::now();
        if has_answered || is_late || !failure.code.leaves_the_seat() {
            return None;
        }
        let key = |index: &usize| &seat_of(self.open, self.errand, *index).independence;
        let has_failed = |it: &&Replica| it.answer.failure().is_some();
        let all = self.ended.iter().chain([failed]);
        let all_failed: Vec<&Independence> =
            all.filter(has_failed).map(|it| &it.independence).collect();
        // In each of the other seats sits whoever was asked last for it.
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

/// Who is asked: those with a seat first, then the spares.
fn seat_of<'a>(open: &'a OpenRound, errand: &'a Errand, index: usize) -> &'a Seat {
    open.seats.get(index).unwrap_or_else(|| &errand.spares[index - open.seats.len()])
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
