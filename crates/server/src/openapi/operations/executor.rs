//! The routes by which the server is somebody's executor.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::executor::{CapabilitiesResponse, VerifyRequest, VerifyResponse};

use super::{CONSENSUS, OPERATIONS};
use crate::openapi::{description::OperationDescription, examples};

pub(super) fn verify() -> OperationDescription {
    let text = "The executor contract's `POST /verify`. Under `vp.semantic.v1` the verifier's judge decides; under every other built-in policy except `vp.claim.v1` the server decides alone. If the judge fails, the verdict is inconclusive. Policies that cannot be decided here are refused with 400.";
    OperationDescription::new(CONSENSUS, "Verify a candidate on the server itself", text)
        .takes::<VerifyRequest>([("plain", examples::of("verify_request"))])
        .answers::<VerifyResponse>(200, "The verdict.", examples::of("verify"))
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

pub(super) fn capabilities_show() -> OperationDescription {
    let text =
        "The server's capabilities as an executor: it verifies candidates and executes nothing.";
    OperationDescription::new(OPERATIONS, "Show the server's capabilities as an executor", text)
        .answers::<CapabilitiesResponse>(200, "The capabilities.", examples::of("capabilities"))
}
