//! The routes by which the server is somebody's executor.

use jurat_core::{caller::Scope, code::Code};
use jurat_wire::executor::{CapabilitiesResponse, VerifyRequest, VerifyResponse};

use super::{CONSENSUS, OPERATIONS};
use crate::openapi::{description::Description, examples};

pub(super) fn verify() -> Description {
    let text = "The executor contract's `POST /verify`. Under `vp.semantic.v1` the judge of the verifier decides; under every other built-in policy but `vp.claim.v1` the server does, and asks nobody. A judge that fails makes it inconclusive. What cannot be decided here is refused with 400.";
    Description::new(CONSENSUS, "Have a candidate verified by the server itself", text)
        .takes::<VerifyRequest>([("plain", examples::of("verify_request"))])
        .answers::<VerifyResponse>(200, "The verdict.", examples::of("verify"))
        .and_header("X-Jurat-Round", "The round in which it was decided.")
        .repeatable()
        .scope(Scope::RoundsCreate)
        .refuses([
            Code::ValidationError,
            Code::BudgetExhausted,
            Code::AccountSuspended,
            Code::ShuttingDown,
            Code::Conflict,
        ])
}

pub(super) fn capabilities_show() -> Description {
    let text = "What the server declares to those who have it as an executor: it verifies candidates, and executes nothing.";
    Description::new(OPERATIONS, "See what the server does as an executor", text)
        .answers::<CapabilitiesResponse>(200, "What it declares.", examples::of("capabilities"))
}
