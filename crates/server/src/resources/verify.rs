//! `/verify` and `/capabilities`: the server as somebody's executor.

use axum::{Extension, extract::State, http::HeaderValue, response::Response};
use jurat_core::{account::caller::Caller, code::ProblemCode};
use jurat_engine::{Engine, EngineError, RoundWatcher};
use jurat_wire::{api::verify, problem::Problem};

use crate::request::{
    decode::Json,
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

const ROUND: &str = "x-jurat-round";

pub(super) async fn verify(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let (job, asked) = verify::decode(&body)?;
    let once = idempotency.key_for("verify", &body);
    drop(body);
    let begun = engine.round_begin(&caller, job, RoundWatcher::nobody(), once).await;
    let begun = begun.map_err(|error| refused(&error))?;
    let (round, is_repeated) = begun.wait_or_retry().await?;
    let answer = verify::response(&asked, &round);
    let answer = answer.ok_or(EngineError::Bug("a round returned before its end"))?;
    let mut response = encode::ok(&answer);
    if let Ok(id) = HeaderValue::from_str(round.open.id.as_str()) {
        response.headers_mut().insert(ROUND, id);
    }
    Ok(if is_repeated { idempotency::mark_replayed(response) } else { response })
}

pub(super) async fn capabilities() -> Response {
    encode::ok(&verify::capabilities())
}

/// Those who call executors know one status for a binding that is refused, which is 400.
fn refused(error: &EngineError) -> Problem {
    let mut problem = encode::engine_problem(error);
    if problem.code == ProblemCode::PolicyInvalid {
        problem.detail.insert_str(0, "policy binding invalid: ");
    }
    if matches!(
        problem.code,
        ProblemCode::PolicyInvalid | ProblemCode::NotSupported | ProblemCode::SchemaRefused
    ) {
        problem.code = ProblemCode::ValidationError;
    }
    problem
}
