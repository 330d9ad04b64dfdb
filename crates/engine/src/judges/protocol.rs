//! Writes requests in either protocol, without the parts that a provider refuses.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::{
    judge::{JudgeImage, MessageRole, Prompt, PromptMessage},
    verifier::Effort,
};
use serde_json::{Map, Value, json};

use super::config::ProviderKind;

/// A part of a request that not every model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OptionalPart {
    Temperature,
    Effort,
    Thinking,
    /// The schema of the answer; the system text describes its form as well.
    Format,
    /// The length limit under its older name; without it, the newer name is sent.
    OldLimit,
}

/// The parts to leave out.
pub(super) type OmittedParts = BTreeSet<OptionalPart>;

/// Everything that a request is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProviderRequest<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    pub(super) effort: Option<Effort>,
    pub(super) max_output_tokens: u32,
    pub(super) omitted: &'a OmittedParts,
}

impl ProviderRequest<'_> {
    fn has(&self, part: OptionalPart) -> bool {
        !self.omitted.contains(&part)
    }

    pub(super) fn body(&self, kind: ProviderKind) -> Value {
        match kind {
            ProviderKind::OpenAi => self.chat_body(),
            ProviderKind::Anthropic => self.message_body(),
        }
    }

    fn effort(&self) -> Option<&'static str> {
        self.effort.filter(|_| self.has(OptionalPart::Effort)).map(Effort::as_str)
    }

    fn chat_body(&self) -> Value {
        let system = json!({ "role": "system", "content": self.prompt.system });
        let messages = self.prompt.messages.iter().map(|message| {
            let content = match &message.image {
                None => json!(message.text),
                Some(image) => json!([
                    { "type": "image_url", "image_url": { "url": data_url(image) } },
                    { "type": "text", "text": message.text },
                ]),
            };
            json!({ "role": role(message), "content": content })
        });
        let messages: Vec<Value> = std::iter::once(system).chain(messages).collect();
        let mut body = object(&[("model", json!(self.model)), ("messages", json!(messages))]);
        let limit =
            if self.has(OptionalPart::OldLimit) { "max_tokens" } else { "max_completion_tokens" };
        body.insert(limit.to_owned(), json!(self.max_output_tokens));
        match self.effort() {
            Some(effort) => {
                body.insert("reasoning_effort".to_owned(), json!(effort));
            }
            // Reasoning models accept no temperature.
            None if self.has(OptionalPart::Temperature) => {
                body.insert("temperature".to_owned(), json!(0));
            }
            None => {}
        }
        if self.has(OptionalPart::Format) {
            let schema = json!({ "name": "answer", "strict": true, "schema": self.prompt.schema });
            let format = json!({ "type": "json_schema", "json_schema": schema });
            body.insert("response_format".to_owned(), format);
        }
        Value::Object(body)
    }

    fn message_body(&self) -> Value {
        let messages = self.prompt.messages.iter().map(|message| {
            let text = json!({ "type": "text", "text": message.text });
            let content = match &message.image {
                None => json!([text]),
                Some(image) => json!([{ "type": "image", "source": source(image) }, text]),
            };
            json!({ "role": role(message), "content": content })
        });
        let mut body = object(&[
            ("model", json!(self.model)),
            ("system", json!(self.prompt.system)),
            ("messages", json!(messages.collect::<Vec<_>>())),
            ("max_tokens", json!(self.max_output_tokens)),
        ]);
        let mut output = Map::new();
        if self.has(OptionalPart::Format) {
            let format = json!({ "type": "json_schema", "schema": self.prompt.schema });
            output.insert("format".to_owned(), format);
        }
        match self.effort() {
            Some(effort) => {
                output.insert("effort".to_owned(), json!(effort));
                if self.has(OptionalPart::Thinking) {
                    body.insert("thinking".to_owned(), json!({ "type": "adaptive" }));
                }
            }
            None if self.has(OptionalPart::Temperature) => {
                body.insert("temperature".to_owned(), json!(0));
            }
            None => {}
        }
        if !output.is_empty() {
            body.insert("output_config".to_owned(), Value::Object(output));
        }
        Value::Object(body)
    }
}

/// A member that can be refused, the words that a message uses for it, and the parts to leave out.
const REFUSABLE: &[(&str, &[&str], &[OptionalPart])] = &[
    ("/max_tokens", &["max_completion_tokens"], &[OptionalPart::OldLimit]),
    ("/temperature", &["temperature"], &[OptionalPart::Temperature]),
    ("/thinking", &["thinking"], &[OptionalPart::Thinking]),
    ("/reasoning_effort", &["reasoning_effort"], &[OptionalPart::Effort]),
    ("/output_config/effort", &["effort"], &[OptionalPart::Effort]),
    ("/response_format", &["response_format", "json_schema"], &[OptionalPart::Format]),
    (
        "/output_config",
        &["output_config", "output_format"],
        &[OptionalPart::Format, OptionalPart::Effort],
    ),
];

/// The parts to leave out after a refusal with status 400; `None` if it is about something else.
pub(super) fn refused_parts(body: &Value, refusal: &[u8]) -> Option<&'static [OptionalPart]> {
    let refusal: Value = serde_json::from_slice(refusal).ok()?;
    let said = |name: &str| refusal.pointer(name).and_then(Value::as_str).unwrap_or_default();
    let (parameter, message) = (said("/error/param"), said("/error/message").to_lowercase());
    let is_about = |member: &str, words: &[&str]| {
        member.strip_prefix('/') == Some(parameter)
            || words.iter().any(|word| message.contains(word))
    };
    REFUSABLE
        .iter()
        .find(|(member, words, _)| body.pointer(member).is_some() && is_about(member, words))
        .map(|(_, _, parts)| *parts)
}

fn role(message: &PromptMessage) -> &'static str {
    match message.role {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
    }
}

fn data_url(image: &JudgeImage) -> String {
    format!("data:{};base64,{}", image.mime, STANDARD.encode(&image.bytes))
}

fn source(image: &JudgeImage) -> Value {
    json!({ "type": "base64", "media_type": image.mime, "data": STANDARD.encode(&image.bytes) })
}

fn object(members: &[(&str, Value)]) -> Map<String, Value> {
    members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
