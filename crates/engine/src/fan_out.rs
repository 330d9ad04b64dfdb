//! Asks all chosen sessions at once. Each ends by the deadline, and none gets lost.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use jurat_core::{
    consensus::{Ballot, is_settled},
    executor::Breaker,
    job::Toggle,
    replica::{Answer, FailureCode, Label, Replica},
    round::OpenRound,
};

use crate::{Engine, Progress, Watcher, ask::Errand, round::Ended};

impl Engine {
    pub(crate) async fn fan_out(
        &self,
        open: &OpenRound,
        errand: Arc<Errand>,
        watcher: &Watcher,
    ) -> Ended {
        let started_at = self.inner.clock.now();
        let mut calls: FuturesUnordered<_> = (0..open.seats.len())
            .map(|index| {
                let call = AssertUnwindSafe(self.ask(&errand, index)).catch_unwind();
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
        while let Some((index, answer)) = calls.next().await {
            let answer = answer.unwrap_or_else(|_| {
                Answer::nothing(FailureCode::Internal, "the call ended in a panic")
            });
            let latency_ms = self.inner.clock.now().millis_since(started_at);
            let replica = replica(open, &errand, index, answer, latency_ms);
            self.note_call(&replica);
            watcher.tell(|| Progress::ReplicaDone {
                round: open.id.clone(),
                kind: open.kind,
                replica: Box::new(replica.clone()),
            });
            replicas.push(replica);
            let may_stop = errand.job.terms.early_stop == Toggle::On;
            if may_stop && is_decided(open, &errand, &replicas) {
                break;
            }
        }
        // Dropping the calls cancels what is still under way.
        drop(calls);
        let missing: Vec<usize> = (0..open.seats.len())
            .filter(|index| replicas.iter().all(|replica| replica.index != *index))
            .collect();
        for index in missing {
            let answer = Answer::nothing(
                FailureCode::Cancelled,
                "the round was decided without this replica",
            );
            let latency_ms = self.inner.clock.now().millis_since(started_at);
            replicas.push(replica(open, &errand, index, answer, latency_ms));
        }
        // The order is that of choice, never of arrival.
        replicas.sort_by_key(|replica| replica.index);
        Ended { errand, replicas }
    }

    /// Lets the circuit breaker see how the call went.
    fn note_call(&self, replica: &Replica) {
        let now = self.inner.clock.now();
        let is_failure = match replica.answer.label() {
            Label::Timeout | Label::Error => true,
            Label::Cancelled => return,
            Label::Valid
            | Label::Invalid
            | Label::Retry
            | Label::NeedsSpec
            | Label::True
            | Label::False
            | Label::Unsure
            | Label::Ok
            | Label::InvalidOutput => false,
        };
        if !is_failure && self.inner.pool.standing(&replica.executor).breaker == Breaker::closed() {
            return;
        }
        self.inner.pool.update(&replica.executor, |standing| {
            standing.breaker =
                if is_failure { standing.breaker.after_failure(now) } else { Breaker::closed() };
        });
    }
}

fn is_decided(open: &OpenRound, errand: &Errand, ended: &[Replica]) -> bool {
    let mut ended: Vec<Replica> = ended.to_vec();
    ended.sort_by_key(|replica| replica.index);
    let ballot = Ballot {
        kind: open.kind,
        has_schema: errand.job.has_schema,
        terms: &errand.job.terms,
        replicas: &ended,
    };
    is_settled(&ballot, open.seats.len())
}

fn replica(
    open: &OpenRound,
    errand: &Errand,
    index: usize,
    answer: Answer,
    latency_ms: u64,
) -> Replica {
    let seat = &open.seats[index];
    Replica {
        index,
        session_id: seat.session_id.clone(),
        executor: seat.executor.clone(),
        independence: seat.independence.clone(),
        reliability: seat.reliability,
        answer,
        latency_ms,
        cost_micros: errand.places[index].price_micros,
    }
}
