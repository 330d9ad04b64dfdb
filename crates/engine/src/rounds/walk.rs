//! The walk of a round: select, open, fan out, verify, agree, close.

use std::{sync::Arc, time::Duration};

use jurat_core::{
    account::{
        caller::{Caller, CreditMode, Scope},
        ledger::usd,
    },
    code::ProblemCode,
    id::{AccountId, RoundId},
    round::{
        OpenRound, RetainedRequest, Round, RoundEnding,
        job::{Job, TaskCall},
        replica::Replica,
    },
    time::Timestamp,
    verifier::run::VerifierRunTicket,
};
use jurat_store::{
    Behalf, IdempotencyRecord, RoundOpenRefusal, RoundOpening, StoreError, StoreErrorKind,
    WriteOutcome,
};
use tokio::{sync::oneshot, time::Instant};
use tracing::Instrument as _;

use super::{
    ask::{ReplicaPlan, RoundChecks},
    in_flight::StopReason,
    prepare::RoundInputs,
    seats::SeatCandidates,
    semantic::ResolvedVerifier,
};
use crate::{
    Engine, EngineError, IdempotencyKey, RefusalContext, RoundHandle, RoundWatcher,
    access::require_scope, accounts::keys::RoundPermit, node::capacity::capacity_owner, trace,
};

/// How long after its deadline a round still belongs to its node.
pub(crate) const LEASE_GRACE_MS: u64 = 10_000;

/// The input of a walk.
#[derive(Debug)]
pub(crate) struct RoundStart {
    pub(crate) caller: Caller,
    pub(crate) job: Job,
    pub(crate) watcher: RoundWatcher,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    /// The verifier run that the round carries out.
    pub(crate) verifier_run: Option<(VerifierRunTicket, ResolvedVerifier)>,
}

enum RoundAdmission {
    /// With a permit, and the abandoned round of the same request, if there is one.
    Now(RoundPermit, Option<RoundId>),
    /// The same request started it before.
    Before(Box<Round>),
}

impl Engine {
    /// Runs a job on as many sessions as its terms ask for, and returns the consensus.
    pub async fn round_run(
        &self,
        caller: &Caller,
        job: Job,
        watcher: RoundWatcher,
    ) -> Result<Round, EngineError> {
        self.round_begin(caller, job, watcher, None).await?.wait().await
    }

    /// Opens a round and lets it run.
    ///
    /// From then on it runs to its end and is recorded even if the caller leaves; before that,
    /// nothing starts for a caller who has left. A request that started a round before under the
    /// same key gets that round; if the round's node stopped, the request is run again.
    pub async fn round_begin(
        &self,
        caller: &Caller,
        job: Job,
        watcher: RoundWatcher,
        once: Option<IdempotencyKey>,
    ) -> Result<RoundHandle, EngineError> {
        let caller = caller.clone();
        self.begin_round(RoundStart {
            caller,
            job,
            watcher,
            idempotency_key: once,
            verifier_run: None,
        })
        .await
    }

    pub(crate) async fn begin_round(&self, start: RoundStart) -> Result<RoundHandle, EngineError> {
        let kind = start.job.work.kind();
        let (caller, once) = (start.caller.clone(), start.idempotency_key.clone());
        let admitted = self.admit_round(&start).await;
        let failed = |error: &EngineError| self.inner.metrics.rounds.failed(kind, error.code());
        let (place, instead_of) = match admitted.inspect_err(failed)? {
            RoundAdmission::Now(place, instead_of) => (place, instead_of),
            RoundAdmission::Before(round) => {
                // An ended round is not run again, so its request is not kept.
                let again = round.closing.is_none().then_some(start);
                return Ok(RoundHandle::existing(self, *round, again));
            }
        };
        let (opened, opening) = oneshot::channel();
        let engine = self.clone();
        let walk = async move {
            // Held until the round ends, not until its caller leaves.
            let _place = place;
            let walked = engine.walk(start, instead_of, opened).await;
            walked.inspect_err(|error| engine.inner.metrics.rounds.failed(kind, error.code()))
        };
        // The log lines of the round name the request that it belongs to.
        let walk = self.inner.background.spawn(walk.instrument(trace::round_span(kind)));
        if let Ok(open) = opening.await {
            return Ok(RoundHandle::walking(self, open, walk));
        }
        // It ended before it opened a round: with an error, or because a concurrent request was
        // faster.
        walk.await.map_err(|_| EngineError::Bug("a round ended in a panic"))??;
        let round = self.round_under_key(&caller, once.as_ref()).await?;
        let round = round.ok_or(EngineError::Bug("no round was begun"))?;
        Ok(RoundHandle::existing(self, round, None))
    }

