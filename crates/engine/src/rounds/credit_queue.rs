//! Queues the rounds of an account whose credit covers one call at a time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jurat_core::{
    id::AccountId,
    round::{OpenRound, Round},
};
use jurat_store::{IdempotencyRecord, RoundOpenOutcome};
use parking_lot::Mutex;
use tokio::{
    sync::OwnedMutexGuard,
    time::{Instant, timeout_at},
};

use crate::{Engine, EngineError};

/// The first and the longest interval between checks for the end of another node's round.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The queues of accounts on this node, as long as they are in use.
#[derive(Debug, Default)]
pub(crate) struct CreditQueues {
    queues: Mutex<BTreeMap<AccountId, Arc<tokio::sync::Mutex<()>>>>,
}

/// The head of an account's queue. Its holder is the next to open a round.
type CreditQueueHead = OwnedMutexGuard<()>;

impl CreditQueues {
    /// The queue of an account, if it is in use.
    fn busy_queue(&self, account: &AccountId) -> Option<Arc<tokio::sync::Mutex<()>>> {
        let mut queues = self.queues.lock();
        // Only this table refers to an unused queue.
        queues.retain(|_, queue| 1 < Arc::strong_count(queue));
        queues.get(account).cloned()
    }

    fn queue_of(&self, account: &AccountId) -> Arc<tokio::sync::Mutex<()>> {
        let mut queues = self.queues.lock();
        Arc::clone(queues.entry(account.clone()).or_default())
    }
}

impl Engine {
    /// Records a round as open. If the credit of its account covers one call at a time and another
    /// is in progress, it waits until the deadline.
    pub(crate) async fn open_with_credit(
        &self,
        open: &mut OpenRound,
        once: Option<&IdempotencyRecord>,
        deadline: Instant,
    ) -> Result<RoundOpenOutcome, EngineError> {
        let mut turn = None;
        // A free round does not wait.
        let is_limited = open.hold.is_some_and(|hold| hold.is_limited);
        if let Some(queue) =
            self.inner.credit_queues.busy_queue(&open.account).filter(|_| is_limited)
        {
            turn = Some(self.wait_in_queue(queue, deadline).await?);
        }
        let mut pause = FIRST_LOOK;
        loop {
            let opened = self.record_open(open, once).await?;
            if let (RoundOpenOutcome::WithLess { held_micros }, Some(hold)) =
                (opened, &mut open.hold)
            {
                hold.micros = held_micros;
            }
            if opened != RoundOpenOutcome::InTurn {
                return Ok(opened);
            }
            if turn.is_none() {
                let queue = self.inner.credit_queues.queue_of(&open.account);
                turn = Some(self.wait_in_queue(queue, deadline).await?);
                continue;
            }
            let running = self.inner.rounds_in_flight.open_of(&open.account);
            let next = deadline.min(Instant::now() + pause);
            let ended = async {
                match running {
                    Some(running) => running.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _elapsed = timeout_at(next, ended) => {}
                () = self.inner.rounds_in_flight.released() => return Err(EngineError::ShuttingDown),
            }
            if deadline <= Instant::now() {
                return Err(EngineError::CreditInUse);
            }
            pause = LOOK_EVERY.min(pause * 2);
        }
    }

    async fn wait_in_queue(
        &self,
        queue: Arc<tokio::sync::Mutex<()>>,
        deadline: Instant,
    ) -> Result<CreditQueueHead, EngineError> {
        tokio::select! {
            turn = timeout_at(deadline, queue.lock_owned()) => {
                turn.map_err(|_| EngineError::CreditInUse)
            }
            () = self.inner.rounds_in_flight.released() => Err(EngineError::ShuttingDown),
        }
    }

    /// The hold of a recorded round, which may be less than requested.
    pub(crate) fn opened_as(stored: &Round) -> RoundOpenOutcome {
        match stored.open.hold {
            Some(hold) => RoundOpenOutcome::WithLess { held_micros: hold.micros },
            None => RoundOpenOutcome::Opened,
        }
    }
}
