//! One judgment: the judge's expectations, then its findings, each asked for again if unreadable.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use jurat_core::{
    judge::{
        self, Commitment, Judgment, JudgmentError, Prompt, PromptMaterials, UsageHistory,
        commit_prompt, prompt, read_commitment,
    },
    round::replica::{FailureCode, ReplicaFailure},
};

use super::{JudgeQuestion, costs::JudgmentMeter, images::JudgeImages, providers::ReadyProvider};
use crate::Engine;

/// A judgment in progress. It is metered outside, so that its usage is known even if it is
/// cancelled.
#[derive(Debug)]
pub(super) struct JudgeDialogue<'a> {
    pub(super) engine: &'a Engine,
    pub(super) judge_question: &'a JudgeQuestion,
    pub(super) provider: ReadyProvider<'a>,
    images: &'a JudgeImages,
    mark: String,
    /// How many corrections are left.
    repairs: AtomicU32,
    pub(super) meter: Arc<JudgmentMeter>,
    /// The usage of earlier judgments.
    pub(super) history: UsageHistory,
}

/// The meter of a dialogue, and the usage of earlier ones.
#[derive(Debug)]
pub(super) struct DialogueCosts {
    pub(super) meter: Arc<JudgmentMeter>,
    pub(super) history: UsageHistory,
}

impl<'a> JudgeDialogue<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        judge_question: &'a JudgeQuestion,
        provider: ReadyProvider<'a>,
        images: &'a JudgeImages,
        costs: DialogueCosts,
    ) -> Self {
        let mark = judge::mark(engine.inner.clock.bits(), &judge_question.question);
        Self {
            engine,
            judge_question,
            provider,
            images,
            mark,
            repairs: AtomicU32::new(1),
            meter: costs.meter,
            history: costs.history,
        }
    }

    pub(super) async fn judgment(&self) -> Result<Judgment, ReplicaFailure> {
        let question = &self.judge_question.question;
        let commitment = if self.judge_question.commit_first {
            let put = |repair: Option<&JudgmentError>| commit_prompt(question, repair);
            Some(self.ask_readable(put, read_commitment).await?)
        } else {
            None
        };
        let put = |repair: Option<&JudgmentError>| {
            prompt(&PromptMaterials {
                question,
                mark: &self.mark,
                image: self.images.image.as_ref(),
                example_images: &self.images.examples,
                commitment: commitment.as_ref(),
                repair,
            })
        };
        let read = |text: &str| judge::read(text, question, &self.mark);
        let mut judgment = self.ask_readable(put, read).await?;
        judgment.commitment = commitment.as_ref().map(Commitment::digest);
        judgment.notes.clone_from(&self.images.notes);
        Ok(judgment)
    }

    /// A readable answer; the judge gets one correction for the whole judgment.
    async fn ask_readable<T>(
        &self,
        put: impl Fn(Option<&JudgmentError>) -> Prompt,
        read: impl Fn(&str) -> Result<T, JudgmentError>,
    ) -> Result<T, ReplicaFailure> {
        let mut repair = None;
        loop {
            let answered = self.complete(&put(repair.as_ref())).await?;
            let misread = match answered.and_then(|text| read(&text)) {
                Ok(value) => return Ok(value),
                Err(misread) => misread,
            };
            tracing::debug!(judge = %self.judge_question.model, problem = %misread, "could not read a judge's answer");
            if !misread.is_repairable() || self.repairs.swap(0, Ordering::Relaxed) == 0 {
                let detail = format!(
                    "the answer of `{}` cannot be used: {misread}",
                    self.judge_question.model
                );
                return Err(ReplicaFailure::new(FailureCode::JudgeUnreadable, detail));
            }
            repair = Some(misread);
        }
    }
}
