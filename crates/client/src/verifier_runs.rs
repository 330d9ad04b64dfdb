//! `/v1/verifier-runs`.

use jurat_wire::api::verifier_runs::VerifierRunBody;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/verifier-runs";

/// A filter for verifier runs; by default it matches all of them.
#[derive(Debug, Clone, Default)]
pub struct RunListQuery {
    pub verifier: Option<String>,
    pub verdict: Option<String>,
    pub purpose: Option<String>,
    pub version: Option<u32>,
    pub since: Option<String>,
    pub until: Option<String>,
}

pub fn list(filter: &RunListQuery) -> Call<Page<VerifierRunBody<'static>>> {
    Call::get(ROUTE)
        .query("verifier", filter.verifier.as_ref())
        .query("verdict", filter.verdict.as_ref())
        .query("purpose", filter.purpose.as_ref())
        .query("version", filter.version)
        .query("since", filter.since.as_ref())
        .query("until", filter.until.as_ref())
}

pub fn show(id: &str) -> Call<VerifierRunBody<'static>> {
    Call::get(path(ROUTE, &[id]))
}
