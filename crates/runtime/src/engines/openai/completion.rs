//! A request to `/chat/completions`, its reply, and its usage.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use jurat_core::judge::{Price, Tokens};

use super::prompts::{AnswerDemand, AnswerForm, ModelMessage};
use crate::executor::ExecutorError;

#[derive(serde::Serialize)]
pub(super) struct CompletionRequest<'a> {
    model: &'a str,
    /// The temperature, and further hints of a chat.
    #[serde(flatten)]
    sampling: &'a Map<String, Value>,
    messages: &'a [ModelMessage],
    /// Absent for plain text, which not every endpoint knows as a format.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(serde::Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchemaFormat<'a>,
}

#[derive(serde::Serialize)]
struct JsonSchemaFormat<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a RawValue,
}

impl<'a> CompletionRequest<'a> {
    pub(super) fn new(
        model: &'a str,
        messages: &'a [ModelMessage],
        form: &'a AnswerForm,
        sampling: &'a Map<String, Value>,
    ) -> Self {
        let response_format = match &form.demand {
            AnswerDemand::PlainText => None,
            AnswerDemand::Json { text, strict, .. } => Some(ResponseFormat {
                r#type: "json_schema",
                json_schema: JsonSchemaFormat { name: form.name, strict: *strict, schema: text },
            }),
        };
        Self { model, sampling, messages, response_format }
    }
}

/// The content of a reply.
pub(super) struct CompletionReply {
    /// The text of the first choice, or why it cannot be used.
    pub(super) text: Result<String, ExecutorError>,
    /// As the provider counts them, if it does.
    pub(super) tokens: Option<Tokens>,
}

pub(super) fn read(body: &[u8]) -> CompletionReply {
    let unusable = |what: &str| ExecutorError::Upstream(format!("the model's reply {what}"));
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return CompletionReply { text: Err(unusable("is not JSON")), tokens: None };
    };
    let count = |name: &str| body.pointer(name).and_then(Value::as_u64);
    let counted = count("/usage/prompt_tokens").zip(count("/usage/completion_tokens"));
    let tokens = counted.map(|(input, output)| Tokens { input, output });
    let text = || {
        let choice = body.pointer("/choices/0").ok_or_else(|| unusable("has no choice"))?;
        // A truncated text may look like the answer to something else.
        if choice.get("finish_reason").and_then(Value::as_str) == Some("length") {
            return Err(unusable("was cut off at its length limit"));
        }
        if choice.pointer("/message/refusal").is_some_and(Value::is_string) {
            return Err(unusable("is a refusal"));
        }
        let text = choice.pointer("/message/content").and_then(Value::as_str);
        let text = text.filter(|it| !it.trim().is_empty());
        text.map(str::to_owned).ok_or_else(|| unusable("has no content"))
    };
    CompletionReply { text: text(), tokens }
}

/// The usage of a conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenSpending {
    pub(super) tokens: Tokens,
    /// Replies of the model.
    pub(super) calls: u32,
    /// Whether the provider did not count all tokens.
    pub(super) is_estimated: bool,
}

impl TokenSpending {
    pub(super) fn add(&mut self, counted: Option<Tokens>, estimate: impl FnOnce() -> Tokens) {
        self.is_estimated |= counted.is_none();
        self.tokens = self.tokens.plus(counted.unwrap_or_else(estimate));
        self.calls += 1;
    }

    /// `None` if the operator set no price.
    pub(super) fn cost_micros(self, price: Option<Price>) -> Option<u64> {
        Some(price?.cost_micros(self.tokens, 0))
    }
}
