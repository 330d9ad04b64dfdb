//! Verdicts that were given before to the same question, and are used again for a while.

use std::time::Duration;

use jurat_core::{
    judge::{self, Asked, JudgeVerdict, Judgment},
    time::Timestamp,
};
use jurat_store::{KnownVerdict, Pruning};

use super::{
    BUILTIN, JudgeTask, Judged,
    pictures::Pictures,
    settings::ProviderSettings,
    shared::{Asker, Turn},
};
use crate::{Engine, EngineError, metrics::Lookup};

/// How long the store may take to keep a verdict or what it used, for which nobody waits longer.
pub(super) const KEEP_WITHIN: Duration = Duration::from_secs(1);

/// Verdicts that are removed in one transaction.
const PRUNED_AT_ONCE: u32 = 1_000;

/// What is at hand for a seat before its round opens.
#[derive(Debug)]
pub(crate) enum AtHand {
    /// Nothing, so that a judge is asked. What it says is told to those who wait for the same.
    Nothing(Option<Asker>),
    /// What is known from before, or what an equal run was told a moment ago, which may be that its
    /// judge failed. Nobody is asked for it.
    Told(Box<Judged>),
}

impl AtHand {
    /// Whether the one in the seat costs nothing. A spare may still be asked in its place.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Self::Told(_))
    }

    /// Whether the seat is filled for good, so that no spare is asked.
    pub(crate) fn is_verdict(&self) -> bool {
        matches!(self, Self::Told(judged) if judged.outcome.is_ok())
    }
}

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
    /// What is at hand for each of these tasks, which are those of one round. Of equal runs of an
    /// account one asks, and the others wait for what it is told.
    pub(crate) async fn at_hand(&self, tasks: &[JudgeTask]) -> Vec<AtHand> {
        let mut digests = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            digests.push((self.digest_of(task).await, index));
        }
        // All rounds wait in the same order, so that no two wait for each other.
        digests.sort();
        let mut found: Vec<AtHand> = tasks.iter().map(|_| AtHand::Nothing(None)).collect();
        for (digest, index) in digests {
            if let Some(digest) = digest {
                found[index] = self.first_or_shared(&tasks[index], &digest).await;
            }
        }
        found
    }

    /// The digest of a question whose answer may be at hand; `None` where it never is.
    async fn digest_of(&self, task: &JudgeTask) -> Option<String> {
        if task.is_fresh || task.model.provider == BUILTIN {
            return None;
        }
        let provider = self.inner.bench.provider(&task.model, &self.inner.secrets).ok()?;
        let pictures = tokio::time::timeout_at(task.deadline, self.pictures(task)).await;
        Some(digest(task, provider.settings, &pictures.ok()?.ok()?))
    }

    async fn first_or_shared(&self, task: &JudgeTask, digest: &str) -> AtHand {
        loop {
            let mut others = match self.inner.shared_judgments.enter(&task.account, digest) {
                Turn::Wait(others) => others,
                Turn::Ask(asker) => {
                    // Looked up only now: whoever asked before may have left it a moment ago.
                    let Some(known) = self.known_verdict(task, digest).await else {
                        return AtHand::Nothing(Some(asker));
                    };
                    self.inner.metrics.judges.lookup(&task.model.provider, Lookup::Hit);
                    asker.tell(&Ok(known.clone()));
                    return AtHand::Told(Box::new(Judged::at_hand(Ok(known))));
                }
            };
            let told = tokio::time::timeout_at(task.deadline, others.wait_for(Option::is_some));
            match told.await.map(|told| told.ok().and_then(|told| told.clone())) {
                Ok(Some(outcome)) => return AtHand::Told(Box::new(Judged::at_hand(outcome))),
                // Whoever asked was told nothing by the judge, or is gone.
                Ok(None) => {}
                Err(_) => return AtHand::Nothing(None),
            }
        }
    }

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
            Ok(Err(error)) => tracing::warn!(error = %error, "could not cache a verdict"),
            Err(_) => tracing::warn!("could not cache a verdict in time"),
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
