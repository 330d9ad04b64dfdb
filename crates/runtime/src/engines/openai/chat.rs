//! One conversation with the model: ask, check the form of the answer, ask once more if it is wrong.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header};
use serde_json::Value;
use serde_json::value::RawValue;

use jurat_core::candidate::{Candidate, Evidence};
use jurat_core::policy::Status;
use jurat_core::schema::Schema;
use jurat_guard::bounded::RefusedSchema;
use jurat_wire::strict;

use super::OpenAiExecutor;
use super::prompts::{Form, Message};
use crate::executor::ExecutorError;
use crate::verify::matched;

#[derive(serde::Serialize)]
struct Request<'a> {
    model: &'a str,
    temperature: u8,
    messages: &'a [Message],
    response_format: ResponseFormat<'a>,
}

#[derive(serde::Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(serde::Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a RawValue,
}

impl OpenAiExecutor {
    /// Asks until the answer has the form, at most twice.
    pub(super) async fn ask(
        &self,
        mut messages: Vec<Message>,
        form: &Form,
    ) -> Result<Value, ExecutorError> {
        // Before the model is asked, because its answer costs money and nothing could check it.
        let schema = self.compile(&form.schema).await?;
        let first = self.complete(&messages, form).await?;
        let problem = match self.read(&first, &schema).await? {
            Ok(value) => return Ok(value),
            Err(problem) => problem,
        };
        messages.push(Message::new("assistant", first));
        messages.push(Message::new(
            "user",
            format!(
                "That answer cannot be used: {problem}. Answer again with only the JSON document."
            ),
        ));
        let second = self.complete(&messages, form).await?;
        self.read(&second, &schema).await?.map_err(|problem| {
            ExecutorError::Upstream(format!("the model's answer cannot be used, twice: {problem}"))
        })
    }

    async fn compile(&self, schema: &Value) -> Result<Schema, ExecutorError> {
        self.bounded.schema(schema).await.map_err(|error| match error {
            RefusedSchema::Schema(_) => unchecked(error.to_string()),
            RefusedSchema::Busy => ExecutorError::Overloaded,
            RefusedSchema::Crashed => ExecutorError::Failed(error.to_string()),
        })
    }

    /// The outer error ends the conversation; the inner one is what to tell the model.
    async fn read(
        &self,
        content: &str,
        schema: &Schema,
    ) -> Result<Result<Value, String>, ExecutorError> {
        let value = match strict::parse(unfenced(content).as_bytes()) {
            Ok(value) => value,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let candidate = Arc::new(Candidate {
            candidate_id: String::new(),
            execution_id: String::new(),
            output: value,
            evidence: Evidence::default(),
        });
        let evaluation = matched(&self.bounded, Arc::clone(&candidate), schema.clone()).await?;
        let notes = evaluation.notes.join("; ");
        match evaluation.status {
            Status::Passed => Ok(Ok(Arc::unwrap_or_clone(candidate).output)),
            Status::Failed => Ok(Err(notes)),
            Status::Inconclusive => Err(unchecked(notes)),
        }
    }

    async fn complete(&self, messages: &[Message], form: &Form) -> Result<String, ExecutorError> {
        let request = Request {
            model: &self.options.model,
            temperature: 0,
            messages,
            response_format: ResponseFormat {
                r#type: "json_schema",
                json_schema: JsonSchema {
                    name: form.name,
                    strict: form.strict,
                    schema: &form.text,
                },
            },
        };
        let body = serde_json::to_vec(&request)
            .map_err(|error| ExecutorError::Failed(format!("the request: {error}")))?;
        let url = format!("{}/chat/completions", self.options.base_url.trim_end_matches('/'));
        let url = Uri::try_from(url).map_err(|error| {
            ExecutorError::Failed(format!("the base URL of the model: {error}"))
        })?;
        let reply = self
            .client
            .post_json(&url, self.headers()?, Bytes::from(body), self.options.timeout)
            .await
            .map_err(|error| ExecutorError::Upstream(format!("the model: {error}")))?;
        // The body of an error is kept out of the message: some providers put part of the key there.
        if !reply.status.is_success() {
            let message = format!("the model's side answered {}", reply.status);
            return Err(ExecutorError::Upstream(message));
        }
        content(&reply.body)
    }

    fn headers(&self) -> Result<HeaderMap, ExecutorError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.options.key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                .map_err(|_| ExecutorError::Failed("the key is no header text".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

fn unchecked(problem: String) -> ExecutorError {
    ExecutorError::Refused { field: "task_contract.output_schema".to_owned(), problem }
}

/// The text of the first choice.
fn content(body: &[u8]) -> Result<String, ExecutorError> {
    let unusable = |what: &str| ExecutorError::Upstream(format!("the model's reply {what}"));
    let body: Value = serde_json::from_slice(body).map_err(|_| unusable("is not JSON"))?;
    let choice = body.pointer("/choices/0").ok_or_else(|| unusable("has no choice"))?;
    if choice.get("finish_reason").and_then(Value::as_str) == Some("length") {
        return Err(unusable("was cut off by its length limit"));
    }
    if choice.pointer("/message/refusal").is_some_and(Value::is_string) {
        return Err(unusable("is a refusal"));
    }
    let text = choice.pointer("/message/content").and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| unusable("has no content"))
}

/// Takes the document out of a fenced block, into which some models put it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|rest| rest.strip_suffix("```")).map_or(text, str::trim)
}
