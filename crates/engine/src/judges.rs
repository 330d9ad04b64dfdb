//! Judges: asks one judge one question, and returns its verdict with the cost, or why there is
//! none.

mod completion;
mod config;
mod cost_ceiling;
mod costs;
mod dialogue;
mod images;
mod permits;
mod protocol;
mod providers;
mod send;
mod shared_judgments;
mod verdict_cache;

use std::sync::Arc;

use jurat_core::{
    account::caller::CreditMode,
    id::AccountId,
    judge::{Judgment, Price, Question, UsageHistory, check_rules},
    round::{
        replica::{FailureCode, JudgeUsage, ReplicaFailure},
        select::SelectError,
    },
    verifier::{Effort, ModelRef},
};
use jurat_guard::sandbox::SandboxError;
use jurat_store::JudgeHistoryKey;
use tokio::time::Instant;

pub use self::{
    config::{JudgesConfig, ProviderKind, ProviderSettings},
    providers::JudgeUnavailable,
};
pub(crate) use self::{
    cost_ceiling::CostBasis,
    costs::{JudgeCosts, SeatBill},
    images::SharedImage,
    providers::JudgeProviders,
    shared_judgments::SharedJudgments,
    verdict_cache::VerdictLookup,
};
use self::{
    cost_ceiling::history_of,
    costs::JudgmentMeter,
    dialogue::{DialogueCosts, JudgeDialogue},
    images::JudgeImages,
    providers::ReadyProvider,
};
use crate::{Engine, node::metrics::CacheLookup};

/// The provider of the built-in judge, which needs no network, and its one model.
pub const BUILTIN_PROVIDER: &str = "builtin";
pub const RULES_MODEL: &str = "rules";
/// Stands for the default judge if none is configured: asking it gives no verdict.
pub(crate) const NO_DEFAULT_JUDGE: &str = "default";

/// One question for one judge.
#[derive(Debug, Clone)]
pub(crate) struct JudgeQuestion {
    pub(crate) question: Arc<Question>,
    pub(crate) model: ModelRef,
    pub(crate) effort: Option<Effort>,
    /// Whether the judge writes down its expectations before it sees the candidate.
    pub(crate) commit_first: bool,
    /// Fetched once, by the replica that needs it first.
    pub(crate) image: Option<Arc<SharedImage>>,
    pub(crate) account: AccountId,
    /// Whose fair share of the provider it uses: that of the account, or of all visitors together.
    pub(crate) sharer: AccountId,
    pub(crate) verifier_id: String,
    /// Whether the verdict cache is skipped.
    pub(crate) is_fresh: bool,
    pub(crate) deadline: Instant,
    /// The bill that the cost is charged to; `None` if no round is paid for.
    pub(crate) seat_bill: Option<SeatBill>,
}

impl JudgeQuestion {
    fn history_of(&self) -> JudgeHistoryKey {
        history_of(&self.account, &self.verifier_id, &self.model)
    }
}

/// The result of a question. It costs what the provider counted, even if the answer was not a
/// verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JudgeResult {
    pub(crate) outcome: Result<Judgment, ReplicaFailure>,
    pub(crate) usage: JudgeUsage,
    pub(crate) cost_micros: u64,
}

impl JudgeResult {
    fn free(outcome: Result<Judgment, ReplicaFailure>) -> Self {
        Self { outcome, usage: JudgeUsage::default(), cost_micros: 0 }
    }

    /// A verdict from the cache, or one shared with another run.
    fn cached(outcome: Result<Judgment, ReplicaFailure>) -> Self {
        let usage = JudgeUsage { is_cached: true, ..JudgeUsage::default() };
        Self { outcome, usage, cost_micros: 0 }
    }
}

impl Engine {
    /// Asks one judge. Never fails: any problem is an outcome, and not a verdict.
    pub(crate) async fn judge(&self, task: &JudgeQuestion) -> JudgeResult {
        if let Err(error) = Question::check_length(task.question.contract, &task.question.inputs) {
            return JudgeResult::free(Err(ReplicaFailure::new(
                FailureCode::Internal,
                error.to_string(),
            )));
        }
        if task.model.provider == BUILTIN_PROVIDER {
            return JudgeResult::free(self.judge_by_rules(task).await);
        }
        let provider = match self.inner.judge_providers.provider(&task.model, &self.inner.secrets) {
            Ok(provider) => provider,
            Err(unknown) => return JudgeResult::free(Err(judge_unavailable(unknown.to_string()))),
        };
        let pictures = tokio::time::timeout_at(task.deadline, self.judge_images(task)).await;
        let pictures = match pictures.unwrap_or_else(|_| Err(judge_timeout())) {
            Ok(pictures) => pictures,
            Err(failure) => return JudgeResult::free(Err(failure)),
        };
        let digest = verdict_cache::question_digest(task, provider.settings, &pictures);
        let known = self.cached_verdict(task, &digest).await;
        if self.uses_verdict_cache(task) {
            let lookup = if known.is_some() { CacheLookup::Hit } else { CacheLookup::Miss };
            self.inner.metrics.judges.lookup(provider.name, lookup);
        }
        if let Some(judgment) = known {
            return JudgeResult::cached(Ok(judgment));
        }
        let judged = self.judge_by_model(task, provider, &pictures).await;
        if let Ok(judgment) = &judged.outcome {
            self.cache_verdict(task, digest, judgment).await;
        }
        judged
    }

