//! The walk of a job: select, open, fan out, verify, agree, close.

use std::{sync::Arc, time::Duration};

use jurat_core::{
    caller::{Caller, Credit, Scope},
    id::{AccountId, RoundId},
    job::{Job, Step},
    replica::Replica,
    round::{Ending, Kept, OpenRound, Round, Seat},
    run::RunTicket,
    time::Timestamp,
};
use jurat_store::{Once, Opened, StoreError, StoreErrorKind};
use tokio::{sync::oneshot, time::Instant};
use tracing::Instrument as _;

use crate::{
    Begun, Engine, EngineError, OnceKey, Watcher,
    ask::{Checks, Errand},
    executors::require,
    keys::RoundPlace,
    places::Takers,
    pool::PoolView,
    semantic::{Bound, Found},
    trace,
    under_way::Stop,
};

/// How long after its deadline a round still belongs to its node.
pub(crate) const LEASE_GRACE_MS: u64 = 10_000;

/// What a walk begins with.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) caller: Caller,
    pub(crate) job: Job,
    pub(crate) watcher: Watcher,
    pub(crate) once: Option<OnceKey>,
    /// The run of a verifier that the round is.
    pub(crate) run: Option<(RunTicket, Found)>,
}

enum Turn {
    /// With a place among the rounds under way, and the round of the same request that its node left.
    Now(RoundPlace, Option<RoundId>),
    /// The same request began it before.
    Before(Box<Round>),
}

impl Engine {
    /// Runs a job on as many sessions as its terms ask for, and returns what they agree on.
    pub async fn round_run(
        &self,
        caller: &Caller,
        job: Job,
        watcher: Watcher,
    ) -> Result<Round, EngineError> {
        self.round_begin(caller, job, watcher, None).await?.ended().await
    }

    /// Opens a round and lets it run.
    ///
    /// From then on it goes to its end and is recorded even if the caller goes away; before that,
    /// nothing is begun for a caller who is gone. A request that began a round before under the same
    /// key gets that one; where its node stopped over it, the request is run again.
    pub async fn round_begin(
        &self,
        caller: &Caller,
        job: Job,
        watcher: Watcher,
        once: Option<OnceKey>,
    ) -> Result<Begun, EngineError> {
        let caller = caller.clone();
        self.begin(Start { caller, job, watcher, once, run: None }).await
    }

