//! Caches verdicts, so that the same question is not asked again for a while.

use std::time::Duration;

use jurat_core::{
    judge::{self, JudgeVerdict, Judgment, PromptIdentity},
    time::Timestamp,
};
use jurat_store::{Behalf, CachedVerdict, VerdictPruning};

use super::{
    BUILTIN_PROVIDER, JudgeQuestion, JudgeResult,
    config::ProviderSettings,
    images::JudgeImages,
    shared_judgments::{JudgmentLeader, JudgmentRole},
};
use crate::{Engine, EngineError, node::metrics::CacheLookup};

/// How long the store may take to cache a verdict or its usage.
pub(super) const CACHE_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Verdicts that are removed in one transaction.
const PRUNED_AT_ONCE: u32 = 1_000;

/// What is available for a seat before its round opens.
#[derive(Debug)]
pub(crate) enum VerdictLookup {
    /// Nothing, so a judge is asked. Its answer is shared with the runs that wait for it.
    Nothing(Option<JudgmentLeader>),
    /// A cached verdict, or the answer that an equal run just got, which may be a failure of the
    /// judge. No judge is asked.
    Told(Box<JudgeResult>),
}

impl VerdictLookup {
    /// Whether the judge in the seat costs nothing. A spare may still be asked.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Self::Told(_))
    }

    /// Whether the seat is filled, so that no spare is asked.
    pub(crate) fn is_verdict(&self) -> bool {
        matches!(self, Self::Told(judged) if judged.outcome.is_ok())
    }
}

pub(super) fn question_digest(
    task: &JudgeQuestion,
    provider: &ProviderSettings,
    pictures: &JudgeImages,
) -> String {
    judge::digest(&PromptIdentity {
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
    /// Looks up the verdicts of all questions of one round. Among equal runs of an account one
    /// asks, and the others wait for its answer.
    pub(crate) async fn look_up_verdicts(&self, tasks: &[JudgeQuestion]) -> Vec<VerdictLookup> {
        let mut digests = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            digests.push((self.digest_of(task).await, index));
        }
        // All rounds wait in the same order, so that no two wait for each other.
        digests.sort();
        let mut found: Vec<VerdictLookup> =
            tasks.iter().map(|_| VerdictLookup::Nothing(None)).collect();
        for (digest, index) in digests {
            if let Some(digest) = digest {
                found[index] = self.lead_or_wait(&tasks[index], &digest).await;
            }
        }
        found
    }

    /// The digest of a question whose answer may be available; `None` if it never is.
    async fn digest_of(&self, task: &JudgeQuestion) -> Option<String> {
        if task.is_fresh || task.model.provider == BUILTIN_PROVIDER {
            return None;
        }
        let provider =
            self.inner.judge_providers.provider(&task.model, &self.inner.secrets).ok()?;
        let pictures = tokio::time::timeout_at(task.deadline, self.judge_images(task)).await;
        Some(question_digest(task, provider.settings, &pictures.ok()?.ok()?))
    }

    async fn lead_or_wait(&self, task: &JudgeQuestion, digest: &str) -> VerdictLookup {
        loop {
            let mut others = match self.inner.shared_judgments.join(&task.account, digest) {
                JudgmentRole::Wait(others) => others,
                JudgmentRole::Lead(asker) => {
                    // Looked up only now: the run that asked before may have cached it a moment
                    // ago.
                    let Some(known) = self.cached_verdict(task, digest).await else {
                        return VerdictLookup::Nothing(Some(asker));
                    };
                    self.inner.metrics.judges.lookup(&task.model.provider, CacheLookup::Hit);
                    asker.publish(&Ok(known.clone()));
                    return VerdictLookup::Told(Box::new(JudgeResult::cached(Ok(known))));
                }
            };
            let told = tokio::time::timeout_at(task.deadline, others.wait_for(Option::is_some));
            match told.await.map(|told| told.ok().and_then(|told| told.clone())) {
                Ok(Some(outcome)) => {
                    return VerdictLookup::Told(Box::new(JudgeResult::cached(outcome)));
                }
                // The run that asked got no answer from the judge, or is gone.
                Ok(None) => {}
                Err(_) => return VerdictLookup::Nothing(None),
            }
        }
    }

    /// Whether a cached verdict may answer the question.
    pub(super) fn uses_verdict_cache(&self, task: &JudgeQuestion) -> bool {
        !task.is_fresh && self.inner.judge_providers.config.cache_for.is_some()
    }

    /// A cached verdict. If the store does not answer, the judge is asked.
    pub(super) async fn cached_verdict(
        &self,
        task: &JudgeQuestion,
        digest: &str,
    ) -> Option<Judgment> {
        if task.is_fresh {
            return None;
        }
        let since = self.fresh_since(self.inner.judge_providers.config.cache_for?);
        let (verdicts, behalf) = (self.inner.store.verdicts(), Behalf::from(&task.account));
        let found = verdicts.get(&behalf, &task.account, digest, &since);
        let found = match tokio::time::timeout_at(task.deadline, found).await {
            Ok(Ok(found)) => found?,
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "could not look up a cached verdict");
                return None;
            }
            Err(_) => return None,
        };
        let judgment = Judgment::from_document(&found.document);
        if judgment.is_none() {
            tracing::warn!("cannot read a cached verdict; calling the judge again");
        }
        judgment
    }

    /// Caches a verdict. Only decisive verdicts are cached: anything else may be decided another
    /// time.
    pub(super) async fn cache_verdict(
        &self,
        task: &JudgeQuestion,
        digest: String,
        judgment: &Judgment,
    ) {
        let decides = matches!(judgment.verdict, JudgeVerdict::Met | JudgeVerdict::NotMet);
        if !decides || self.inner.judge_providers.config.cache_for.is_none() {
            return;
        }
        let verdict =
            CachedVerdict { digest, document: judgment.document(), at: self.inner.clock.now() };
        let (verdicts, behalf) = (self.inner.store.verdicts(), Behalf::from(&task.account));
        let kept = verdicts.put(&behalf, &task.account, &task.verifier_id, &verdict);
        match tokio::time::timeout(CACHE_WRITE_TIMEOUT, kept).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = %error, "could not cache a verdict"),
            Err(_) => tracing::warn!("could not cache a verdict in time"),
        }
    }

    /// Removes expired verdicts, and the oldest beyond the limit.
    pub(crate) async fn prune_verdicts(&self) -> Result<u64, EngineError> {
        let judges = &self.inner.judge_providers.config;
        let pruning = VerdictPruning {
            before: self.fresh_since(judges.cache_for.unwrap_or_default()),
            most: judges.cache_most,
            limit: PRUNED_AT_ONCE,
        };
        let mut pruned = 0;
        loop {
            let gone = self.inner.store.verdicts().prune(&Behalf::Platform, &pruning).await?;
            pruned += gone;
            if gone < u64::from(PRUNED_AT_ONCE) {
                return Ok(pruned);
            }
        }
    }

    fn fresh_since(&self, age: Duration) -> Timestamp {
        let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.inner.clock.now().micros().saturating_sub(age))
    }
}
