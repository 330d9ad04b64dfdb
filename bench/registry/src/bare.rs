//! The minimal way to run a verifier: asks the judge with the server's client, and stores nothing.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Json, State};
use axum::routing::post;
use http::{HeaderMap, StatusCode, Uri};
use jurat_bench_load::{announce, until_parent_goes};
use jurat_guard::client::{ClientLimits, OutboundClient};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::request;

const TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug)]
struct BareRegistry {
    client: OutboundClient,
    judge: Uri,
}

pub(crate) async fn serve(judge: &str) -> Result<()> {
    let judge = format!("{judge}/chat/completions").parse()?;
    let bare =
        Arc::new(BareRegistry { client: OutboundClient::new(ClientLimits::default())?, judge });
    let router = Router::new().route("/v1/verifiers/{name}/runs", post(run)).with_state(bare);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?.port(), "");
    tokio::select! {
        ended = axum::serve(listener, router).into_future() => ended.context("cannot serve"),
        () = until_parent_goes() => Ok(()),
    }
}

async fn run(
    State(bare): State<Arc<BareRegistry>>,
    Json(request): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    let text = |name: &str| request["inputs"][name].as_str().unwrap_or_default().to_owned();
    let body = request::to_judge(&text("response"), &text("source"));
    let reply = bare.client.post_json(&bare.judge, HeaderMap::new(), body, TIMEOUT).await;
    let reply = reply.map_err(|_| StatusCode::BAD_GATEWAY)?;
    let read = |body: &[u8]| serde_json::from_slice::<Value>(body).ok();
    let reply = read(&reply.body).ok_or(StatusCode::BAD_GATEWAY)?;
    let answer = reply["choices"][0]["message"]["content"].as_str().unwrap_or_default();
    let answer = read(answer.as_bytes()).ok_or(StatusCode::BAD_GATEWAY)?;
    let is_met = answer["verdict"] == "met";
    Ok(Json(json!({ "passed": is_met, "reasoning": answer["reasoning"] })))
}
