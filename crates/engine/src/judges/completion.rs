//! Reads the reply of a provider in either protocol: the text, or why there is none, and the usage.

use jurat_core::{
    canonical::canonical,
    judge::{JudgmentError, Tokens},
    strict_json,
};
use serde_json::Value;

use super::config::ProviderKind;

/// More than any provider counts; a larger number is an error and must not overflow.
const MOST_TOKENS: u64 = 1 << 40;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct JudgeCompletion {
    pub(super) text: Result<String, JudgmentError>,
    /// `None` if the provider does not count.
    pub(super) tokens: Option<Tokens>,
}

pub(super) fn read_completion(kind: ProviderKind, body: &[u8]) -> JudgeCompletion {
    let Ok(body) = strict_json::parse(body) else {
        return JudgeCompletion { text: Err(JudgmentError::NotJson), tokens: None };
    };
    match kind {
        ProviderKind::OpenAi => {
            JudgeCompletion { text: chat_text(&body), tokens: tokens(&body, CHAT_USAGE) }
        }
        ProviderKind::Anthropic => {
            JudgeCompletion { text: message_text(&body), tokens: tokens(&body, MESSAGE_USAGE) }
        }
    }
}

/// The members that count input and output tokens.
type UsageNames = (&'static [&'static str], &'static str);
const CHAT_USAGE: UsageNames = (&["prompt_tokens"], "completion_tokens");
const MESSAGE_USAGE: UsageNames =
    (&["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"], "output_tokens");

fn tokens(body: &Value, (input, output): UsageNames) -> Option<Tokens> {
    let usage = body.get("usage")?;
    let count = |name: &str| Some(usage.get(name)?.as_u64()?.min(MOST_TOKENS));
    let (first, others) = input.split_first()?;
    let others: u64 = others.iter().filter_map(|name| count(name)).sum();
    Some(Tokens { input: count(first)? + others, output: count(output)? })
}

fn chat_text(body: &Value) -> Result<String, JudgmentError> {
    let choices = body.get("choices").and_then(Value::as_array).ok_or(JudgmentError::Empty)?;
    let mut answers = Vec::new();
    for choice in choices {
        let message = choice.get("message").unwrap_or(&Value::Null);
        let refusal = message.get("refusal").and_then(Value::as_str).unwrap_or_default();
        match choice.get("finish_reason").and_then(Value::as_str) {
            Some("content_filter") => return Err(JudgmentError::Refused),
            _ if !refusal.is_empty() => return Err(JudgmentError::Refused),
            Some("length") => return Err(JudgmentError::Truncated),
            Some(_) | None => {}
        }
        let content = content_text(message.get("content").unwrap_or(&Value::Null));
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let calls = calls.map_or(&[] as &[Value], Vec::as_slice).iter();
        let arguments: Vec<String> = calls
            .map(|call| call.pointer("/function/arguments").map_or_else(String::new, text_of))
            .collect();
        answers.push((content, arguments));
    }
    single_answer(answers)
}

fn message_text(body: &Value) -> Result<String, JudgmentError> {
    match body.get("stop_reason").and_then(Value::as_str) {
        Some("refusal") => return Err(JudgmentError::Refused),
        Some("max_tokens" | "model_context_window_exceeded") => {
            return Err(JudgmentError::Truncated);
        }
        Some(_) | None => {}
    }
    let blocks = body.get("content").and_then(Value::as_array).ok_or(JudgmentError::Empty)?;
    let has_kind =
        |block: &&Value, kind: &str| block.get("type").and_then(Value::as_str) == Some(kind);
    let calls = blocks.iter().filter(|block| has_kind(block, "tool_use"));
    let inputs = calls.map(|block| block.get("input").map_or_else(String::new, text_of)).collect();
    single_answer(vec![(content_text(&Value::Array(blocks.clone())), inputs)])
}

/// The text of a message, which is a text or a list of parts.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The one answer of all choices, texts and tool calls. If they differ, none counts.
fn single_answer(answers: Vec<(String, Vec<String>)>) -> Result<String, JudgmentError> {
    let mut texts = Vec::new();
    for (content, calls) in answers {
        // Text besides a call is a remark, unless it is an answer of its own.
        if calls.is_empty() || is_document(&content) {
            texts.push(content);
        }
        texts.extend(calls);
    }
    texts.retain(|text| !text.trim().is_empty());
    let first = texts.first().cloned().ok_or(JudgmentError::Empty)?;
    let is_same = texts.iter().all(|text| *text == first || same_document(text, &first));
    if is_same { Ok(first) } else { Err(JudgmentError::Differing) }
}

fn is_document(text: &str) -> bool {
    strict_json::parse(text.trim().as_bytes()).is_ok_and(|value| value.is_object())
}

