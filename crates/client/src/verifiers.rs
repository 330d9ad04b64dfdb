//! `/v1/verifiers`: the registry, and the measurements of its verifiers.

use bytes::Bytes;
use jurat_wire::api::{
    verifier_runs::{RunVerifierDraft, VerifierRunBody},
    verifier_tests::{AttackVerifierDraft, ReportBody, TestVerifierDraft},
    verifiers::{
        DeletedVerifier, DeployedVerifier, ListedVerifier, RevokedVerifier, VerifierBody,
        VersionBody,
    },
};
use serde_json::Value;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/verifiers";
/// The event that ends the stream of a measurement: its report.
pub const LAST_EVENT: &str = "report";

/// Deploys a verifier from a user's document.
pub fn deploy(verifier: &Value) -> Call<DeployedVerifier<'static>> {
    Call::post(ROUTE, verifier)
}

/// Deploys a verifier from JSON bytes, which are sent unchanged.
pub fn deploy_bytes(verifier: Bytes) -> Call<DeployedVerifier<'static>> {
    Call::post_bytes(ROUTE, verifier)
}

pub fn list() -> Call<Page<ListedVerifier<'static>>> {
    Call::get(ROUTE)
}

/// One version, by default the current one.
pub fn show(verifier: &str, version: Option<u32>) -> Call<VerifierBody<'static>> {
    Call::get(path(ROUTE, &[verifier])).query("version", version)
}

pub fn versions(verifier: &str) -> Call<Page<VersionBody<'static>>> {
    Call::get(path(ROUTE, &[verifier, "versions"]))
}

pub fn run(verifier: &str, request: &RunVerifierDraft) -> Call<VerifierRunBody<'static>> {
    Call::post(path(ROUTE, &[verifier, "runs"]), request)
}

pub fn test(verifier: &str, request: &TestVerifierDraft) -> Call<ReportBody<'static>> {
    Call::post(path(ROUTE, &[verifier, "tests"]), request)
}

pub fn attack(verifier: &str, request: &AttackVerifierDraft) -> Call<ReportBody<'static>> {
    Call::post(path(ROUTE, &[verifier, "attacks"]), request)
}

pub fn revoke(verifier: &str) -> Call<RevokedVerifier<'static>> {
    Call::delete(path(ROUTE, &[verifier]))
}

/// Deletes a verifier with all its versions and runs.
pub fn delete(verifier: &str) -> Call<DeletedVerifier<'static>> {
    Call::delete(path(ROUTE, &[verifier, "permanent"]))
}
