//! Verdicts that were given before to the same question, and are used again for a while.

use std::time::Duration;

use jurat_core::{
    judge::{self, Asked, JudgeVerdict, Judgment},
    time::Timestamp,
};
use jurat_store::{KnownVerdict, Pruning};

use super::{JudgeTask, pictures::Pictures, settings::ProviderSettings};
use crate::{Engine, EngineError};

/// How long the store may take to keep a verdict, which waits for nothing else.
const KEEP_WITHIN: Duration = Duration::from_secs(1);

/// Verdicts that are removed in one transaction.
const PRUNED_AT_ONCE: u32 = 1_000;

pub(super) fn digest(task: &JudgeTask, provider: &ProviderSettings, pictures: &Pictures) -> String {
    judge::digest(&Asked {
        question: &task.question,
        image: pictures.image.as_ref(),
        example_images: &pictures.examples,
        model: &task.model,
        address: &provider.base_url,
        effort: task.effort,
        commit_first: task.commit_first,
    })
}

impl Engine {
    /// Whether a verdict that is known is used for the task.
    pub(super) fn looks_for_verdicts(&self, task: &JudgeTask) -> bool {
        !task.is_fresh && self.inner.bench.judges.cache_for.is_some()
    }

    /// A verdict that is known. A store that does not answer costs a judgment, not the run.
    pub(super) async fn known_verdict(&self, task: &JudgeTask, digest: &str) -> Option<Judgment> {
        if task.is_fresh {
            return None;
        }
        let since = self.used_since(self.inner.bench.judges.cache_for?);
        let found = self.inner.store.verdict_get(&task.account, digest, since);
        let found = match tokio::time::timeout_at(task.deadline, found).await {
            Ok(Ok(found)) => found?,
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "could not look for a known verdict");
                return None;
            }
            Err(_) => return None,
        };
        let judgment = Judgment::from_document(&found.document);
        if judgment.is_none() {
            tracing::warn!("a known verdict cannot be read, so the judge is asked again");
        }
        judgment
    }

    /// Keeps a verdict. Only what decides is kept: anything else may be decided another time.
    pub(super) async fn remember_verdict(
        &self,
        task: &JudgeTask,
        digest: String,
        judgment: &Judgment,
    ) {
        let decides = matches!(judgment.verdict, JudgeVerdict::Met | JudgeVerdict::NotMet);
        if !decides || self.inner.bench.judges.cache_for.is_none() {
            return;
        }
        let verdict =
            KnownVerdict { digest, document: judgment.document(), at: self.inner.clock.now() };
        let kept = self.inner.store.verdict_put(&task.account, &task.verifier_id, &verdict);
        match tokio::time::timeout(KEEP_WITHIN, kept).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = %error, "could not keep a verdict"),
            Err(_) => tracing::warn!("could not keep a verdict in time"),
        }
    }
    /// Removes the verdicts that are not used any more, and of the others all but the newest.
    pub(crate) async fn prune_verdicts(&self) -> Result<u64, EngineError> {
        let judges = &self.inner.bench.judges;
        let pruning = Pruning {
            before: self.used_since(judges.cache_for.unwrap_or_default()),
            most: judges.cache_most,
            limit: PRUNED_AT_ONCE,
        };
        let mut pruned = 0;
        loop {
            let gone = self.inner.store.verdicts_prune(&pruning).await?;
            pruned += gone;
            if gone < u64::from(PRUNED_AT_ONCE) {
                return Ok(pruned);
            }
        }
    }

    fn used_since(&self, age: Duration) -> Timestamp {
        let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.inner.clock.now().micros().saturating_sub(age))
    }
}
