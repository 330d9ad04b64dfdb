//! Streamed completions.

use http::StatusCode;
use jurat_testkit::app::{TestApp, TestReply};
use serde_json::{Value, json};

use super::{CANCELLED, CHAT, LEFT, app, ask, cancelled, counts, left, says};

/// The data of the events, and the last one, which is not JSON.
fn chunks(reply: &TestReply) -> (Vec<Value>, String) {
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let text = reply.text();
    let mut data: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect();
    let last = data.pop().unwrap();
    (data.iter().map(|text| serde_json::from_str(text).unwrap()).collect(), last)
}

async fn streamed(app: &TestApp, more: Value) -> TestReply {
    let mut body = ask(json!({ "stream": true }));
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    app.admin().post(CHAT, &body).await
}

#[tokio::test]
async fn the_role_comes_first_and_the_consensus_last() {
    let app = app().await;
    let _fakes = app.executors([says("four"), says("four"), says("five")]).await;
    let reply = streamed(&app, json!({})).await;
    let (chunks, last) = chunks(&reply);
    assert_eq!(last, "[DONE]");
    let deltas: Vec<&Value> = chunks.iter().map(|it| &it["choices"][0]["delta"]).collect();
    assert_eq!(
        deltas,
        [&json!({ "role": "assistant" }), &json!({ "content": "four" }), &json!({})]
    );
    let ends: Vec<&Value> = chunks.iter().map(|it| &it["choices"][0]["finish_reason"]).collect();
    assert_eq!(ends, [&Value::Null, &Value::Null, &json!("stop")]);
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        assert!(chunk.get("usage").is_none());
    }
    assert!(chunks[1].get("jurat").is_none());
    let round = chunks[2]["jurat"]["round_id"].as_str().unwrap();
    assert_eq!(reply.headers["x-jurat-round"], round);
    assert_eq!(chunks[2]["jurat"]["consensus"]["agreement"], 0.6667);
}

#[tokio::test]
async fn usage_is_a_chunk_of_its_own() {
    let app = app().await;
    let _fakes = app.executors([counts(5, 1), counts(7, 2), says("four")]).await;
    let reply = streamed(&app, json!({ "stream_options": { "include_usage": true } })).await;
    let (chunks, last) = chunks(&reply);
    assert_eq!((chunks.len(), last.as_str()), (4, "[DONE]"));
    assert_eq!(chunks[3]["choices"], json!([]));
    let usage = json!({ "prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15 });
    assert_eq!(chunks[3]["usage"], usage);
}

#[tokio::test]
async fn no_agreement_is_a_refusal_or_an_error() {
    let app = app().await;
    let _fakes = app.executors([says("four"), says("five"), says("six")]).await;
    let (refused, last) = chunks(&streamed(&app, json!({})).await);
    assert_eq!(last, "[DONE]");
    let delta = &refused[1]["choices"][0]["delta"];
    assert!(delta["refusal"].is_string() && delta.get("content").is_none(), "{delta}");
    let body = json!({ "stream": true, "jurat": { "disagreement_policy": "fail_hard" } });
    let text = app.admin().post_with(CHAT, &ask(body), &[]).await.text();
    let error = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let error: Value = serde_json::from_str(error).unwrap();
    assert_eq!(error["error"]["code"], "consensus_disagreement");
}

#[tokio::test]
async fn a_stream_whose_round_was_not_decided_says_why() {
    let body = ask(json!({ "stream": true }));
    let (refused, last) = chunks(&cancelled(&body).await);
    assert_eq!(refused[1]["choices"][0]["delta"], json!({ "refusal": CANCELLED }));
    assert_eq!(last, "[DONE]");
    let (before, error) = chunks(&left(&body).await);
    assert_eq!(before.len(), 1, "only the role: {before:?}");
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!(error["error"]["message"], LEFT, "{error}");
}

#[tokio::test]
async fn a_repeated_stream_is_replayed() {
    let app = app().await;
    let _fakes = app.executors([says("four"), says("four"), says("four")]).await;
    let key = [("idempotency-key", "k")];
    let body = ask(json!({ "stream": true }));
    let first = app.admin().post_with(CHAT, &body, &key).await;
    let second = app.admin().post_with(CHAT, &body, &key).await;
    assert_eq!(second.text(), first.text());
    assert_eq!(second.headers["idempotent-replayed"], "true");
}

#[tokio::test]
async fn a_failure_before_the_start_is_an_ordinary_error() {
    let app = app().await;
    let reply = streamed(&app, json!({})).await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reply.json()["error"]["code"], "sessions_unavailable");
}
