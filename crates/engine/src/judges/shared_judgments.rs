//! Judgments that several runs of an account want at once: one asks, and all have what it was told.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jurat_core::{
    id::AccountId,
    judge::Judgment,
    round::replica::{FailureCode, ReplicaFailure},
};
use tokio::sync::watch;

/// What a judge said to whoever asked.
pub(crate) type JudgmentOutcome = Result<Judgment, ReplicaFailure>;

/// By account and the digest of the question.
type JudgmentKey = (AccountId, String);

/// The judgments under way on this node.
#[derive(Debug, Default)]
pub(crate) struct SharedJudgments {
    in_flight: Mutex<BTreeMap<JudgmentKey, watch::Receiver<Option<JudgmentOutcome>>>>,
}

/// What somebody who wants a judgment does.
pub(super) enum JudgmentRole {
    /// Asks for all.
    Lead(JudgmentLeader),
    /// Waits for whoever asks.
    Wait(watch::Receiver<Option<JudgmentOutcome>>),
}

/// Whoever asks for all. Those who wait ask themselves when it is gone without having told them.
#[derive(Debug)]
pub(crate) struct JudgmentLeader {
    judgments: Arc<SharedJudgments>,
    key: JudgmentKey,
    tell: watch::Sender<Option<JudgmentOutcome>>,
}

impl SharedJudgments {
    pub(super) fn join(self: &Arc<Self>, account: &AccountId, digest: &str) -> JudgmentRole {
        let key = (account.clone(), digest.to_owned());
        let mut under_way = self.lock();
        if let Some(waiting) = under_way.get(&key) {
            return JudgmentRole::Wait(waiting.clone());
        }
        let (tell, told) = watch::channel(None);
        under_way.insert(key.clone(), told);
        JudgmentRole::Lead(JudgmentLeader { judgments: Arc::clone(self), key, tell })
    }

    fn lock(
        &self,
    ) -> MutexGuard<'_, BTreeMap<JudgmentKey, watch::Receiver<Option<JudgmentOutcome>>>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JudgmentLeader {
    /// Tells all who wait what the judge said, or that it cannot be asked or read. What kept only
    /// this one from being told, such as the end of its time or of its round, says nothing to them.
    pub(crate) fn publish(&self, outcome: &JudgmentOutcome) {
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

impl Drop for JudgmentLeader {
    fn drop(&mut self) {
        self.judgments.lock().remove(&self.key);
    }
}
