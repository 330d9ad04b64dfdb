//! The rounds in progress on this node, so that they can be awaited and cancelled.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jurat_core::{
    id::{AccountId, RoundId},
    round::OpenRound,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Why a round ends before its replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// Its caller cancelled it.
    Caller,
    /// The node stops.
    Node,
}

#[derive(Debug, Default)]
pub(crate) struct RoundsInFlight {
    rounds: Mutex<RoundTable>,
    released: CancellationToken,
}

#[derive(Debug, Default)]
struct RoundTable {
    in_flight: BTreeMap<RoundId, Arc<RoundInFlight>>,
    /// The reason for stopping rounds that start while the node stops.
    stop: Option<StopReason>,
}

/// A round in progress.
#[derive(Debug)]
pub(crate) struct RoundInFlight {
    account: AccountId,
    /// Whether it is recorded, not only about to be.
    is_open: AtomicBool,
    stop: watch::Sender<Option<StopReason>>,
    ended: CancellationToken,
}

impl RoundInFlight {
    pub(crate) fn stop(&self, why: StopReason) {
        // The first reason is kept.
        self.stop.send_if_modified(|stop| {
            let is_first = stop.is_none();
            *stop = stop.or(Some(why));
            is_first
        });
    }

    /// Waits until the round is removed from the list, which happens after it is recorded.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl RoundsInFlight {
    /// Lists a round until the returned guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, open: &OpenRound) -> RoundInFlightGuard {
        let mut rounds = self.rounds();
        let running = Arc::new(RoundInFlight {
            account: open.account.clone(),
            is_open: AtomicBool::new(false),
            stop: watch::Sender::new(rounds.stop),
            ended: CancellationToken::new(),
        });
        rounds.in_flight.insert(open.id.clone(), Arc::clone(&running));
        RoundInFlightGuard { rounds: Arc::clone(self), id: open.id.clone(), round: running }
    }

    pub(crate) fn find(&self, account: &AccountId, id: &RoundId) -> Option<Arc<RoundInFlight>> {
        let found = self.rounds().in_flight.get(id).cloned();
        found.filter(|running| running.account == *account)
    }

    /// A recorded round of the account.
    pub(crate) fn open_of(&self, account: &AccountId) -> Option<Arc<RoundInFlight>> {
        let rounds = self.rounds();
        let is_open = |running: &&Arc<RoundInFlight>| {
            running.account == *account && running.is_open.load(Ordering::SeqCst)
        };
        rounds.in_flight.values().find(is_open).cloned()
    }

    /// Stops every round in progress, and every round that starts from now on.
    pub(crate) fn stop_all(&self, why: StopReason) {
        self.released.cancel();
        let mut rounds = self.rounds();
        rounds.stop = Some(why);
        for running in rounds.in_flight.values() {
            running.stop(why);
        }
    }

    /// Resolves when all rounds are stopped, for those that have not started yet.
    pub(crate) async fn released(&self) {
        self.released.cancelled().await;
    }

    fn rounds(&self) -> MutexGuard<'_, RoundTable> {
        // No operation under the lock can leave it half done.
        self.rounds.lock()
    }
}

/// Keeps a round on the list.
#[derive(Debug)]
pub(crate) struct RoundInFlightGuard {
    rounds: Arc<RoundsInFlight>,
    id: RoundId,
    round: Arc<RoundInFlight>,
}

impl RoundInFlightGuard {
    /// Marks the round as recorded.
    pub(crate) fn mark_open(&self) {
        self.round.is_open.store(true, Ordering::SeqCst);
    }

    /// Waits until the round is stopped.
    pub(crate) async fn stopped(&self) -> StopReason {
        let mut stop = self.round.stop.subscribe();
        match stop.wait_for(Option::is_some).await.map(|stop| *stop) {
            Ok(Some(why)) => why,
            // The sender lives as long as this does.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for RoundInFlightGuard {
    fn drop(&mut self) {
        self.rounds.rounds().in_flight.remove(&self.id);
        self.round.ended.cancel();
    }
}
