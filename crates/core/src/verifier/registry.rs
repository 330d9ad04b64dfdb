//! Defines verifiers and their measurements as the registry lists them.

use serde_json::Value;

use super::{Verifier, run::VerifierRunPurpose};
use crate::{
    time::Timestamp,
    workflow::{ShareOrigin, VerifierRole},
};

/// A verifier with its new version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployedVersion {
    /// Its current version is the new one.
    pub verifier: Verifier,
    pub config_hash: String,
}

/// A version in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionSummary {
    pub version: u32,
    pub description: String,
    pub config_hash: String,
    pub deployed_at: Timestamp,
}

/// The result of measuring a version.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// A UUID.
    pub id: String,
    pub verifier_id: String,
    pub version: u32,
    /// `Test` or `Attack`.
    pub purpose: VerifierRunPurpose,
    /// Equal for two measurements that used the same examples.
    pub data_digest: String,
    /// The judges and results that every run shows. Its member `own` is true if the judge of the
    /// version alone judged all cases; only such a measurement speaks for the version.
    pub document: Value,
    /// Each case with its inputs and its judgment; null if the cases were not read.
    pub cases: Value,
    pub at: Timestamp,
}

impl Measurement {
    /// Whether it speaks for the version, rather than for other judges or a part of the cases.
    pub fn is_own(&self) -> bool {
        self.document.get("own") == Some(&Value::Bool(true))
    }
}

/// The route by which an account reaches a verifier of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareRoute {
    /// The id of the workflow that names the verifier.
    pub workflow: String,
    pub by: ShareOrigin,
}

/// A verifier in a list, with the role of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedVerifier {
    pub verifier: Verifier,
    pub role: VerifierRole,
    /// `None` if the caller owns it.
    pub shared: Option<ShareRoute>,
}
