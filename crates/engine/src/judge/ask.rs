//! One judgment: what the judge expects, then what it finds, each asked once more if it is misread.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use jurat_core::{
    judge::{
        self, Commitment, Judgment, Materials, Misread, Prompt, Tokens, commit_prompt, prompt,
        read_commitment,
    },
    replica::{Failure, FailureCode, Usage},
};

use super::{JudgeTask, bench::Provider, pictures::Pictures};
use crate::Engine;

/// A judgment under way. It counts what it uses, so that this is known even if it is broken off.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) engine: &'a Engine,
    pub(super) task: &'a JudgeTask,
    pub(super) provider: Provider<'a>,
    pictures: &'a Pictures,
    mark: String,
    /// How often an answer that was misread may still be asked for again.
    repairs: AtomicU32,
    pub(super) calls: AtomicU32,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        task: &'a JudgeTask,
        provider: Provider<'a>,
        pictures: &'a Pictures,
    ) -> Self {
        let mark = judge::mark(engine.inner.clock.bits(), &task.question);
        Self {
            engine,
            task,
            provider,
            pictures,
            mark,
            repairs: AtomicU32::new(1),
            calls: AtomicU32::new(0),
            input_tokens: AtomicU64::new(0),
            output_tokens: AtomicU64::new(0),
        }
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

    pub(super) fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens.load(Ordering::Relaxed),
            output_tokens: self.output_tokens.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            is_cached: false,
        }
    }

    pub(super) fn count(&self, tokens: Tokens) {
        self.engine.inner.metrics.judges.tokens(self.provider.name, tokens);
        self.input_tokens.fetch_add(tokens.input, Ordering::Relaxed);
        self.output_tokens.fetch_add(tokens.output, Ordering::Relaxed);
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
            tracing::debug!(judge = %self.task.model, problem = %misread, "an answer was misread");
            if !misread.is_repairable() || self.repairs.swap(0, Ordering::Relaxed) == 0 {
                let detail =
                    format!("the answer of `{}` cannot be used: {misread}", self.task.model);
                return Err(Failure::new(FailureCode::JudgeUnreadable, detail));
            }
            repair = Some(misread);
        }
    }
}
