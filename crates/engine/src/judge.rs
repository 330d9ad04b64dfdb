//! Judges.

use std::sync::Arc;

use jurat_core::{
    id::AccountId,
    judge::{Judgment, Question, check_rules},
    replica::{Failure, FailureCode, Usage},
    verifier::{Effort, ModelRef},
};

use crate::Engine;

#[derive(Debug)]
pub(crate) struct SharedImage(#[expect(dead_code, reason = "stub")] String);

impl SharedImage {
    pub(crate) fn new(url: String) -> Self {
        Self(url)
    }
}

#[derive(Debug)]
#[expect(dead_code, reason = "stub")]
pub(crate) struct JudgeTask {
    pub(crate) question: Arc<Question>,
    pub(crate) model: ModelRef,
    pub(crate) effort: Option<Effort>,
    pub(crate) commit_first: bool,
    pub(crate) image: Option<Arc<SharedImage>>,
    pub(crate) account: AccountId,
    pub(crate) verifier_id: String,
    pub(crate) is_fresh: bool,
    pub(crate) deadline: tokio::time::Instant,
}

#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) outcome: Result<Judgment, Failure>,
    pub(crate) usage: Usage,
    pub(crate) cost_micros: u64,
}

#[expect(clippy::unused_self, clippy::unused_async, reason = "stub")]
impl Engine {
    pub(crate) async fn judge(&self, task: &JudgeTask) -> Judged {
        let outcome = if task.model.to_string() == "builtin/rules" {
            check_rules(&task.question.criterion)
                .map(|rules| rules.judge(&task.question))
                .map_err(|error| Failure::new(FailureCode::JudgeUnreadable, error.to_string()))
        } else {
            let detail = format!("the provider `{}` is not configured", task.model.provider);
            Err(Failure::new(FailureCode::JudgeUnavailable, detail))
        };
        Judged { outcome, usage: Usage::default(), cost_micros: 0 }
    }

    pub(crate) fn judge_bound_micros(
        &self,
        _question: &Question,
        _model: &ModelRef,
        _has_image: bool,
        _commit_first: bool,
    ) -> i64 {
        0
    }

    pub(crate) fn judge_panel(&self) -> &[ModelRef] {
        &[]
    }

    pub(crate) fn judge_is_configured(&self, model: &ModelRef) -> bool {
        model.provider == "builtin"
    }

    pub(crate) fn judge_host(&self, model: &ModelRef) -> String {
        model.provider.clone()
    }
}
