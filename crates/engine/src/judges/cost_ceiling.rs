//! Estimates the cost of a judgment in advance: maximum, likely and minimum.

use jurat_core::{
    account::ledger::CostEstimate,
    id::AccountId,
    judge::{
        Commitment, Price, Prompt, PromptMaterials, Question, Tokens, UsageHistory, commit_prompt,
        prompt,
    },
    verifier::{Effort, ModelRef},
};
use jurat_store::{Behalf, JudgeHistoryKey};

use super::{
    BUILTIN_PROVIDER,
    config::{ProviderKind, ProviderSettings},
    images::MOST_EXAMPLE_IMAGES,
    protocol::{OmittedParts, ProviderRequest},
};
use crate::Engine;

/// What a provider may add to a prompt, such as text about the schema, plus the sentence that asks
/// for a corrected answer.
const ADDED_TOKENS: u64 = 2_048;

/// The maximum number of tokens of an image. The largest documented numbers are 4,784 for one
/// protocol, and 48,169 for a small model of the other.
const fn image_tokens(kind: ProviderKind) -> u64 {
    match kind {
        ProviderKind::Anthropic => 5_000,
        ProviderKind::OpenAi => 50_000,
    }
}

/// A judgment to estimate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostBasis<'a> {
    pub(crate) question: &'a Question,
    pub(crate) model: &'a ModelRef,
    pub(crate) has_image: bool,
    pub(crate) commit_first: bool,
}

/// The token counts of a prompt.
struct PromptTokens {
    price: Price,
    /// The maximum tokens of the request that asks for the judgment.
    one: Tokens,
    /// The maximum tokens of all requests.
    all: Tokens,
    /// The tokens of its text at the usual four bytes each.
    usual_input: u64,
}

impl Engine {
    /// The maximum cost of a judgment: the commitment, the answer, and one correction.
    pub(crate) fn cost_ceiling_micros(&self, judgment: &CostBasis<'_>) -> i64 {
        let Some(lengths) = self.prompt_tokens(judgment) else { return 0 };
        self.micros(lengths.price, lengths.all)
    }

    /// The estimated cost of a judgment, based on earlier ones of the verifier for the account.
    /// Without a history, the likely cost is the maximum.
    pub(crate) async fn judge_estimate(
        &self,
        judgment: &CostBasis<'_>,
        account: &AccountId,
        verifier_id: &str,
    ) -> CostEstimate {
        let Some(lengths) = self.prompt_tokens(judgment) else { return CostEstimate::default() };
        let most_micros = self.micros(lengths.price, lengths.all);
        if most_micros == 0 {
            return CostEstimate::default();
        }
        let history = self.history(&history_of(account, verifier_id, judgment.model)).await;
        let margin = self.inner.judge_providers.config.margin_percent;
        let likely = history.likely_micros(lengths.one.input, lengths.price, margin);
        let likely = likely.map_or(most_micros, |micros| i64::try_from(micros).unwrap_or(i64::MAX));
        // The hold follows the history, even if that is less than usual.
        let prompt = history.prompt_tokens(lengths.one.input).unwrap_or(lengths.usual_input);
        let least = self.micros(lengths.price, Tokens { input: prompt, output: 0 });
        let micros = likely.clamp(1, most_micros);
        CostEstimate { micros, most_micros, least_micros: least.clamp(1, micros) }
    }

    /// The usage of earlier judgments of a verifier. If the store does not answer, there is no
    /// history.
    pub(super) async fn history(&self, of: &JudgeHistoryKey) -> UsageHistory {
        let behalf = Behalf::Account(of.account.clone());
        match self.inner.store.judge_calls().history(&behalf, of).await {
            Ok(history) => history,
            Err(error) => {
                tracing::warn!(error = %error, "could not read the usage history of judgments");
                UsageHistory::default()
            }
        }
    }

    fn prompt_tokens(&self, judgment: &CostBasis<'_>) -> Option<PromptTokens> {
        let CostBasis { question, model, has_image, commit_first } = *judgment;
        let settings = self.inner.judge_providers.config.providers.get(&model.provider)?;
        if model.provider == BUILTIN_PROVIDER {
            return None;
        }
        let longest = commit_first.then(Commitment::longest);
        let judged = prompt(&PromptMaterials {
            question,
            mark: "0123456789abcdef",
            image: None,
            example_images: &[],
            commitment: longest.as_ref(),
            repair: None,
        });
        let images = if has_image { 1 + example_images(question) } else { 0 };
        let one = most_tokens(settings, &judged, images);
        // The one correction costs more for the judgment than for the commitment.
        let mut all = one.plus(one);
        if commit_first {
            all = all.plus(most_tokens(settings, &commit_prompt(question, None), 0));
        }
        let usual_input = usual_tokens(&judged).min(one.input);
        Some(PromptTokens { price: settings.price(&model.model), one, all, usual_input })
    }

