//! `/health`, `/ready` and `/metrics`.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, FigureFormat};
use jurat_wire::api::status::Status;

use crate::{
    encode::{self, Answer},
    negotiate::preferred,
};

/// The process is there.
pub(super) async fn health() -> Response {
    encode::ok(&Status { status: "ok" })
}

/// The process can serve: its store answers.
pub(super) async fn ready(State(engine): State<Engine>) -> Answer {
    engine.ready().await?;
    Ok(encode::ok(&Status { status: "ready" }))
}

/// The figures that this node counts.
pub(super) async fn metrics(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Answer {
    let format = match preferred(&headers, &["text/plain", "application/openmetrics-text"]) {
        0 => FigureFormat::Prometheus,
        _ => FigureFormat::OpenMetrics,
    };
    Ok(encode::figures(engine.metrics_show(&caller, format).await?, format))
}
