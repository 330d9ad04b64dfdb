//! `/health`, `/ready` and `/metrics`.

use axum::{Extension, extract::State, response::Response};
use jurat_core::caller::Caller;
use jurat_engine::Engine;
use jurat_wire::api::status::Status;

use crate::encode::{self, Answer};

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
) -> Answer {
    Ok(encode::figures(engine.metrics_show(&caller).await?))
}
