//! The requests: a run for the server and the handler, and the resulting question for the judge.

use anyhow::Result;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use jurat_bench_load::load::DIGITS;
use jurat_bench_load::{Method, RequestVariation, RunningRole, Target};
use jurat_core::judge::{MessageRole, PromptMaterials, Question, mark, prompt};
use serde_json::{Value, json};

use crate::{judge, verifiers};

const SOURCE: &str = "The report of the harbour office has the arrivals of each month, and names the \
    ships, their captains and what they carried; for March it has forty-one of them.";

/// A run with new inputs, so that the server has to ask the judge.
pub(crate) fn of_run(role: &RunningRole) -> Result<Target> {
    let body = json!({ "inputs": { "response": response(), "source": SOURCE } }).to_string();
    Ok(Target {
        address: role.address,
        method: Method::POST,
        path: format!("/v1/verifiers/{}/runs", verifiers::name(0)),
        headers: headers(role)?,
        vary: RequestVariation::zeros_of(&body),
        body: Bytes::from(body),
        marker: "\"passed\":true".to_owned(),
    })
}

/// The call that such a run makes.
pub(crate) fn of_judge(role: &RunningRole) -> Target {
    Target {
        address: role.address,
        method: Method::POST,
        path: "/chat/completions".to_owned(),
        headers: Vec::new(),
        body: to_judge(&response(), SOURCE),
        // The judge ignores its input, so nothing has to differ.
        vary: RequestVariation::Nothing,
        marker: judge::MARKER.to_owned(),
    }
}

/// The same question that the server sends to its judge.
pub(crate) fn to_judge(response: &str, source: &str) -> Bytes {
    let config = verifiers::config();
    let question = Question {
        criterion: config.criterion,
        contract: config.contract,
        fields: config.fields,
        inputs: verifiers::inputs(response, source),
        examples: config.examples,
    };
    let prompt = prompt(&PromptMaterials {
        question: &question,
        mark: &mark(7, &question),
        image: None,
        example_images: &vec![None; question.examples.len()],
        commitment: None,
        repair: None,
    });
    let mut messages = vec![json!({ "role": "system", "content": prompt.system })];
    messages.extend(prompt.messages.iter().map(|message| {
        let role = if message.role == MessageRole::User { "user" } else { "assistant" };
        json!({ "role": role, "content": message.text })
    }));
    let body: Value = json!({
        "model": "instant",
        "max_completion_tokens": 2_048,
        "messages": messages,
        "response_format": { "type": "json_schema", "json_schema": { "schema": prompt.schema } },
    });
    Bytes::from(body.to_string())
}

/// The bearer token, if the role has one.
pub(crate) fn headers(role: &RunningRole) -> Result<Vec<(HeaderName, HeaderValue)>> {
    if role.note.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", role.note))?)])
}

fn response() -> String {
    format!("Forty-one ships came in during March, says note {}.", zeros())
}

fn zeros() -> String {
    "0".repeat(DIGITS)
}
