//! The rounds under way on this node: who waits for their end, and what calls them off.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use jurat_core::{
    id::{AccountId, RoundId},
    round::OpenRound,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Why a round ends before its replicas have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its caller called it off.
    Caller,
    /// The node ends.
    Node,
}

#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    rounds: Mutex<Rounds>,
    released: CancellationToken,
}

#[derive(Debug, Default)]
struct Rounds {
    running: BTreeMap<RoundId, Arc<Running>>,
    /// What is told to rounds that begin when the node ends already.
    stop: Option<Stop>,
}

/// A round under way.
#[derive(Debug)]
pub(crate) struct Running {
    account: AccountId,
    /// Whether it is on record, and not only about to be.
    is_open: AtomicBool,
    stop: watch::Sender<Option<Stop>>,
    ended: CancellationToken,
}

impl Running {
    pub(crate) fn stop(&self, why: Stop) {
        // The first reason stands.
        self.stop.send_if_modified(|stop| {
            let is_first = stop.is_none();
            *stop = stop.or(Some(why));
            is_first
        });
    }

    /// Waits until the round is off the list, which is after its record.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl UnderWay {
    /// Lists a round until what is returned is dropped.
    pub(crate) fn enter(self: &Arc<Self>, open: &OpenRound) -> Entered {
        let mut rounds = self.rounds();
        let running = Arc::new(Running {
            account: open.account.clone(),
            is_open: AtomicBool::new(false),
            stop: watch::Sender::new(rounds.stop),
            ended: CancellationToken::new(),
        });
        rounds.running.insert(open.id.clone(), Arc::clone(&running));
        Entered { under_way: Arc::clone(self), id: open.id.clone(), running }
    }

    pub(crate) fn find(&self, account: &AccountId, id: &RoundId) -> Option<Arc<Running>> {
        let found = self.rounds().running.get(id).cloned();
        found.filter(|running| running.account == *account)
    }

    /// A round of the account that is on record.
    pub(crate) fn open_of(&self, account: &AccountId) -> Option<Arc<Running>> {
        let rounds = self.rounds();
        let is_open = |running: &&Arc<Running>| {
            running.account == *account && running.is_open.load(Ordering::SeqCst)
        };
        rounds.running.values().find(is_open).cloned()
    }

    /// Stops every round that is under way, and every one that begins from now on.
    pub(crate) fn stop_all(&self, why: Stop) {
        self.released.cancel();
        let mut rounds = self.rounds();
        rounds.stop = Some(why);
        for running in rounds.running.values() {
            running.stop(why);
        }
    }

    /// Waits until every round is stopped, for those that have not begun yet.
    pub(crate) async fn released(&self) {
        self.released.cancelled().await;
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        // Nothing that is done under the lock leaves it half done.
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a round on the list.
#[derive(Debug)]
pub(crate) struct Entered {
    under_way: Arc<UnderWay>,
    id: RoundId,
    running: Arc<Running>,
}

impl Entered {
    /// The round is on record.
    pub(crate) fn opened(&self) {
        self.running.is_open.store(true, Ordering::SeqCst);
    }

    /// Waits until something calls the round off.
    pub(crate) async fn stopped(&self) -> Stop {
        let mut stop = self.running.stop.subscribe();
        match stop.wait_for(Option::is_some).await.map(|stop| *stop) {
            Ok(Some(why)) => why,
            // The sender lives as long as this does.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.under_way.rounds().running.remove(&self.id);
        self.running.ended.cancel();
    }
}