fn same_document(one: &str, other: &str) -> bool {
    let read = |text: &str| strict_json::parse(text.trim().as_bytes()).ok();
    match (read(one), read(other)) {
        (Some(one), Some(other)) => canonical(&one) == canonical(&other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chat(body: &Value) -> Result<String, JudgmentError> {
        read_completion(ProviderKind::OpenAi, body.to_string().as_bytes()).text
    }

    fn message(body: &Value) -> Result<String, JudgmentError> {
        read_completion(ProviderKind::Anthropic, body.to_string().as_bytes()).text
    }

    #[test]
    fn the_text_of_a_chat_is_read_or_its_fault_is_named() {
        let choice = |reason: &str, message: Value| json!({"choices": [{"finish_reason": reason, "message": message}]});
        assert_eq!(chat(&choice("stop", json!({"content": "x"}))), Ok("x".to_owned()));
        let parts =
            json!({"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]});
        assert_eq!(chat(&choice("stop", parts)), Ok("xy".to_owned()));
        let refused = json!({"content": null, "refusal": "no"});
        assert_eq!(chat(&choice("stop", refused)), Err(JudgmentError::Refused));
        assert_eq!(
            chat(&choice("content_filter", json!({"content": "x"}))),
            Err(JudgmentError::Refused)
        );
        assert_eq!(chat(&choice("length", json!({"content": "x"}))), Err(JudgmentError::Truncated));
        assert_eq!(chat(&choice("stop", json!({"content": ""}))), Err(JudgmentError::Empty));
        assert_eq!(chat(&json!({"choices": []})), Err(JudgmentError::Empty));
        assert_eq!(chat(&json!({"error": "x"})), Err(JudgmentError::Empty));
        assert_eq!(
            read_completion(ProviderKind::OpenAi, b"<html>").text,
            Err(JudgmentError::NotJson)
        );
        assert_eq!(
            read_completion(ProviderKind::OpenAi, b"{\"choices\":1,\"choices\":2}").text,
            Err(JudgmentError::NotJson)
        );
    }

    #[test]
    fn several_answers_must_be_equal() {
        let two = |one: &str, other: &str| json!({"choices": [{"message": {"content": one}}, {"message": {"content": other}}]});
        assert_eq!(chat(&two(r#"{"a":1}"#, r#"{"a": 1}"#)), Ok(r#"{"a":1}"#.to_owned()));
        assert_eq!(chat(&two(r#"{"a":1}"#, r#"{"a":2}"#)), Err(JudgmentError::Differing));
        let called = |content: &str, calls: &[&str]| {
            let calls: Vec<_> = calls
                .iter()
                .map(|text| json!({"function": {"name": "f", "arguments": text}}))
                .collect();
            json!({"choices": [{"message": {"content": content, "tool_calls": calls}}]})
        };
        assert_eq!(chat(&called("I will call it.", &["{}"])), Ok("{}".to_owned()));
        assert_eq!(chat(&called(r#"{"a":1}"#, &["{}"])), Err(JudgmentError::Differing));
        assert_eq!(chat(&called("", &["{}", r#"{"a":1}"#])), Err(JudgmentError::Differing));
    }

    #[test]
    fn the_text_of_a_message_is_read_or_its_fault_is_named() {
        let said =
            |reason: &str, content: Value| json!({"stop_reason": reason, "content": content});
        let text = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}]);
        assert_eq!(message(&said("end_turn", text.clone())), Ok("x".to_owned()));
        assert_eq!(message(&said("refusal", text.clone())), Err(JudgmentError::Refused));
        assert_eq!(message(&said("max_tokens", text)), Err(JudgmentError::Truncated));
        let call = |input: Value| json!({"type": "tool_use", "input": input});
        let one = json!([call(json!({"a": 1})), call(json!({"a": 1}))]);
        assert_eq!(message(&said("tool_use", one)), Ok(r#"{"a":1}"#.to_owned()));
        let two = json!([call(json!({"a": 1})), call(json!({"a": 2}))]);
        assert_eq!(message(&said("tool_use", two)), Err(JudgmentError::Differing));
        assert_eq!(message(&said("end_turn", json!([]))), Err(JudgmentError::Empty));
    }

    #[test]
    fn both_protocols_count_tokens() {
        let chat = json!({"usage": {"prompt_tokens": 3, "completion_tokens": 4}});
        let read_chat = read_completion(ProviderKind::OpenAi, chat.to_string().as_bytes());
        assert_eq!(read_chat.tokens, Some(Tokens { input: 3, output: 4 }));
        let message = json!({"usage": {
            "input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100,
            "output_tokens": 4,
        }});
        let read_message = read_completion(ProviderKind::Anthropic, message.to_string().as_bytes());
        assert_eq!(read_message.tokens, Some(Tokens { input: 113, output: 4 }));
        assert_eq!(read_completion(ProviderKind::OpenAi, b"{}").tokens, None);
        let absurd =
            json!({"usage": {"prompt_tokens": 9_007_199_254_740_991_u64, "completion_tokens": 1}});
        let absurd = read_completion(ProviderKind::OpenAi, absurd.to_string().as_bytes());
        assert_eq!(absurd.tokens, Some(Tokens { input: MOST_TOKENS, output: 1 }));
    }
}
