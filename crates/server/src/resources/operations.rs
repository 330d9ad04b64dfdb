//! `/health`, `/ready` and `/metrics`.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use jurat_core::account::caller::Caller;
use jurat_engine::{Engine, MetricFormat};
use jurat_wire::api::status::ServerStatus;

use crate::request::{
    encode::{self, HandlerResult},
    negotiate::preferred,
};

/// The process is there.
pub(super) async fn health() -> Response {
    encode::ok(&ServerStatus { status: "ok" })
}

/// The process can serve: its store answers.
pub(super) async fn ready(State(engine): State<Engine>) -> HandlerResult {
    engine.ready().await?;
    Ok(encode::ok(&ServerStatus { status: "ready" }))
}

/// The figures that this node counts.
pub(super) async fn metrics(
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
