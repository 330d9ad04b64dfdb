//! The request in either protocol, and what to leave out of it when a model's side refuses that.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::{
    judge::{Image, Prompt, Role, Turn},
    verifier::Effort,
};
use serde_json::{Map, Value, json};

use super::settings::ProviderKind;

/// What not to send, because not every model takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Without {
    temperature: bool,
    effort: bool,
    /// The schema of the answer; the system text describes its form as well.
    format: bool,
    thinking: bool,
    /// `max_tokens` by its older name; newer models of one provider know only the newer one.
    old_limit: bool,
}

/// All that a request is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    pub(super) effort: Option<Effort>,
    pub(super) max_output_tokens: u32,
    pub(super) without: Without,
}

impl Request<'_> {
    pub(super) fn body(&self, kind: ProviderKind) -> Value {
        match kind {
            ProviderKind::OpenAi => self.chat(),
            ProviderKind::Anthropic => self.message(),
        }
    }

    fn effort(&self) -> Option<&'static str> {
        self.effort.filter(|_| !self.without.effort).map(Effort::as_str)
    }

    fn chat(&self) -> Value {
        let system = json!({ "role": "system", "content": self.prompt.system });
        let turns = self.prompt.turns.iter().map(|turn| {
            let content = match &turn.image {
                None => json!(turn.text),
                Some(image) => json!([
                    { "type": "image_url", "image_url": { "url": data_url(image) } },
                    { "type": "text", "text": turn.text },
                ]),
            };
            json!({ "role": role(turn), "content": content })
        });
        let messages: Vec<Value> = std::iter::once(system).chain(turns).collect();
        let mut body = object(&[("model", json!(self.model)), ("messages", json!(messages))]);
        let limit = if self.without.old_limit { "max_completion_tokens" } else { "max_tokens" };
        body.insert(limit.to_owned(), json!(self.max_output_tokens));
        match self.effort() {
            Some(effort) => {
                body.insert("reasoning_effort".to_owned(), json!(effort));
            }
            // Models that reason take no temperature.
            None if !self.without.temperature => {
                body.insert("temperature".to_owned(), json!(0));
            }
            None => {}
        }
        if !self.without.format {
            let schema = json!({ "name": "answer", "strict": true, "schema": self.prompt.schema });
            let format = json!({ "type": "json_schema", "json_schema": schema });
            body.insert("response_format".to_owned(), format);
        }
        Value::Object(body)
    }

    fn message(&self) -> Value {
        let turns = self.prompt.turns.iter().map(|turn| {
            let text = json!({ "type": "text", "text": turn.text });
            let content = match &turn.image {
                None => json!([text]),
                Some(image) => json!([{ "type": "image", "source": source(image) }, text]),
            };
            json!({ "role": role(turn), "content": content })
        });
        let mut body = object(&[
            ("model", json!(self.model)),
            ("system", json!(self.prompt.system)),
            ("messages", json!(turns.collect::<Vec<_>>())),
            ("max_tokens", json!(self.max_output_tokens)),
        ]);
        let mut output = Map::new();
        if !self.without.format {
            let format = json!({ "type": "json_schema", "schema": self.prompt.schema });
            output.insert("format".to_owned(), format);
        }
        match self.effort() {
            Some(effort) => {
                output.insert("effort".to_owned(), json!(effort));
                if !self.without.thinking {
                    body.insert("thinking".to_owned(), json!({ "type": "adaptive" }));
                }
            }
            None if !self.without.temperature => {
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

/// What to leave out after a refusal with status 400; `None` when it is about something else.
pub(super) fn adapted(body: &Value, refusal: &[u8], without: Without) -> Option<Without> {
    let refusal: Value = serde_json::from_slice(refusal).ok()?;
    let said = |name: &str| refusal.pointer(name).and_then(Value::as_str).unwrap_or_default();
    let (parameter, message) = (said("/error/param"), said("/error/message").to_lowercase());
    let names = |name: &str| parameter == name || message.contains(name);
    let sent = |name: &str| body.pointer(name).is_some();
    let mut without = without;
    if sent("/max_tokens") && sent("/messages/0/role") && names("max_completion_tokens") {
        without.old_limit = true;
    } else if sent("/max_tokens") && parameter == "max_tokens" {
        without.old_limit = true;
    } else if sent("/temperature") && names("temperature") {
        without.temperature = true;
    } else if sent("/thinking") && names("thinking") {
        without.thinking = true;
    } else if sent("/reasoning_effort") && names("reasoning_effort")
        || sent("/output_config/effort") && names("effort")
    {
        without.effort = true;
    } else if sent("/response_format") && (names("response_format") || names("json_schema")) {
        without.format = true;
    } else if sent("/output_config") && (names("output_config") || names("output_format")) {
        without.format = true;
        without.effort = true;
    } else {
        return None;
    }
    Some(without)
}

fn role(turn: &Turn) -> &'static str {
    match turn.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.mime, STANDARD.encode(&image.bytes))
}

fn source(image: &Image) -> Value {
    json!({ "type": "base64", "media_type": image.mime, "data": STANDARD.encode(&image.bytes) })
}

fn object(members: &[(&str, Value)]) -> Map<String, Value> {
    members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
