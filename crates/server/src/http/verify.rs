//! `/verify` and `/capabilities`: the server as somebody's executor.

use axum::{Extension, extract::State, http::HeaderValue, response::Response};
use jurat_core::{caller::Caller, code::Code};
use jurat_engine::{Engine, EngineError, Watcher};
use jurat_wire::{api::verify, problem::Problem};

use crate::{
    decode::Json,
    encode::{self, Answer},
    once::{self, Repeatable},
};

const ROUND: &str = "x-jurat-round";

pub(super) async fn verify(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let (job, asked) = verify::decode(&body)?;
    let once = repeatable.once("verify", &body);
    drop(body);
    let begun = engine.round_begin(&caller, job, Watcher::nobody(), once).await;
    let begun = begun.map_err(|error| refused(&error))?;
    let (round, is_repeated) = begun.ended_or_again().await?;
    let answer = verify::response(&asked, &round);
    let answer = answer.ok_or(EngineError::Bug("a round returned before its end"))?;
    let mut response = encode::ok(&answer);
    if let Ok(id) = HeaderValue::from_str(round.open.id.as_str()) {
        response.headers_mut().insert(ROUND, id);
    }
    Ok(if is_repeated { once::mark_replayed(response) } else { response })
}

pub(super) async fn capabilities() -> Response {
    encode::ok(&verify::capabilities())
}

/// Those who call executors know one status for a binding that is refused, which is 400.
fn refused(error: &EngineError) -> Problem {
    let mut problem = encode::engine_problem(error);
    if problem.code == Code::PolicyInvalid {
        problem.detail.insert_str(0, "policy binding invalid: ");
    }
    if matches!(problem.code, Code::PolicyInvalid | Code::NotSupported | Code::SchemaRefused) {
        problem.code = Code::ValidationError;
    }
    problem
}
