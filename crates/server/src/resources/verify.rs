//! `/verify` and `/capabilities`: the server as an executor for others.

use axum::{Extension, extract::State, http::HeaderValue, response::Response};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
};
use jurat_engine::{Engine, EngineError, RoundWatcher};
use jurat_wire::{
    api::verify,
    executor::{CapabilitiesResponse, VerifyRequest, VerifyResponse},
    problem::Problem,
};

use crate::{
    operation::{Operation, example},
    request::{
        decode::Json,
        encode::{self, HandlerResult},
        error_form::ROUND,
        idempotency::{self, Idempotency},
    },
    resources::{CONSENSUS, OPERATIONS},
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![verify_operation(), capabilities_operation()]
}

fn verify_operation() -> Operation {
    let text = "The executor contract's `POST /verify`. Under `vp.semantic.v1` the verifier's judge decides; under every other built-in policy except `vp.claim.v1` the server decides alone. If the judge fails, the verdict is inconclusive. Policies that cannot be decided here are refused with 400.";
    Operation::post("/verify", "verify", verify)
        .begins_rounds()
        .tag(CONSENSUS)
        .summary("Verify a candidate on the server itself")
        .text(text)
        .takes::<VerifyRequest>([("plain", example(include_str!("verify/verify_request.json")))])
        .answers::<VerifyResponse>(200, "The verdict.", example(include_str!("verify/verify.json")))
        .and_header("X-Jurat-Round", "The round of the verdict.")
        .idempotent()
        .scope(Scope::RoundsCreate)
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::BudgetExhausted,
            ProblemCode::AccountSuspended,
            ProblemCode::ShuttingDown,
            ProblemCode::Conflict,
        ])
}

async fn verify(
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

fn capabilities_operation() -> Operation {
    let text =
        "The server's capabilities as an executor: it verifies candidates and executes nothing.";
    Operation::get("/capabilities", "capabilities_show", capabilities)
        .tag(OPERATIONS)
        .summary("Show the server's capabilities as an executor")
        .text(text)
        .answers::<CapabilitiesResponse>(
            200,
            "The capabilities.",
            example(include_str!("verify/capabilities.json")),
        )
}

async fn capabilities() -> Response {
    encode::ok(&verify::capabilities())
}

/// Clients of executors know only status 400 for a refused binding.
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