    /// Whether a judge can be asked, and why not.
    pub fn judge_available(&self, model: &ModelRef) -> Result<(), JudgeUnavailable> {
        if model.provider == BUILTIN_PROVIDER {
            return match model.model.as_str() {
                RULES_MODEL => Ok(()),
                NO_DEFAULT_JUDGE => Err(JudgeUnavailable::NoDefault),
                _ => Err(JudgeUnavailable::Builtin),
            };
        }
        self.inner.judge_providers.provider(model, &self.inner.secrets).map(drop)
    }

    /// A metered caller cannot use a model without a price if other models of its provider have
    /// one, because that would bypass the prices. The default judge and the panel are exempt.
    pub(crate) fn check_priced(
        &self,
        credit: CreditMode,
        model: &ModelRef,
    ) -> Result<(), SelectError> {
        let judges = &self.inner.judge_providers.config;
        let Some(settings) = judges.providers.get(&model.provider) else { return Ok(()) };
        let is_free = !settings.lacks_price(&model.model) || judges.keeps_ready(model);
        match credit {
            CreditMode::Unmetered => Ok(()),
            CreditMode::Metered
            | CreditMode::Anonymous
            | CreditMode::Prepaid
            | CreditMode::Booked
            | CreditMode::Suspended
                if is_free =>
            {
                Ok(())
            }
            CreditMode::Metered
            | CreditMode::Anonymous
            | CreditMode::Prepaid
            | CreditMode::Booked
            | CreditMode::Suspended => {
                let name = |priced: &String| format!("{}/{priced}", model.provider);
                let priced = settings.prices.keys().map(name).collect();
                Err(SelectError::UnpricedJudge { judge: model.to_string(), priced })
            }
        }
    }

    /// The judges configured on this node.
    pub fn judges_config(&self) -> &JudgesConfig {
        &self.inner.judge_providers.config
    }

    async fn judge_by_model(
        &self,
        task: &JudgeQuestion,
        provider: ReadyProvider<'_>,
        pictures: &JudgeImages,
    ) -> JudgeResult {
        let (name, price) = (provider.name, provider.settings.price(&task.model.model));
        let margin_percent = self.inner.judge_providers.config.margin_percent;
        let meter =
            JudgmentMeter::new(price, margin_percent, task.history_of(), task.seat_bill.as_ref());
        let history = if price == Price::default() {
            UsageHistory::default()
        } else {
            let of = task.history_of();
            tokio::time::timeout_at(task.deadline, self.history(&of)).await.unwrap_or_default()
        };
        let costs = DialogueCosts { meter: Arc::clone(&meter), history };
        let asking = JudgeDialogue::new(self, task, provider, pictures, costs);
        let asked = tokio::time::timeout_at(task.deadline, asking.judgment()).await;
        let outcome = asked.unwrap_or_else(|_| Err(judge_timeout()));
        // Metered outside, so that the usage up to the deadline is not lost with the future.
        let (usage, cost_micros) = (meter.usage(), meter.charge());
        self.inner.metrics.judges.cost(name, cost_micros);
        self.record_sample(&meter).await;
        JudgeResult { outcome, usage, cost_micros }
    }

    async fn judge_by_rules(&self, task: &JudgeQuestion) -> Result<Judgment, ReplicaFailure> {
        self.judge_available(&task.model)
            .map_err(|unknown| judge_unavailable(unknown.to_string()))?;
        let question = &task.question;
        let rules = check_rules(&question.criterion).and_then(|rules| {
            rules.check_fields(question.contract, &question.fields).map(|()| rules)
        });
        let rules = rules.map_err(|error| judge_unavailable(error.to_string()))?;
        let question = Arc::clone(question);
        let bounded = self.inner.bounded.of(&task.account);
        let judged = bounded.run(move || rules.judge(&question));
        match tokio::time::timeout_at(task.deadline, judged).await {
            Ok(Ok(judgment)) => Ok(judgment),
            Ok(Err(SandboxError::Busy)) => Err(ReplicaFailure::new(
                FailureCode::Busy,
                "too many checks are waiting on this node",
            )),
            Ok(Err(SandboxError::Crashed)) => Err(ReplicaFailure::new(
                FailureCode::Internal,
                "the rules failed because of a bug in this program",
            )),
            Err(_) => Err(judge_timeout()),
        }
    }
}

fn judge_unavailable(detail: impl Into<String>) -> ReplicaFailure {
    ReplicaFailure::new(FailureCode::JudgeUnavailable, detail)
}

fn judge_timeout() -> ReplicaFailure {
    ReplicaFailure::new(FailureCode::Timeout, "the judge did not answer before the deadline")
}

#[cfg(test)]
mod tests;
