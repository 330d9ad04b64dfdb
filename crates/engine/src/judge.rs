//! Judges: asks one of them one question, and hands back what it said, what that cost, or why not.

mod ask;
mod bench;
mod bound;
mod calls;
mod completion;
mod known;
mod pictures;
mod protocol;
mod send;
mod settings;
mod shared;
mod tab;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jurat_core::{
    caller::Credit,
    id::AccountId,
    judge::{History, Judgment, Price, Question, check_rules},
    replica::{Failure, FailureCode, Usage},
    select::SelectError,
    verifier::{Effort, ModelRef},
};
use jurat_guard::bounded::NotDone;
use jurat_store::HistoryOf;
use tokio::time::Instant;

use self::{ask::Asking, bench::Provider, bound::history_of, pictures::Pictures, tab::Meter};
pub(crate) use self::{
    bench::Bench,
    bound::Reckoned,
    known::AtHand,
    pictures::SharedImage,
    shared::SharedJudgments,
    tab::{Bill, Tab},
};
pub use self::{
    bench::JudgeUnknown,
    settings::{Judges, ProviderKind, ProviderSettings},
};
use crate::{Engine, metrics::Lookup};

/// The provider of the judges that need no network, and its one model.
pub const BUILTIN: &str = "builtin";
pub const RULES: &str = "rules";
/// Stands for the default judge where there is none: whoever asks it gets no verdict.
pub(crate) const NO_DEFAULT: &str = "default";

/// One question for one judge.
#[derive(Debug, Clone)]
pub(crate) struct JudgeTask {
    pub(crate) question: Arc<Question>,
    pub(crate) model: ModelRef,
    pub(crate) effort: Option<Effort>,
    /// The judge writes down what it expects before it sees the candidate.
    pub(crate) commit_first: bool,
    /// Fetched once, whichever replica needs it first.
    pub(crate) image: Option<Arc<SharedImage>>,
    pub(crate) account: AccountId,
    /// Whose turn at the provider it takes: that of the account, or of all who have no key.
    pub(crate) sharer: AccountId,
    pub(crate) verifier_id: String,
    /// A verdict that is known from before is not used.
    pub(crate) is_fresh: bool,
    pub(crate) deadline: Instant,
    /// Where what it costs is charged; nowhere where no round is paid for.
    pub(crate) bill: Option<Bill>,
}

impl JudgeTask {
    fn history_of(&self) -> HistoryOf {
        history_of(&self.account, &self.verifier_id, &self.model)
    }
}

/// What came of a task. It costs what the provider counted, also when the answer was no verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    pub(crate) outcome: Result<Judgment, Failure>,
    pub(crate) usage: Usage,
    pub(crate) cost_micros: u64,
}

impl Judged {
    fn free(outcome: Result<Judgment, Failure>) -> Self {
        Self { outcome, usage: Usage::default(), cost_micros: 0 }
    }

    /// What somebody else was told, or what was said before.
    fn at_hand(outcome: Result<Judgment, Failure>) -> Self {
        let usage = Usage { is_cached: true, ..Usage::default() };
        Self { outcome, usage, cost_micros: 0 }
    }
}

impl Engine {
    /// What one judge says. Never fails: whatever goes wrong is the outcome, and is no verdict.
    pub(crate) async fn judge(&self, task: &JudgeTask) -> Judged {
        if let Err(error) = Question::check_length(task.question.contract, &task.question.inputs) {
            return Judged::free(Err(Failure::new(FailureCode::Internal, error.to_string())));
        }
        if task.model.provider == BUILTIN {
            return Judged::free(self.judge_by_rules(task).await);
        }
        let provider = match self.inner.bench.provider(&task.model, &self.inner.secrets) {
            Ok(provider) => provider,
            Err(unknown) => return Judged::free(Err(unavailable(unknown.to_string()))),
        };
        let pictures = tokio::time::timeout_at(task.deadline, self.pictures(task)).await;
        let pictures = match pictures.unwrap_or_else(|_| Err(out_of_time())) {
            Ok(pictures) => pictures,
            Err(failure) => return Judged::free(Err(failure)),
        };
        let digest = known::digest(task, provider.settings, &pictures);
        let known = self.known_verdict(task, &digest).await;
        if self.looks_for_verdicts(task) {
            let lookup = if known.is_some() { Lookup::Hit } else { Lookup::Miss };
            self.inner.metrics.judges.lookup(provider.name, lookup);
        }
        if let Some(judgment) = known {
            return Judged::at_hand(Ok(judgment));
        }
        let judged = self.judge_by_model(task, provider, &pictures).await;
        if let Ok(judgment) = &judged.outcome {
            self.remember_verdict(task, digest, judgment).await;
        }
        judged
    }