    pub(crate) async fn begin(&self, start: Start) -> Result<Begun, EngineError> {
        let kind = start.job.work.kind();
        let (caller, once) = (start.caller.clone(), start.once.clone());
        let (memory, is_step) = (start.job.memory_bytes(), start.job.step.is_some());
        let scope = if start.run.is_some() { Scope::VerifiersRun } else { Scope::RoundsCreate };
        let admitted = self.place_for((&caller, scope), once.as_ref(), memory, is_step).await;
        let failed = |error: &EngineError| self.inner.metrics.rounds.failed(kind, error.code());
        let (place, instead_of) = match admitted.inspect_err(failed)? {
            Turn::Now(place, instead_of) => (place, instead_of),
            Turn::Before(round) => {
                // One that has ended is not run again, and its request is not kept.
                let again = round.closing.is_none().then_some(start);
                return Ok(Begun::before(self, *round, again));
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
        let walk = self.inner.background.spawn(walk.instrument(trace::round(kind)));
        if let Ok(open) = opening.await {
            return Ok(Begun::now(self, open, walk));
        }
        // It ended before it opened a round: by an error, or because another was quicker.
        walk.await.map_err(|_| EngineError::Bug("a round ended in a panic"))??;
        let round = self.round_before(&caller, once.as_ref()).await?;
        let round = round.ok_or(EngineError::Bug("no round was begun"))?;
        Ok(Begun::before(self, round, None))
    }

    /// Finds out whether a round is to be walked at all.
    async fn place_for(
        &self,
        (caller, scope): (&Caller, Scope),
        once: Option<&OnceKey>,
        memory: usize,
        is_step: bool,
    ) -> Result<Turn, EngineError> {
        require(caller, scope)?;
        let before = self.round_before(caller, once).await?;
        // One that its node left has no answer, and never will: the request is run again.
        let instead_of = match before {
            Some(round) if !is_left(&round) => return Ok(Turn::Before(Box::new(round))),
            Some(round) => Some(round.open.id),
            None => None,
        };
        if caller.credit() == Credit::Suspended {
            return Err(EngineError::Suspended);
        }
        // A task that was taken goes on; its contract bounds what it stores.
        if !is_step {
            self.require_room(caller).await?;
        }
        // Whether the node is late was asked before the body was read.
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        Ok(Turn::Now(self.round_place(caller, memory)?, instead_of))
    }

    /// Returns nothing when no round was opened and that is no error. `opened` is told when the
    /// round is on record; nobody listens when the caller is gone.
    async fn walk(
        &self,
        start: Start,
        instead_of: Option<RoundId>,
        opened: oneshot::Sender<OpenRound>,
    ) -> Result<Option<Round>, EngineError> {
        let Start { caller, mut job, watcher, once, run } = start;
        let (ticket, found) = run.unzip();
        let opened_at = self.inner.clock.now();
        let deadline = Instant::now() + Duration::from_millis(job.timeout_ms);
        let bits = self.inner.clock.bits();
        let id = RoundId::new(opened_at, bits);
        trace::name_round(&id);

        let verifier = self.bind_verifier(&caller, &mut job, found).await?;
        let view = self.pool_view().await?;
        let checks = tokio::select! {
            checks = self.make_ready((&id, &caller), &job, (&view, verifier.as_ref()), deadline) => checks?,
            () = self.inner.under_way.released() => return Err(EngineError::ShuttingDown),
        };
        let choice = self.choose(&job, (&caller, &view), verifier.as_deref(), seed(bits))?;
        let at_hand = tokio::select! {
            at_hand = self.verdicts_at_hand(&choice, &checks, deadline) => at_hand,
            () = self.inner.under_way.released() => return Err(EngineError::ShuttingDown),
        };

        let seats = choice.seats.clone();
        let mut open = self.open_round((id, opened_at), caller.account().clone(), &job, seats);
        open.run = ticket;
        open.verifier = verifier.as_ref().and_then(|bound| bound.stored_id());
        open.hold = self.hold(&caller, &choice, &checks, &at_hand).await;
        open.kept = self.to_keep(&caller, || job.asked());
        let once = once.map(|once| self.round_note(&caller, &once, instead_of));
        // Nobody waits for it any more, and nothing is lost yet.
        if opened.is_closed() {
            return Ok(None);
        }
        // Listed before it can be seen, so that nobody fails to call it off.
        let entered = self.inner.under_way.enter(&open);
        self.inner.points.pass("round_open_before");
        let answer = self.open_in_turn(&mut open, once.as_ref(), deadline).await?;
        if !is_open(answer, &open)? {
            return Ok(None);
        }
        entered.opened();
        self.inner.points.pass("round_open_after");
        // It is on record, and may be large.
        if let Some(asked) = &mut open.kept.asked {
            asked.request = None;
        }
        job.request = None;
        // A caller who went away in this moment gets the round by its key or from the list.
        let _gone = opened.send(open.clone());

        let errand = Errand::new(&open, job, checks, (choice, at_hand), deadline);
        let ended = self.fan_out(&open, Arc::new(errand), &watcher, &entered).await;
        let round = self.close(open, ended, &watcher).await?;
        drop(entered);
        Ok(Some(round))
    }

    async fn make_ready(
        &self,
        (id, caller): (&RoundId, &Caller),
        job: &Job,
        (view, verifier): (&PoolView, Option<&Arc<Bound>>),
        deadline: Instant,
    ) -> Result<Checks, EngineError> {
        if Takers::of(job) == Takers::Executors {
            // Probing takes a part of the time at the most; whom it did not reach is not chosen.
            let probing = self.probe_stale(job, view);
            let within = Duration::from_millis(job.timeout_ms / 4);
            let _elapsed = tokio::time::timeout(within, probing).await;
        }
        let preparing = self.prepare((id, caller.account()), job, view, verifier);
        let preparing = tokio::time::timeout_at(deadline, preparing).await;
        preparing.map_err(|_| EngineError::ChecksBusy)?
    }

    /// Records the round, also when the answer to a first try is lost: a round that is on record
    /// and that nobody walks would keep its caller waiting.
    pub(crate) async fn record_open(
        &self,
        open: &OpenRound,
        once: Option<&Once>,
    ) -> Result<Opened, EngineError> {
        let record =
            || self.inner.metrics.write("round_open", self.inner.store.round_open(open, once));
        let error = match record().await {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        if error.kind != StoreErrorKind::Unavailable {
            return Err(error.into());
        }
        match record().await {
            Ok(
                opened @ (Opened::Opened
                | Opened::WithLess { .. }
                | Opened::InTurn
                | Opened::Overdrawn { .. }
                | Opened::DaySpent
                | Opened::VerifierGone),
            ) => Ok(opened),
            Ok(Opened::Repeated) | Err(StoreError { kind: StoreErrorKind::Conflict, .. }) => {
                let stored = self.inner.store.round_get(&open.account, &open.id).await?;
                let ours = stored.filter(|stored| stored.open.lease_token == open.lease_token);
                Ok(ours.map_or(Opened::Repeated, |ours| Self::opened_as(&ours)))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn open_round(
        &self,
        (id, opened_at): (RoundId, Timestamp),
        account: AccountId,
        job: &Job,
        seats: Vec<Seat>,
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
            seats,
            opened_at,
            deadline_at: opened_at.plus_millis(job.timeout_ms),
            run: None,
            verifier: None,
            step: job.step.as_ref().map(Step::ticket),
            hold: None,
            kept: Kept::default(),
        }
    }
}

/// A job whose replicas have all ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) errand: Arc<Errand>,
    /// Whoever is counted for each seat, in their order.
    pub(crate) replicas: Vec<Replica>,
    /// Those in whose place another was asked.
    pub(crate) replaced: Vec<Replica>,
    /// What ended it before all replicas had.
    pub(crate) stopped: Option<Stop>,
}

/// Whether a round is on record; not where the same request was quicker. Otherwise why it is refused.
fn is_open(answer: Opened, open: &OpenRound) -> Result<bool, EngineError> {
    match answer {
        Opened::Opened | Opened::WithLess { .. } => Ok(true),
        Opened::Repeated => Ok(false),
        Opened::InTurn => Err(EngineError::CreditInUse),
        Opened::Overdrawn { available_micros } => {
            let needed_micros = open.hold.map_or(0, |hold| hold.least_micros);
            Err(EngineError::Overdrawn { needed_micros, available_micros })
        }
        Opened::DaySpent => Err(EngineError::DaySpent { resets_at: open.opened_at.next_day() }),
        Opened::VerifierGone => {
            let id = open.run.as_ref().map(|run| run.verifier_id.clone()).unwrap_or_default();
            Err(EngineError::NotFound { what: "verifier", id })
        }
    }
}

/// Whether a round ended because its node stopped.
pub(crate) fn is_left(round: &Round) -> bool {
    round.closing.as_ref().is_some_and(|closing| closing.ending == Ending::Expired)
}

#[expect(clippy::cast_possible_truncation, reason = "the lower bits are as random as all")]
pub(crate) fn seed(bits: u128) -> u64 {
    // SQL has no unsigned integers, so the top bit stays free.
    (bits as u64) >> 1
}
