//! A judge that speaks the protocol of OpenAI and immediately finds every criterion met.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use jurat_bench_load::{announce, until_parent_goes};
use serde_json::json;
use tokio::net::TcpListener;

/// Occurs in every reply of the judge.
pub(crate) const MARKER: &str = "chat.completion";

pub(crate) async fn serve() -> Result<()> {
    let answer = json!({
        "findings": [],
        "reasoning": "Each claim of the response is in the source.",
        "verdict": "met",
    });
    let message = json!({ "role": "assistant", "content": answer.to_string() });
    let reply = json!({
        "id": "chat",
        "object": MARKER,
        "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
        "usage": { "prompt_tokens": 700, "completion_tokens": 30 },
    });
    let reply = Bytes::from(reply.to_string());
    // The body is read to its end, as a real judge does.
    let judge = async move |_body: Bytes| ([(CONTENT_TYPE, "application/json")], reply.clone());
    let router = Router::new().route("/chat/completions", post(judge));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?.port(), "");
    tokio::select! {
        ended = axum::serve(listener, router).into_future() => ended.context("cannot serve"),
        () = until_parent_goes() => Ok(()),
    }
}