    /// Whether a judge can be asked, and why not.
    pub fn judge_known(&self, model: &ModelRef) -> Result<(), JudgeUnknown> {
        if model.provider == BUILTIN {
            return match model.model.as_str() {
                RULES => Ok(()),
                NO_DEFAULT => Err(JudgeUnknown::NoDefault),
                _ => Err(JudgeUnknown::Builtin),
            };
        }
        self.inner.bench.provider(model, &self.inner.secrets).map(drop)
    }

    /// Who pays is not judged by a model that nobody put a price on, where others of its provider
    /// have one: that would be a way past the prices. What the operator keeps ready is meant so.
    pub(crate) fn check_priced(&self, credit: Credit, model: &ModelRef) -> Result<(), SelectError> {
        let judges = &self.inner.bench.judges;
        let Some(settings) = judges.providers.get(&model.provider) else { return Ok(()) };
        let is_free = !settings.lacks_price(&model.model) || judges.keeps_ready(model);
        match credit {
            Credit::Unmetered => Ok(()),
            Credit::Metered | Credit::Anonymous | Credit::Suspended if is_free => Ok(()),
            Credit::Metered | Credit::Anonymous | Credit::Suspended => {
                let name = |priced: &String| format!("{}/{priced}", model.provider);
                let priced = settings.prices.keys().map(name).collect();
                Err(SelectError::UnpricedJudge { judge: model.to_string(), priced })
            }
        }
    }

    /// The judges that this node was set up with.
    pub fn judges(&self) -> &Judges {
        &self.inner.bench.judges
    }

    async fn judge_by_model(
        &self,
        task: &JudgeTask,
        provider: Provider<'_>,
        pictures: &Pictures,
    ) -> Judged {
        let (name, price) = (provider.name, provider.settings.price(&task.model.model));
        let margin_percent = self.inner.bench.judges.margin_percent;
        let meter = Meter::new(price, margin_percent, task.history_of(), task.bill.as_ref());
        let history = if price == Price::default() {
            History::default()
        } else {
            let of = task.history_of();
            tokio::time::timeout_at(task.deadline, self.history(&of)).await.unwrap_or_default()
        };
        let asking = Asking::new(self, task, provider, pictures, (Arc::clone(&meter), history));
        let asked = tokio::time::timeout_at(task.deadline, asking.judgment()).await;
        let outcome = asked.unwrap_or_else(|_| Err(out_of_time()));
        // Metered outside, so that what was sent until the deadline is not lost with the future.
        let (usage, cost_micros) = (meter.usage(), meter.charge());
        self.inner.metrics.judges.cost(name, cost_micros);
        self.learn(&meter).await;
        Judged { outcome, usage, cost_micros }
    }

    async fn judge_by_rules(&self, task: &JudgeTask) -> Result<Judgment, Failure> {
        self.judge_known(&task.model).map_err(|unknown| unavailable(unknown.to_string()))?;
        let question = &task.question;
        let rules = check_rules(&question.criterion).and_then(|rules| {
            rules.check_fields(question.contract, &question.fields).map(|()| rules)
        });
        let rules = rules.map_err(|error| unavailable(error.to_string()))?;
        let question = Arc::clone(question);
        let bounded = self.inner.bounded.of(&task.account);
        let judged = bounded.run(move || rules.judge(&question));
        match tokio::time::timeout_at(task.deadline, judged).await {
            Ok(Ok(judgment)) => Ok(judgment),
            Ok(Err(NotDone::Busy)) => {
                Err(Failure::new(FailureCode::Busy, "too many checks are waiting on this node"))
            }
            Ok(Err(NotDone::Crashed)) => Err(Failure::new(
                FailureCode::Internal,
                "the rules failed because of a bug in this program",
            )),
            Err(_) => Err(out_of_time()),
        }
    }
}

fn unavailable(detail: impl Into<String>) -> Failure {
    Failure::new(FailureCode::JudgeUnavailable, detail)
}

fn out_of_time() -> Failure {
    Failure::new(FailureCode::Timeout, "the judge did not answer before the deadline")
}