    /// Decides whether a round is walked at all.
    async fn admit_round(&self, start: &RoundStart) -> Result<RoundAdmission, EngineError> {
        let RoundStart { caller, job, idempotency_key, verifier_run, .. } = start;
        let is_verifier_run = verifier_run.is_some();
        let scope = if is_verifier_run { Scope::VerifiersRun } else { Scope::RoundsCreate };
        require_scope(caller, scope)?;
        let before = self.round_under_key(caller, idempotency_key.as_ref()).await?;
        // An abandoned round will never have an answer, so the request is run again.
        let instead_of = match before {
            Some(round) if !is_abandoned(&round) => {
                return Ok(RoundAdmission::Before(Box::new(round)));
            }
            Some(round) => Some(round.open.id),
            None => None,
        };
        if caller.credit() == CreditMode::Suspended {
            return Err(EngineError::suspended());
        }
        // An accepted task continues; its contract limits what it stores.
        if job.step.is_none() {
            self.require_storage(caller).await?;
        }
        // Whether the node is late was checked before the body was read.
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        Ok(RoundAdmission::Now(self.round_permit(caller, job.memory_bytes())?, instead_of))
    }

    /// Returns `None` if no round was opened and that is not an error. `opened` receives the
    /// recorded round; nobody listens if the caller has left.
    async fn walk(
        &self,
        start: RoundStart,
        instead_of: Option<RoundId>,
        mut opened: oneshot::Sender<OpenRound>,
    ) -> Result<Option<Round>, EngineError> {
        let RoundStart { caller, mut job, watcher, idempotency_key: once, verifier_run: run } =
            start;
        let (ticket, found) = run.unzip();
        let opened_at = self.inner.clock.now();
        let deadline = Instant::now() + Duration::from_millis(job.timeout_ms);
        let bits = self.inner.clock.bits();
        let id = RoundId::new(opened_at, bits);
        trace::name_round(&id);

        let verifier = self.bind_verifier(&caller, &mut job, found).await?;
        let view = self.pool_view().await?;
        let inputs = RoundInputs {
            round: &id,
            caller: &caller,
            job: &job,
            view: &view,
            verifier: verifier.as_ref(),
        };
        let checks = tokio::select! {
            checks = self.prepare_checks(inputs, deadline) => checks?,
            () = self.inner.rounds_in_flight.released() => return Err(EngineError::ShuttingDown),
        };
        let choice = self.choose_seats(inputs, seed(bits))?;
        let at_hand = tokio::select! {
            at_hand = self.verdict_lookups(&choice, &checks, deadline) => at_hand,
            () = self.inner.rounds_in_flight.released() => return Err(EngineError::ShuttingDown),
        };

        let mut open = self.open_round(id, opened_at, caller.account().clone(), &job);
        open.seats.clone_from(&choice.seats);
        open.run = ticket;
        open.verifier = verifier.as_ref().and_then(|bound| bound.stored_id());
        open.hold = self.credit_hold(&caller, &choice, &checks, &at_hand).await;
        open.kept = self.kept_content(&caller, || job.round_request());
        let once = once.map(|once| self.round_record(&caller, &once, instead_of));
        // Listed before it is visible, so that it can always be cancelled.
        let entered = self.inner.rounds_in_flight.enter(&open);
        self.inner.failpoints.pass("round_open_before");
        let waiting = (deadline, &mut opened);
        let answer = self.open_with_credit(&mut open, once.as_ref(), waiting).await?;
        // Its caller left, or a concurrent request was faster.
        let Some(answer) = answer else { return Ok(None) };
        if !opened_or_refused(answer, &open)? {
            return Ok(None);
        }
        entered.mark_open();
        self.inner.failpoints.pass("round_open_after");
        // It is recorded, and may be large.
        if let Some(asked) = &mut open.kept.asked {
            asked.request = None;
        }
        job.request = None;
        // A caller that left just now gets the round by its key or from the list.
        let _gone = opened.send(open.clone());

        let errand = ReplicaPlan::new(&open, job, checks, choice, deadline)
            .with_verdict_lookups(at_hand)
            .owned_by(capacity_owner(&caller));
        let ended = self.fan_out(&open, Arc::new(errand), &watcher, &entered).await;
        let round = self.close(open, ended, &watcher).await?;
        drop(entered);
        Ok(Some(round))
    }

    async fn prepare_checks(
        &self,
        inputs: RoundInputs<'_>,
        deadline: Instant,
    ) -> Result<RoundChecks, EngineError> {
        let job = inputs.job;
        if SeatCandidates::of(job) == SeatCandidates::Executors {
            // Probing takes at most a part of the time; executors that it did not reach are not
            // chosen.
            let probing = self.probe_stale(job, inputs.view);
            let within = Duration::from_millis(job.timeout_ms / 4);
            let _elapsed = tokio::time::timeout(within, probing).await;
        }
        let preparing = self.prepare(inputs);
        let preparing = tokio::time::timeout_at(deadline, preparing).await;
        preparing.map_err(|_| EngineError::CHECKS_BUSY)?
    }

