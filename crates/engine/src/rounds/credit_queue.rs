//! Queues the rounds of an account whose credit covers one call at a time.

use jurat_core::{
    id::AccountId,
    round::{OpenRound, Round},
};
use jurat_store::{IdempotencyRecord, RoundOpenRefusal, RoundOpening, WriteOutcome};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use crate::{
    Engine, EngineError,
    node::keyed_locks::{KeyedLock, KeyedLockGuard, KeyedLocks},
    pauses::Pauses,
};

/// The queues of accounts on this node. The holder of the lock is the next to open a round.
pub(crate) type CreditQueues = KeyedLocks<AccountId>;

impl Engine {
    /// Records a round as open. If the credit of its account covers one call at a time and another
    /// is in progress, it waits until the deadline. Returns `None` if its caller leaves meanwhile:
    /// nobody would get what the round costs.
    pub(crate) async fn open_with_credit(
        &self,
        open: &mut OpenRound,
        once: Option<&IdempotencyRecord<RoundOpening>>,
        (deadline, caller): (Instant, &mut oneshot::Sender<OpenRound>),
    ) -> Result<Option<WriteOutcome<RoundOpening, RoundOpenRefusal>>, EngineError> {
        let mut turn = None;
        // A free round does not wait.
        let is_limited = open.hold.is_some_and(|hold| hold.is_limited);
        if let Some(queue) = self.inner.credit_queues.in_use(&open.account).filter(|_| is_limited) {
            turn = self.wait_in_queue(queue, deadline, caller).await?;
        }
        let mut pauses = Pauses::between_reads();
        loop {
            if caller.is_closed() {
                return Ok(None);
            }
            let opened = self.record_open(open, once).await?;
            if let (WriteOutcome::Done(RoundOpening::WithLess { held_micros }), Some(hold)) =
                (opened, &mut open.hold)
            {
                hold.micros = held_micros;
            }
            if opened != WriteOutcome::Refused(RoundOpenRefusal::InTurn) {
                return Ok(Some(opened));
            }
            if turn.is_none() {
                let queue = self.inner.credit_queues.of(open.account.clone());
                turn = self.wait_in_queue(queue, deadline, caller).await?;
                continue;
            }
            let running = self.inner.rounds_in_flight.open_of(&open.account);
            let next = deadline.min(Instant::now() + pauses.advance());
            let ended = async {
                match running {
                    Some(running) => running.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _elapsed = timeout_at(next, ended) => {}
                () = caller.closed() => {}
                () = self.inner.rounds_in_flight.released() => return Err(EngineError::ShuttingDown),
            }
            if deadline <= Instant::now() && !caller.is_closed() {
                return Err(EngineError::credit_in_use());
            }
        }
    }

    /// Waits for the turn of a round; `None` if its caller leaves first.
    async fn wait_in_queue(
        &self,
        queue: KeyedLock,
        deadline: Instant,
        caller: &mut oneshot::Sender<OpenRound>,
    ) -> Result<Option<KeyedLockGuard>, EngineError> {
        tokio::select! {
            turn = timeout_at(deadline, queue.acquire()) => {
                turn.map(Some).map_err(|_| EngineError::credit_in_use())
            }
            () = caller.closed() => Ok(None),
            () = self.inner.rounds_in_flight.released() => Err(EngineError::ShuttingDown),
        }
    }

    /// The hold of a recorded round, which may be less than requested.
    pub(crate) fn opened_as(stored: &Round) -> WriteOutcome<RoundOpening, RoundOpenRefusal> {
        match stored.open.hold {
            Some(hold) => WriteOutcome::Done(RoundOpening::WithLess { held_micros: hold.micros }),
            None => WriteOutcome::Done(RoundOpening::Whole),
        }
    }
}
