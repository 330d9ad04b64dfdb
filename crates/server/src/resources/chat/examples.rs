//! Examples of chats and models.

use jurat_wire::api::openai::{models::ChatModelList, profile::built_in};
use serde_json::{Value, json};

use crate::operation::example;

pub(super) fn request() -> Value {
    json!({
        "model": "jurat/safe",
        "messages": [
            { "role": "system", "content": "You are a calculator." },
            { "role": "user", "content": "Multiply 12 by 12." },
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "product",
                "schema": {
                    "type": "object",
                    "required": ["answer"],
                    "properties": { "answer": { "type": "number" } },
                },
            },
        },
    })
}

pub(super) fn completion() -> Value {
    let delegated = example(include_str!("../consensus/delegate.json"));
    json!({
        "id": format!("chatcmpl-{}", delegated["round_id"].as_str().unwrap_or_default()),
        "object": "chat.completion",
        "created": 1_790_000_004,
        "model": "jurat/safe",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": "{\"answer\":144}", "refusal": null },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 },
        "jurat": delegated,
    })
}

pub(super) fn models() -> Value {
    json!(ChatModelList::from(&built_in()))
}

pub(super) fn model() -> Value {
    models()["data"].as_array().and_then(|models| models.last().cloned()).unwrap_or_default()
}
