//! The end of the walk: counts the votes and records the decision.

use std::{sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable as _};
use jurat_core::{
    peer::book::PeerBooking,
    policy::EvaluationStatus,
    round::{
        OpenRound, Round, RoundClosing, RoundEnding,
        candidate::{Candidate, Evidence},
        consensus::{Consensus, Outcome, agree, nearest_output},
        decision::DecisionEntry,
        replica::{Label, Replica},
    },
    verifier::run::cost,
};
use jurat_store::{Behalf, RoundCharge, RoundLost, StoreError, StoreErrorKind, WriteOutcome};

use super::{ask::ReplicaPlan, in_flight::StopReason, walk::ReplicaResults};
use crate::{Engine, EngineError, RoundProgress, RoundWatcher, node::evaluation, peers::earned};

/// A brief outage of the store must not cost a paid round.
const TRIES: usize = 6;
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_RECHECK: Duration = Duration::from_secs(2);

impl Engine {
    /// Counts the votes, unless the round was stopped, and records the decision with its entry in
    /// one transaction.
    pub(crate) async fn close(
        &self,
        open: OpenRound,
        ended: ReplicaResults,
        watcher: &RoundWatcher,
    ) -> Result<Round, EngineError> {
        let ReplicaResults { plan: errand, replicas, replaced, stopped } = ended;
        let replicas = Arc::new(replicas);
        let (ending, consensus) = match stopped {
            None => (RoundEnding::Closed, self.decide(&errand, &replicas).await?),
            // Answers that came before the others were cancelled are recorded, and decide nothing.
            Some(StopReason::Caller) => (RoundEnding::Cancelled, no_consensus(&replicas)),
            Some(StopReason::Node) => (RoundEnding::Expired, no_consensus(&replicas)),
        };
        let mut replicas = Arc::unwrap_or_clone(replicas);
        replicas.extend(replaced);
        replicas.sort_by_key(|replica| replica.index);
        // A round that its node interrupts is run again, and its executors are paid then. Judge
        // calls are paid now.
        if ending == RoundEnding::Expired {
            for replica in &mut replicas {
                replica.cost_micros = errand.judge_costs.charge(replica.index);
            }
        }
        let bookings = bookings(&errand, ending, &replicas);
        let closed_at = self.inner.clock.now();
        let entry =
            DecisionEntry::new(&open, ending, &replicas, &consensus, closed_at).canonical_entry();
        let closing = RoundClosing {
            ending,
            replicas,
            consensus,
            closed_at,
            receipt_id: entry.digest,
            entry: entry.text,
            bookings,
        };
        self.inner.failpoints.pass("round_close_before");
        let charged = cost(&closing.replicas);
        let recording = self.record_close(&open, closing);
        let closing = self.inner.metrics.write("round_close", recording).await?;
        self.inner.failpoints.pass("round_close_after");
        // If another round of the same execution was paid for, nothing has to be corrected later.
        if cost(&closing.replicas) == charged {
            self.settle_judge_costs(&errand.judge_costs, open.hold, charged).await;
        }
        self.inner.metrics.rounds.ended(&open, &closing);
        evaluation::emit(&open, &closing);
        // Sent only now: nobody may act on a decision that is not recorded.
        watcher.send(|| RoundProgress::Decided {
            round: open.id.clone(),
            closing: Box::new(closing.clone()),
        });
        Ok(Round { open, closing: Some(closing) })
    }

    async fn decide(
        &self,
        errand: &Arc<ReplicaPlan>,
        replicas: &Arc<Vec<Replica>>,
    ) -> Result<Consensus, EngineError> {
        let counted = self.count_votes(errand, replicas, agree).await;
        let mut consensus = counted.map_err(|_| EngineError::Bug("the votes were not counted"))?;
        self.recheck_merged(errand, replicas, &mut consensus).await;
        Ok(consensus)
    }

