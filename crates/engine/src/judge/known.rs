//! Verdicts that were given before to the same question, and are used again for a while.

use std::time::Duration;

use jurat_core::{
    judge::{self, Asked, JudgeVerdict, Judgment},
    time::Timestamp,
};
use jurat_store::KnownVerdict;

use super::{JudgeTask, pictures::Pictures, settings::ProviderSettings};
use crate::Engine;

/// How long the store may take to keep a verdict, which waits for nothing else.
const KEEP_WITHIN: Duration = Duration::from_secs(1);

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
    /// A verdict that is known. A store that does not answer costs a judgment, not the run.
    pub(super) async fn known_verdict(&self, task: &JudgeTask, digest: &str) -> Option<Judgment> {
        if task.is_fresh {
            return None;
        }
        let kept = self.inner.bench.judges.cache_for?;
        let age = i64::try_from(kept.as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(self.inner.clock.now().micros().saturating_sub(age));
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
}
