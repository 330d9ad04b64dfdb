//! Tests of chat requests.

use jurat_core::round::job::Disagreement;
use serde_json::json;

use super::*;
use crate::api::openai::profile::built_in;

fn asked(more: Value) -> Value {
    let mut body = json!({
        "model": "jurat/safe",
        "messages": [{ "role": "user", "content": "2 + 2?" }],
    });
    if let (Some(members), Value::Object(more)) = (body.as_object_mut(), more) {
        members.extend(more);
    }
    body
}

fn order(more: Value) -> Result<ChatOrder, Problem> {
    chat(&asked(more), &built_in())
}

#[test]
fn a_chat_is_the_job_of_the_same_delegate_request() {
    let schema = json!({ "type": "object", "required": ["n"] });
    let order = order(json!({
        "response_format": { "type": "json_schema", "json_schema": { "name": "x", "schema": schema } },
        "temperature": 0.5, "stop": ["."], "user": "somebody",
        "jurat": { "disagreement_policy": "best_effort", "timeout_ms": 1_000 },
    }))
    .unwrap();
    let same = consensus_request::delegate(&json!({
        "objective": "2 + 2?",
        "input": {
            "messages": [{ "role": "user", "content": "2 + 2?" }],
            "sampling": { "temperature": 0.5, "stop": ["."] },
        },
        "policy": { "tier": "safe" },
        "execution": { "output_schema": schema, "timeout_ms": 1_000 },
        "consensus": { "disagreement_policy": "best_effort" },
    }));
    assert_eq!(order.job, same.unwrap());
    assert_eq!(order.job.terms.disagreement, Disagreement::BestEffort);
    assert_eq!((order.format, order.delivery), (AnswerFormat::Schema, ChatDelivery::Whole));
}

#[test]
fn a_format_becomes_the_schema_of_outputs() {
    let of = |format: Value| {
        let order = order(json!({ "response_format": format })).unwrap();
        (order.format, order.job.has_schema, order.job.output_schema)
    };
    assert_eq!(of(json!(null)), (AnswerFormat::Text, false, json!({})));
    assert_eq!(of(json!({ "type": "text" })), (AnswerFormat::Text, false, json!({})));
    let object = json!({ "type": "object" });
    assert_eq!(of(json!({ "type": "json_object" })), (AnswerFormat::Object, true, object.clone()));
    let named = json!({ "type": "json_schema", "json_schema": { "name": "x" } });
    assert_eq!(of(named), (AnswerFormat::Schema, true, object));
}

#[test]
fn a_stream_may_end_with_usage() {
    for (more, expected) in [
        (json!({}), ChatDelivery::Whole),
        (json!({ "stream": true }), ChatDelivery::Stream),
        (
            json!({ "stream": true, "stream_options": { "include_usage": true } }),
            ChatDelivery::StreamWithUsage,
        ),
        (json!({ "stream_options": { "include_usage": true } }), ChatDelivery::Whole),
    ] {
        assert_eq!(order(more.clone()).unwrap().delivery, expected, "{more}");
    }
}

#[test]
fn what_would_change_the_answer_is_refused_by_name() {
    for (field, value) in [
        ("n", json!(2)),
        ("tools", json!([{ "type": "function" }])),
        ("functions", json!([{ "name": "f" }])),
        ("tool_choice", json!("required")),
        ("function_call", json!({ "name": "f" })),
        ("logprobs", json!(true)),
        ("top_logprobs", json!(2)),
        ("logit_bias", json!({ "1": 1 })),
        ("modalities", json!(["text", "audio"])),
        ("audio", json!({ "voice": "x" })),
        ("web_search_options", json!({})),
    ] {
        let problem = order(json!({ field: value })).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some(field));
        assert_eq!(problem.code, ProblemCode::NotSupported, "{field}");
    }
    for (field, more) in [
        ("model", json!({ "model": "gpt-4o" })),
        ("messages", json!({ "messages": null })),
        ("temperature", json!({ "temperature": 3 })),
        ("stop", json!({ "stop": ["a", "b", "c", "d", "e"] })),
        ("response_format.type", json!({ "response_format": { "type": "xml" } })),
        ("response_format.json_schema", json!({ "response_format": { "type": "json_schema" } })),
        ("jurat.replicas", json!({ "jurat": { "replicas": 3 } })),
        ("jurat.timeout_ms", json!({ "jurat": { "timeout_ms": 0 } })),
    ] {
        assert_eq!(order(more).unwrap_err().field.as_deref(), Some(field));
    }
    let harmless = json!({
        "n": 1, "tools": [], "tool_choice": "none", "logprobs": false, "modalities": ["text"],
        "user": "somebody", "store": true, "metadata": {}, "parallel_tool_calls": true,
    });
    assert!(order(harmless).is_ok());
}
