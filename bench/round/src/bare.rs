//! The minimal way to answer the request: asks the executors, counts, and stores nothing.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Json, State};
use axum::routing::post;
use futures::future::join_all;
use jurat_bench_load::{announce, until_parent_goes};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::request::to_verify;

#[derive(Debug)]
struct BareRound {
    client: reqwest::Client,
    /// The addresses of `/verify`.
    executors: Vec<String>,
    number: AtomicU64,
}

pub async fn serve(executors: Vec<String>) -> Result<()> {
    let executors = executors.into_iter().map(|url| url + "/verify").collect();
    let bare = Arc::new(BareRound { client: client()?, executors, number: AtomicU64::new(0) });
    let router = Router::new().route("/api/v3/validate", post(validate)).with_state(bare);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?.port(), "");
    tokio::select! {
        ended = axum::serve(listener, router).into_future() => ended.context("cannot serve"),
        () = until_parent_goes() => Ok(()),
    }
}

/// A client with common settings.
#[expect(clippy::disallowed_methods, reason = "the baseline is a plain client without a guard")]
pub fn client() -> Result<reqwest::Client> {
    reqwest::Client::builder().no_proxy().build().context("cannot build a client")
}

async fn validate(State(bare): State<Arc<BareRound>>, Json(request): Json<Value>) -> Json<Value> {
    let call = to_verify(&request, bare.number.fetch_add(1, Ordering::Relaxed));
    let asked = bare.executors.iter().map(|url| {
        let call = call.clone();
        let request = bare.client.post(url).header("content-type", "application/json").body(call);
        async { read(request).await.unwrap_or(Value::Null) }
    });
    let answers = join_all(asked).await;
    let verdicts: Vec<&str> = answers.iter().map(verdict).collect();
    let valid = verdicts.iter().filter(|verdict| **verdict == "VALID").count();
    let winner = if verdicts.len() < 2 * valid { "VALID" } else { "INVALID" };
    let agreement = share(verdicts.iter().filter(|verdict| **verdict == winner).count(), &answers);
    Json(json!({
        "verdict": winner,
        "confidence": agreement,
        "consensus": {
            "replicas": answers.len(),
            "agreement": agreement,
            "verdicts": verdicts,
            "strategy": "majority",
            "confidence": agreement,
        },
        "replicas": answers,
    }))
}

async fn read(request: reqwest::RequestBuilder) -> Result<Value> {
    let body = request.send().await?.error_for_status()?.bytes().await?;
    Ok(serde_json::from_slice(&body)?)
}

fn verdict(answer: &Value) -> &'static str {
    match answer["passed"].as_bool() {
        Some(true) => "VALID",
        Some(false) => "INVALID",
        None => "ERROR",
    }
}

#[expect(clippy::cast_precision_loss, reason = "a round has five replicas at the most")]
fn share(count: usize, answers: &[Value]) -> f64 {
    count as f64 / answers.len().max(1) as f64
}
