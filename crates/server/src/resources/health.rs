//! `/health`, `/ready` and `/metrics`: the state of the node.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
};
use jurat_engine::{Engine, MetricFormat};
use jurat_wire::api::status::ServerStatus;
use serde_json::json;

use crate::{
    operation::Operation,
    request::{
        encode::{self, HandlerResult},
        negotiate::preferred,
    },
    resources::OPERATIONS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![health_operation(), ready_operation(), metrics_operation()]
}

fn health_operation() -> Operation {
    let text = "Confirms that the process is running. It does not check the store.";
    Operation::get("/health", "health", health)
        .also_at("/healthz", "healthz")
        .for_anyone()
        .tag(OPERATIONS)
        .summary("Check liveness")
        .text(text)
        .answers::<ServerStatus>(200, "The server is alive.", json!({ "status": "ok" }))
}

/// Shows that the process runs.
async fn health() -> Response {
    encode::ok(&ServerStatus { status: "ok".into() })
}

fn ready_operation() -> Operation {
    Operation::get("/ready", "ready", ready)
        .for_anyone()
        .tag(OPERATIONS)
        .summary("Check readiness")
        .text("Checks whether the store answers and accepts writes.")
        .answers::<ServerStatus>(200, "The server is ready.", json!({ "status": "ready" }))
        .refuses([ProblemCode::StoreUnavailable, ProblemCode::ShuttingDown])
}

/// Shows that the process can serve requests: its store answers.
async fn ready(State(engine): State<Engine>) -> HandlerResult {
    engine.ready().await?;
    Ok(encode::ok(&ServerStatus { status: "ready".into() }))
}

fn metrics_operation() -> Operation {
    let text = "The metrics of this node, in Prometheus text format, or in OpenMetrics format if `Accept` asks for it.";
    Operation::get("/metrics", "metrics_show", metrics)
        .tag(OPERATIONS)
        .summary("Read the metrics")
        .text(text)
        .scope(Scope::MetricsRead)
        .answers_as(200, "The metrics.", &["text/plain", "application/openmetrics-text"])
}

/// The metrics of this node.
async fn metrics(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> HandlerResult {
    let format = match preferred(&headers, &["text/plain", "application/openmetrics-text"]) {
        0 => MetricFormat::Prometheus,
        _ => MetricFormat::OpenMetrics,
    };
    Ok(encode::metrics(engine.metrics_show(&caller, format).await?, format))
}
