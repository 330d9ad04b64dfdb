//! Waits for the end of a round on any node, and cancels rounds.

use std::time::Duration;

use jurat_core::{
    account::caller::{Caller, Scope},
    id::{AccountId, RoundId},
    round::{CancelledRound, Round, RoundEnding},
};
use jurat_store::Behalf;
use tokio::time::Instant;

use super::in_flight::StopReason;
use crate::{Engine, EngineError, access::require_scope, pauses::Pauses};

/// How long a cancellation waits for the round to end.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

impl Engine {
    /// The round when it ends, or when the time is up.
    pub async fn round_wait(
        &self,
        caller: &Caller,
        id: &RoundId,
        within: Duration,
    ) -> Result<Round, EngineError> {
        require_scope(caller, Scope::RoundsRead)?;
        self.wait_for_round(caller.account(), id, within).await
    }

    /// Cancels a round: outstanding replicas are cancelled, and it ends without a verdict. A round
    /// that is about to end is returned as open. Whoever may begin rounds may cancel them, too, and
    /// whoever may run verifiers may cancel their runs, but reading them takes another scope.
    pub async fn round_cancel(
        &self,
        caller: &Caller,
        id: &RoundId,
    ) -> Result<CancelledRound, EngineError> {
        if !caller.may(Scope::VerifiersRun) {
            require_scope(caller, Scope::RoundsCreate)?;
        }
        let account = caller.account();
        let round = self.round_unredacted(account, id).await?;
        if round.open.run.is_none() {
            require_scope(caller, Scope::RoundsCreate)?;
        }
        if let Some(step) = &round.open.step {
            // A caller that could stop single votes would choose the voters.
            let task = &step.task_id;
            return Err(EngineError::Conflict(format!(
                "the round `{id}` belongs to the task `{task}` and ends with it; cancel the task instead, with `jurat task cancel {task}` or `POST /v1/tasks/{task}/cancel`"
            )));
        }
        if let Some(closing) = &round.closing {
            not_ended_before(id, closing.ending)?;
        } else if let Some(running) = self.inner.rounds_in_flight.find(account, id) {
            running.stop(StopReason::Caller);
        } else {
            // The node of the round polls for this.
            let now = self.inner.clock.now();
            self.inner.store.rounds().cancel(&Behalf::from(account), account, id, &now).await?;
        }
        let round = self.wait_for_round(account, id, CANCEL_WAIT).await?;
        if let Some(closing) = &round.closing {
            not_ended_before(id, closing.ending)?;
        }
        Ok(if caller.may(Scope::RoundsRead) {
            CancelledRound::Whole(Box::new(round))
        } else {
            CancelledRound::state_of(round)
        })
    }

    /// Stops rounds of this node that were cancelled through another.
    pub(crate) async fn stop_cancelled(&self) -> Result<(), EngineError> {
        for (account, id) in
            self.inner.store.rounds().cancelled(&Behalf::Platform, &self.inner.node).await?
        {
            if let Some(running) = self.inner.rounds_in_flight.find(&account, &id) {
                running.stop(StopReason::Caller);
            }
        }
        Ok(())
    }

    pub(crate) async fn wait_for_round(
        &self,
        account: &AccountId,
        id: &RoundId,
        within: Duration,
    ) -> Result<Round, EngineError> {
        let until = Instant::now() + within;
        let mut pauses = Pauses::between_reads();
        loop {
            // Looked up before the round is read, so that an end in between is not missed.
            let running = self.inner.rounds_in_flight.find(account, id);
            let round = self.round_of(account, id).await?;
            // A stopping node waits only for its own rounds.
            let is_over = until <= Instant::now() || (running.is_none() && self.is_stopping());
            if round.closing.is_some() || is_over {
                return Ok(round);
            }
            if let Some(running) = running {
                let _elapsed = tokio::time::timeout_at(until, running.ended()).await;
            } else {
                let next = until.min(Instant::now() + pauses.advance());
                let _elapsed = tokio::time::timeout_at(next, self.stopping()).await;
            }
        }
    }

    pub(crate) async fn round_of(
        &self,
        account: &AccountId,
        id: &RoundId,
    ) -> Result<Round, EngineError> {
        let round = self.round_unredacted(account, id).await?;
        let round = self.visible_round(round).await?;
        self.with_kept_content(round).await
    }

    /// The round, including parts that its owner may not see yet.
    async fn round_unredacted(
        &self,
        account: &AccountId,
        id: &RoundId,
    ) -> Result<Round, EngineError> {
        let round = self.inner.store.rounds().get(&Behalf::from(account), account, id).await?;
        round.ok_or_else(|| EngineError::NotFound { what: "round", id: id.to_string() })
    }
}

/// A round that ended otherwise cannot be cancelled.
fn not_ended_before(id: &RoundId, ending: RoundEnding) -> Result<(), EngineError> {
    if ending == RoundEnding::Cancelled {
        return Ok(());
    }
    Err(EngineError::Conflict(format!("the round `{id}` has already ended as `{ending}`")))
}
