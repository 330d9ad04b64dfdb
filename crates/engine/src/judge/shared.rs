//! Judgments that several runs of an account want at once: one asks, and all have what it was told.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jurat_core::{
    id::AccountId,
    judge::Judgment,
    replica::{Failure, FailureCode},
};
use tokio::sync::watch;

/// What a judge said to whoever asked.
pub(crate) type Outcome = Result<Judgment, Failure>;

/// By account and the digest of the question.
type Key = (AccountId, String);

/// The judgments under way on this node.
#[derive(Debug, Default)]
pub(crate) struct SharedJudgments {
    under_way: Mutex<BTreeMap<Key, watch::Receiver<Option<Outcome>>>>,
}

/// What somebody who wants a judgment does.
pub(super) enum Turn {
    /// Asks for all.
    Ask(Asker),
    /// Waits for whoever asks.
    Wait(watch::Receiver<Option<Outcome>>),
}

/// Whoever asks for all. Those who wait ask themselves when it is gone without having told them.
#[derive(Debug)]
pub(crate) struct Asker {
    judgments: Arc<SharedJudgments>,
    key: Key,
    tell: watch::Sender<Option<Outcome>>,
}

impl SharedJudgments {
    pub(super) fn enter(self: &Arc<Self>, account: &AccountId, digest: &str) -> Turn {
        let key = (account.clone(), digest.to_owned());
        let mut under_way = self.lock();
        if let Some(waiting) = under_way.get(&key) {
            return Turn::Wait(waiting.clone());
        }
        let (tell, told) = watch::channel(None);
        under_way.insert(key.clone(), told);
        Turn::Ask(Asker { judgments: Arc::clone(self), key, tell })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, watch::Receiver<Option<Outcome>>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asker {
    /// Tells all who wait what the judge said, or that it cannot be asked or read. What kept only
    /// this one from being told, such as the end of its time or of its round, says nothing to them.
    pub(crate) fn tell(&self, outcome: &Outcome) {
        let is_of_judge = match outcome {
            Ok(_) => true,
            Err(failure) => {
                matches!(failure.code, FailureCode::JudgeUnavailable | FailureCode::JudgeUnreadable)
            }
        };
        if is_of_judge {
            self.tell.send_replace(Some(outcome.clone()));
        }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.judgments.lock().remove(&self.key);
    }
}