    fn micros(&self, price: Price, tokens: Tokens) -> i64 {
        let cost = price.cost_micros(tokens, self.inner.judge_providers.config.margin_percent);
        i64::try_from(cost).unwrap_or(i64::MAX)
    }
}

/// The judgments that the history looks at.
pub(super) fn history_of(
    account: &AccountId,
    verifier_id: &str,
    model: &ModelRef,
) -> JudgeHistoryKey {
    JudgeHistoryKey {
        account: account.clone(),
        verifier_id: verifier_id.to_owned(),
        model: model.to_string(),
    }
}

/// The estimated usage of a call without a reply: the prompt as it was sent and the median answer.
/// The prompt has the usual tokens of its text, or more if earlier prompts had more: cheaper
/// prompts before this one do not make it cheaper. Without a history, the longest answer is
/// assumed.
fn expected_tokens(history: &UsageHistory, most: Tokens, usual_input: u64) -> Tokens {
    let input = history.prompt_tokens(most.input).unwrap_or(0).max(usual_input);
    let output = history.median_answer().unwrap_or(most.output);
    Tokens { input: input.min(most.input), output: output.min(most.output) }
}

/// The usage of a request with this prompt if no reply comes, and its maximum.
pub(super) fn call_tokens(
    settings: &ProviderSettings,
    prompt: &Prompt,
    history: &UsageHistory,
) -> (Tokens, Tokens) {
    let most = most_prompt_tokens(settings, prompt);
    (expected_tokens(history, most, usual_tokens(prompt)), most)
}

/// The tokens of the texts of a prompt: four bytes are about one.
pub(super) fn usual_tokens(prompt: &Prompt) -> u64 {
    let texts: usize = prompt.messages.iter().map(|message| message.text.len()).sum();
    u64::try_from((prompt.system.len() + texts).div_ceil(4)).unwrap_or(u64::MAX)
}

fn example_images(question: &Question) -> u64 {
    let shown = question.examples.iter().take(MOST_EXAMPLE_IMAGES);
    u64::try_from(shown.filter(|example| example.media_url.is_some()).count()).unwrap_or(u64::MAX)
}

/// The maximum tokens of a request with this prompt, whatever its provider reports.
fn most_prompt_tokens(settings: &ProviderSettings, prompt: &Prompt) -> Tokens {
    let mut texts = prompt.clone();
    let images = texts.messages.iter_mut().filter_map(|message| message.image.take()).count();
    most_tokens(settings, &texts, u64::try_from(images).unwrap_or(u64::MAX))
}

/// The maximum tokens of one request: no token is shorter than a byte.
fn most_tokens(settings: &ProviderSettings, prompt: &Prompt, images: u64) -> Tokens {
    let request = ProviderRequest {
        model: "",
        prompt,
        effort: Some(Effort::Medium),
        max_output_tokens: settings.max_output_tokens,
        omitted: &OmittedParts::new(),
    };
    let bytes = request.body(settings.kind).to_string().len();
    let input = u64::try_from(bytes).unwrap_or(u64::MAX);
    Tokens {
        input: input
            .saturating_add(ADDED_TOKENS)
            .saturating_add(images.saturating_mul(image_tokens(settings.kind))),
        output: u64::from(settings.max_output_tokens),
    }
}

#[cfg(test)]
mod tests {
    use jurat_core::judge::UsageSample;

    use super::*;

    #[test]
    fn a_call_without_a_reply_uses_at_least_the_usual_tokens() {
        let most = Tokens { input: 1_000, output: 2_048 };
        let after = |input| {
            let tokens = Tokens { input, output: 7 };
            expected_tokens(
                &UsageHistory::new([UsageSample { size: 1_000, tokens, requests: 1 }]),
                most,
                250,
            )
        };
        assert_eq!(
            expected_tokens(&UsageHistory::default(), most, 250),
            Tokens { input: 250, output: 2_048 }
        );
        // Earlier cheap prompts do not make this one cheaper.
        assert_eq!(after(10), Tokens { input: 250, output: 7 });
        assert_eq!(after(600), Tokens { input: 600, output: 7 });
        assert_eq!(after(5_000), Tokens { input: 1_000, output: 7 });
    }
}