    /// Records the end of a round, and returns it as recorded. The same transaction decides whether
    /// the round is paid for, so each try may be the one that counts.
    async fn record_close(
        &self,
        open: &OpenRound,
        closing: RoundClosing,
    ) -> Result<RoundClosing, EngineError> {
        let behalf = Behalf::from(&open.account);
        let close = || self.inner.store.rounds().close(&behalf, open, &closing);
        match until_it_is_there(close).await? {
            WriteOutcome::Done(RoundCharge::Own) => Ok(closing),
            WriteOutcome::Done(RoundCharge::PaidBefore) => Ok(closing.unpaid()),
            WriteOutcome::Refused(RoundLost) | WriteOutcome::Repeated => {
                self.recorded_close(open, &closing).await?.ok_or_else(|| {
                    let id = &open.id;
                    EngineError::Conflict(format!(
                        "the round `{id}` took too long, and another node ended it"
                    ))
                })
            }
        }
    }

    /// The closing that an earlier try recorded, whose reply was lost.
    async fn recorded_close(
        &self,
        open: &OpenRound,
        closing: &RoundClosing,
    ) -> Result<Option<RoundClosing>, EngineError> {
        let (rounds, behalf) = (self.inner.store.rounds(), Behalf::from(&open.account));
        let stored = rounds.get(&behalf, &open.account, &open.id).await?;
        let stored = stored.and_then(|round| round.closing);
        Ok(stored.filter(|stored| stored.receipt_id == closing.receipt_id))
    }

    /// A merged output is not the answer of any replica, so it must pass the policy, too; otherwise
    /// the answer nearest to all others replaces it.
    async fn recheck_merged(
        &self,
        errand: &ReplicaPlan,
        replicas: &[Replica],
        consensus: &mut Consensus,
    ) {
        let checks = &errand.checks;
        let (Some(policy), Some(output)) = (&checks.policy, &consensus.output) else { return };
        let is_given = replicas
            .iter()
            .filter_map(|replica| replica.answer.content()?.output.as_ref())
            .any(|given| given == output);
        if is_given {
            return;
        }
        let candidate = Candidate {
            candidate_id: "merged".to_owned(),
            execution_id: "merged".to_owned(),
            output: output.clone(),
            evidence: Evidence::default(),
        };
        let (policy, schema) = (Arc::clone(policy), checks.schema.clone());
        let checking = self.check_candidate(&errand.account, policy, Arc::new(candidate), schema);
        let verdict = tokio::time::timeout(LONGEST_RECHECK, checking).await;
        if verdict
            .is_ok_and(|verdict| verdict.is_ok_and(|it| it.status == EvaluationStatus::Passed))
        {
            return;
        }
        consensus.output = nearest_output(replicas, consensus);
    }
}

/// What other nodes did for the round, and what the round did for another node.
fn bookings(errand: &ReplicaPlan, ending: RoundEnding, replicas: &[Replica]) -> Vec<PeerBooking> {
    let mut bookings = std::mem::take(&mut *errand.owed.lock());
    if ending == RoundEnding::Closed {
        bookings.extend(errand.job.relayed.as_ref().and_then(|it| earned(it, replicas)));
    }
    bookings
}

/// Retries while the store is briefly unavailable. The request must have the same effect if only
/// the reply was lost.
pub(crate) async fn until_it_is_there<T, F: Future<Output = Result<T, StoreError>>>(
    ask: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let waits = ExponentialBuilder::default().with_min_delay(FIRST_DELAY).with_max_times(TRIES);
    ask.retry(waits).when(|error: &StoreError| error.kind == StoreErrorKind::Unavailable).await
}

/// Nothing was counted, so there is no strategy and no relation to name.
pub(crate) fn no_consensus(replicas: &[Replica]) -> Consensus {
    let asked = replicas.len();
    let verdicts: Vec<Label> = replicas.iter().map(|replica| replica.answer.label()).collect();
    let cancelled = verdicts.iter().filter(|label| **label == Label::Cancelled).count();
    Consensus {
        outcome: Outcome::Failed,
        verdict: None,
        output: None,
        verdicts,
        groups: vec![None; asked],
        winner: None,
        asked,
        started: asked,
        answered: replicas.iter().filter(|replica| replica.answer.has_answered()).count(),
        cancelled,
        agreement: 0.0,
        agreement_answered: 0.0,
        strategy: "none".to_owned(),
        equivalence: "none".to_owned(),
        score: None,
        confidence: 0.0,
        effective_votes: 0.0,
        disagreed: true,
        tie_broken: false,
        basis: None,
    }
}
