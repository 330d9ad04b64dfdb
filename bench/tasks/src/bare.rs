//! The minimal way to do the same: one call to propose, calls to verify, a count, and nothing
//! stored.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    extract::{Json, State},
    http::StatusCode,
    routing::post,
};
use futures::future::join_all;
use jurat_bench_load::{announce, until_parent_goes};
use jurat_bench_round::bare::client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::order;

#[derive(Debug)]
struct BareTasks {
    client: reqwest::Client,
    executors: Vec<String>,
    number: AtomicU64,
}

pub(crate) async fn serve(executors: Vec<String>) -> Result<()> {
    let bare = Arc::new(BareTasks { client: client()?, executors, number: AtomicU64::new(0) });
    let router = Router::new().route("/v1/tasks", post(task)).with_state(bare);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?.port(), "");
    tokio::select! {
        ended = axum::serve(listener, router).into_future() => ended.context("cannot serve"),
        () = until_parent_goes() => Ok(()),
    }
}

async fn task(
    State(bare): State<Arc<BareTasks>>,
    Json(order): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    let done = bare.task(&order).await;
    done.map(Json).map_err(|_| StatusCode::BAD_GATEWAY)
}

impl BareTasks {
    async fn task(&self, order: &Value) -> Result<Value> {
        let execution_id = format!("exec-{}", self.number.fetch_add(1, Ordering::Relaxed));
        let proposer = self.executors.first().context("nobody proposes")?;
        let body = order::to_execute(order, &execution_id);
        let output = self.ask(proposer, "execute", &body).await?["candidate_output"].take();
        let body = order::to_verify(order, &execution_id, &output);
        let quorum = order["verifiers"].as_array().map_or(0, Vec::len);
        let verifiers = self.executors.iter().skip(1).take(quorum);
        let verdicts = join_all(verifiers.map(|it| self.ask(it, "verify", &body))).await;
        let verdicts: Vec<Value> = verdicts.into_iter().collect::<Result<_>>()?;
        let approvals = verdicts.iter().filter(|it| it["passed"] == true).count();
        let state = if quorum <= approvals { "finalized" } else { "failed" };
        Ok(json!({ "state": state, "output": output, "verdicts": verdicts }))
    }

    async fn ask(&self, executor: &str, what: &str, body: &Value) -> Result<Value> {
        let request = self
            .client
            .post(format!("{executor}/{what}"))
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await?.error_for_status()?.bytes().await?;
        Ok(serde_json::from_slice(&answer)?)
    }
}
