//! The walk of a job: select, open, fan out, verify, agree, close.

use std::{sync::Arc, time::Duration};

use jurat_core::{
    caller::{Caller, Scope},
    id::{AccountId, RoundId},
    job::Job,
    replica::Replica,
    round::{OpenRound, Round, Seat},
    select::select,
};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::{
    Engine, EngineError, Watcher,
    ask::Errand,
    executors::require,
    pool::{PoolView, lanes},
};

/// How long after its deadline a round still belongs to its node.
const LEASE_GRACE_MS: u64 = 10_000;

impl Engine {
    /// Runs a job on as many sessions as its terms ask for, and returns what they agree on.
    ///
    /// The round goes on to its end and is recorded even if the caller goes away.
    pub async fn round_run(
        &self,
        caller: &Caller,
        job: Job,
        watcher: Watcher,
    ) -> Result<Round, EngineError> {
        let kind = job.work.kind();
        let ended = self.round_to_its_end(caller, job, watcher).await;
        ended.inspect_err(|error| self.inner.metrics.rounds.failed(kind, error.code()))
    }

    async fn round_to_its_end(
        &self,
        caller: &Caller,
        job: Job,
        watcher: Watcher,
    ) -> Result<Round, EngineError> {
        require(caller, Scope::RoundsCreate)?;
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        let place = self.round_place(caller)?;
        let engine = self.clone();
        let account = caller.account().clone();
        let walk = async move {
            // Held until the round ends, not until its caller leaves.
            let _place = place;
            let walk = engine.walk(account, job, watcher);
            let walked = engine.inner.released.run_until_cancelled(walk).await;
            walked.unwrap_or(Err(EngineError::ShuttingDown))
        };
        // The log lines of the round name the request that it belongs to.
        let walk = self.inner.tasks.spawn(walk.in_current_span());
        walk.await.map_err(|_| EngineError::Bug("a round ended in a panic"))?
    }

    async fn walk(
        &self,
        account: AccountId,
        job: Job,
        watcher: Watcher,
    ) -> Result<Round, EngineError> {
        let opened_at = self.inner.clock.now();
        let deadline = Instant::now() + Duration::from_millis(job.timeout_ms);
        let bits = self.inner.clock.bits();
        let id = RoundId::new(opened_at, bits);

        let view = self.pool_view().await?;
        // Probing takes a part of the time at the most; whom it did not reach is not chosen.
        let probing = self.probe_stale(&job, &view);
        let _elapsed =
            tokio::time::timeout(Duration::from_millis(job.timeout_ms / 4), probing).await;
        let preparing = tokio::time::timeout_at(deadline, self.prepare(&id, &job, &view)).await;
        let checks = preparing.map_err(|_| EngineError::ChecksBusy)??;
        let (seats, places) = self.choose(&job, &view, seed(bits))?;

        let open = OpenRound {
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
        };
        self.inner.metrics.write("round_open", self.inner.store.round_open(&open)).await?;

        let errand = Errand::new(&open, job, checks, places, deadline);
        let ended = self.fan_out(&open, Arc::new(errand), &watcher).await;
        self.close(open, ended, &watcher).await
    }

    /// Chooses the sessions and says where each of them is.
    fn choose(
        &self,
        job: &Job,
        view: &PoolView,
        seed: u64,
    ) -> Result<(Vec<Seat>, Vec<Place>), EngineError> {
        let standings = self.standings();
        let lanes = lanes(view, &standings);
        let chosen = select(job, &lanes, seed)?;
        let mut seats = Vec::with_capacity(chosen.len());
        let mut places = Vec::with_capacity(chosen.len());
        for index in chosen {
            let lane = &lanes[index];
            self.note_dispatch(&lane.session.executor);
            let Some(address) = view.addresses.get(&lane.session.executor) else {
                return Err(EngineError::Bug("a chosen session has no address"));
            };
            seats.push(Seat {
                session_id: lane.session.id.clone(),
                executor: lane.session.executor.clone(),
                independence: lane.independence(),
                reliability: lane.reliability,
            });
            places.push(Place {
                address: Arc::clone(address),
                profile: lane.session.profile.clone(),
                task_type: job
                    .work
                    .task_type()
                    .map(|wanted| lane.session.task_type(wanted).to_owned()),
                price_micros: lane.session.price_micros,
                declared: lane.independence(),
            });
        }
        Ok((seats, places))
    }
}

/// Where a chosen session is, and how it wants to be asked.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: Arc<crate::pool::Address>,
    pub(crate) profile: String,
    /// The executor's own name for the task type; validation has none.
    pub(crate) task_type: Option<String>,
    pub(crate) price_micros: u64,
    /// Provider and model as declared, for answers that leave them out.
    pub(crate) declared: jurat_core::executor::Independence,
}

/// A job whose replicas have all ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) errand: Arc<Errand>,
    pub(crate) replicas: Vec<Replica>,
}

#[expect(clippy::cast_possible_truncation, reason = "the lower bits are as random as all")]
pub(crate) fn seed(bits: u128) -> u64 {
    // SQL has no unsigned integers, so the top bit stays free.
    (bits as u64) >> 1
}
