//! One judgment: what the judge expects, then what it finds, each asked once more if it is misread.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use jurat_core::{
    judge::{
        self, Commitment, History, Judgment, Materials, Misread, Prompt, commit_prompt, prompt,
        read_commitment,
    },
    replica::{Failure, FailureCode},
};

use super::{JudgeTask, bench::Provider, pictures::Pictures, tab::Meter};
use crate::Engine;

/// A judgment under way. It is metered outside, so that what it used is known even if it is broken
/// off.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) engine: &'a Engine,
    pub(super) task: &'a JudgeTask,
    pub(super) provider: Provider<'a>,
    pictures: &'a Pictures,
    mark: String,
    /// How often an answer that was misread may still be asked for again.
    repairs: AtomicU32,
    pub(super) meter: Arc<Meter>,
    /// What earlier judgments used.
    pub(super) history: History,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        task: &'a JudgeTask,
        provider: Provider<'a>,
        pictures: &'a Pictures,
        (meter, history): (Arc<Meter>, History),
    ) -> Self {
        let mark = judge::mark(engine.inner.clock.bits(), &task.question);
        Self { engine, task, provider, pictures, mark, repairs: AtomicU32::new(1), meter, history }
    }

    pub(super) async fn judgment(&self) -> Result<Judgment, Failure> {
        let question = &self.task.question;
        let commitment = if self.task.commit_first {
            let put = |repair: Option<&Misread>| commit_prompt(question, repair);
            Some(self.answer(put, read_commitment).await?)
        } else {
            None
        };
        let put = |repair: Option<&Misread>| {
            prompt(&Materials {
                question,
                mark: &self.mark,
                image: self.pictures.image.as_ref(),
                example_images: &self.pictures.examples,
                commitment: commitment.as_ref(),
                repair,
            })
        };
        let read = |text: &str| judge::read(text, question, &self.mark);
        let mut judgment = self.answer(put, read).await?;
        judgment.commitment = commitment.as_ref().map(Commitment::digest);
        judgment.notes.clone_from(&self.pictures.notes);
        Ok(judgment)
    }

    /// An answer that can be read; the judge gets one more try for the whole judgment.
    async fn answer<T>(
        &self,
        put: impl Fn(Option<&Misread>) -> Prompt,
        read: impl Fn(&str) -> Result<T, Misread>,
    ) -> Result<T, Failure> {
        let mut repair = None;
        loop {
            let answered = self.complete(&put(repair.as_ref())).await?;
            let misread = match answered.and_then(|text| read(&text)) {
                Ok(value) => return Ok(value),
                Err(misread) => misread,
            };
            tracing::debug!(judge = %self.task.model, problem = %misread, "could not read a judge's answer");
            if !misread.is_repairable() || self.repairs.swap(0, Ordering::Relaxed) == 0 {
                let detail =
                    format!("the answer of `{}` cannot be used: {misread}", self.task.model);
                return Err(Failure::new(FailureCode::JudgeUnreadable, detail));
            }
            repair = Some(misread);
        }
    }
}