    /// Records the round, even if the reply to a first try is lost: a recorded round that nobody
    /// walks would keep its caller waiting.
    pub(crate) async fn record_open(
        &self,
        open: &OpenRound,
        once: Option<&IdempotencyRecord<RoundOpening>>,
    ) -> Result<WriteOutcome<RoundOpening, RoundOpenRefusal>, EngineError> {
        let (rounds, behalf) = (self.inner.store.rounds(), Behalf::from(&open.account));
        let record = || self.inner.metrics.write("round_open", rounds.open(&behalf, open, once));
        let error = match record().await {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        if error.kind != StoreErrorKind::Unavailable {
            return Err(error.into());
        }
        match record().await {
            Ok(opened @ (WriteOutcome::Done(_) | WriteOutcome::Refused(_))) => Ok(opened),
            Ok(WriteOutcome::Repeated) | Err(StoreError { kind: StoreErrorKind::Conflict, .. }) => {
                let stored = rounds.get(&behalf, &open.account, &open.id).await?;
                let ours = stored.filter(|stored| stored.open.lease_token == open.lease_token);
                Ok(ours.map_or(WriteOutcome::Repeated, |ours| Self::opened_as(&ours)))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn open_round(
        &self,
        id: RoundId,
        opened_at: Timestamp,
        account: AccountId,
        job: &Job,
    ) -> OpenRound {
        OpenRound {
            id,
            account,
            kind: job.work.kind(),
            node: self.inner.node.clone(),
            lease_token: seed(self.inner.clock.bits()),
            lease_until: opened_at.plus_millis(job.timeout_ms + LEASE_GRACE_MS),
            request_digest: job.request_digest.clone(),
            policy_id: job.policy.policy_id.clone(),
            policy_hash: job.policy.policy_hash.clone(),
            disagreement: job.terms.disagreement,
            traces: job.terms.traces,
            seats: Vec::new(),
            opened_at,
            deadline_at: opened_at.plus_millis(job.timeout_ms),
            run: None,
            verifier: None,
            step: job.step.as_ref().map(TaskCall::ticket),
            hold: None,
            kept: RetainedRequest::default(),
        }
    }
}

/// A job whose replicas have all ended.
#[derive(Debug)]
pub(crate) struct ReplicaResults {
    pub(crate) plan: Arc<ReplicaPlan>,
    /// The replica that counts for each seat, in the order of the seats.
    pub(crate) replicas: Vec<Replica>,
    /// The replaced replicas.
    pub(crate) replaced: Vec<Replica>,
    /// The reason, if it ended before all replicas had.
    pub(crate) stopped: Option<StopReason>,
}

/// Whether the round is recorded; `false` if a concurrent request was faster. Otherwise why it is
/// refused.
fn opened_or_refused(
    answer: WriteOutcome<RoundOpening, RoundOpenRefusal>,
    open: &OpenRound,
) -> Result<bool, EngineError> {
    match answer {
        WriteOutcome::Done(RoundOpening::Whole | RoundOpening::WithLess { .. }) => Ok(true),
        WriteOutcome::Repeated => Ok(false),
        WriteOutcome::Refused(RoundOpenRefusal::InTurn) => Err(EngineError::credit_in_use()),
        WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros }) => {
            let needed_micros = open.hold.map_or(0, |hold| hold.least_micros);
            Err(overdrawn(needed_micros, available_micros))
        }
        WriteOutcome::Refused(RoundOpenRefusal::DaySpent) => {
            let detail = "the daily credit for callers without a key is spent or reserved";
            let resets_at = RefusalContext::ResetsAt(open.opened_at.next_day());
            Err(EngineError::refused(ProblemCode::AnonymousDailyCap, detail).with(resets_at))
        }
        WriteOutcome::Refused(RoundOpenRefusal::VerifierGone) => {
            let id = open.run.as_ref().map(|run| run.verifier_id.clone()).unwrap_or_default();
            Err(EngineError::NotFound { what: "verifier", id })
        }
    }
}

/// Whether a round ended because its node stopped.
pub(crate) fn is_abandoned(round: &Round) -> bool {
    round.closing.as_ref().is_some_and(|closing| closing.ending == RoundEnding::Expired)
}

#[expect(clippy::cast_possible_truncation, reason = "the lower bits are as random as all")]
pub(crate) fn seed(bits: u128) -> u64 {
    // SQL has no unsigned integers, so the top bit stays free.
    (bits as u64) >> 1
}

fn overdrawn(needed_micros: i64, available_micros: i64) -> EngineError {
    let (needed, available) = (usd(needed_micros), usd(available_micros));
    let detail = format!(
        "the account's credit is too low: this costs at least {needed} USD, and {available} USD is available"
    );
    EngineError::refused(ProblemCode::BudgetExhausted, detail)
}
