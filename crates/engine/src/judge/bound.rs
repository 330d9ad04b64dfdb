//! The most that one judgment can cost, which is set aside before anybody is asked.

use jurat_core::{
    judge::{Commitment, Materials, Prompt, Question, Tokens, commit_prompt, prompt},
    verifier::{Effort, ModelRef},
};

use super::{
    BUILTIN,
    pictures::MOST_EXAMPLE_IMAGES,
    protocol::{Request, Without},
    settings::{ProviderKind, ProviderSettings},
};
use crate::Engine;

/// What a model's side may add to a prompt, such as words about the schema, and the sentence that
/// asks for an answer once more.
const ADDED_TOKENS: u64 = 2_048;

/// The most tokens that an image counts as. The largest that providers document is 4,784 for the
/// one protocol, and 48,169 for a small model of the other.
const fn image_tokens(kind: ProviderKind) -> u64 {
    match kind {
        ProviderKind::Anthropic => 5_000,
        ProviderKind::OpenAi => 50_000,
    }
}

impl Engine {
    /// The most that a judgment can cost: the judge's first words, its answer, and one more try.
    pub(crate) fn judge_bound_micros(
        &self,
        question: &Question,
        model: &ModelRef,
        has_image: bool,
        commit_first: bool,
    ) -> i64 {
        let judges = &self.inner.bench.judges;
        let Some(settings) = judges.providers.get(&model.provider) else { return 0 };
        if model.provider == BUILTIN {
            return 0;
        }
        let longest = commit_first.then(Commitment::longest);
        let judged = prompt(&Materials {
            question,
            mark: "0123456789abcdef",
            image: None,
            example_images: &[],
            commitment: longest.as_ref(),
            repair: None,
        });
        let images = if has_image { 1 + example_images(question) } else { 0 };
        let one = most(settings, &judged, images);
        // The one repair is dearer for the judgment than for what comes before it.
        let mut tokens = one.plus(one);
        if commit_first {
            tokens = tokens.plus(most(settings, &commit_prompt(question, None), 0));
        }
        let cost = settings.price(&model.model).cost_micros(tokens, judges.margin_percent);
        i64::try_from(cost).unwrap_or(i64::MAX)
    }
}

fn example_images(question: &Question) -> u64 {
    let shown = question.examples.iter().take(MOST_EXAMPLE_IMAGES);
    u64::try_from(shown.filter(|example| example.media_url.is_some()).count()).unwrap_or(u64::MAX)
}

/// The most tokens that a request with this prompt can have, whatever its provider says.
pub(super) fn most_of(settings: &ProviderSettings, prompt: &Prompt) -> Tokens {
    let mut texts = prompt.clone();
    let images = texts.turns.iter_mut().filter_map(|turn| turn.image.take()).count();
    most(settings, &texts, u64::try_from(images).unwrap_or(u64::MAX))
}

/// The most tokens of one request: no token is shorter than a byte.
fn most(settings: &ProviderSettings, prompt: &Prompt, images: u64) -> Tokens {
    let request = Request {
        model: "",
        prompt,
        effort: Some(Effort::Medium),
        max_output_tokens: settings.max_output_tokens,
        without: &Without::new(),
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
