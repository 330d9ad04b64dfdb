//! Shares one judgment between equal runs of an account: one run asks, and all get its answer.

use std::{collections::BTreeMap, sync::Arc};

use jurat_core::{
    id::AccountId,
    judge::Judgment,
    round::replica::{FailureCode, ReplicaFailure},
};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The answer of a judge.
pub(crate) type JudgmentOutcome = Result<Judgment, ReplicaFailure>;

/// By account and the digest of the question.
type JudgmentKey = (AccountId, String);

/// The judgments in progress on this node.
#[derive(Debug, Default)]
pub(crate) struct SharedJudgments {
    in_flight: Mutex<BTreeMap<JudgmentKey, watch::Receiver<Option<JudgmentOutcome>>>>,
}

/// The role of a run that needs a judgment.
pub(super) enum JudgmentRole {
    /// Asks on behalf of all.
    Lead(JudgmentLeader),
    /// Waits for the run that asks.
    Wait(watch::Receiver<Option<JudgmentOutcome>>),
}

/// The run that asks on behalf of all. If it ends without an answer, the waiting runs ask
/// themselves.
#[derive(Debug)]
pub(crate) struct JudgmentLeader {
    judgments: Arc<SharedJudgments>,
    key: JudgmentKey,
    tell: watch::Sender<Option<JudgmentOutcome>>,
}

impl SharedJudgments {
    pub(super) fn join(self: &Arc<Self>, account: &AccountId, digest: &str) -> JudgmentRole {
        let key = (account.clone(), digest.to_owned());
        let mut under_way = self.in_flight.lock();
        if let Some(waiting) = under_way.get(&key) {
            return JudgmentRole::Wait(waiting.clone());
        }
        let (tell, told) = watch::channel(None);
        under_way.insert(key.clone(), told);
        JudgmentRole::Lead(JudgmentLeader { judgments: Arc::clone(self), key, tell })
    }
}

impl JudgmentLeader {
    /// Tells all waiting runs the answer, or that the judge cannot be asked or read. A failure of
    /// this run alone, such as its deadline or the end of its round, is not shared.
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
        self.judgments.in_flight.lock().remove(&self.key);
    }
}
