//! Verifiers and their measurements as the registry shows them.

use serde_json::Value;

use super::{Verifier, run::VerifierRunPurpose};
use crate::{
    time::Timestamp,
    workflow::{ShareOrigin, VerifierRole},
};

/// A verifier with the version that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployedVersion {
    /// Its current version is the one that was added.
    pub verifier: Verifier,
    pub config_hash: String,
}

/// A version as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionSummary {
    pub version: u32,
    pub description: String,
    pub config_hash: String,
    pub deployed_at: Timestamp,
}

/// What was found when a version was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// A UUID.
    pub id: String,
    pub verifier_id: String,
    pub version: u32,
    /// `Test` or `Attack`.
    pub purpose: VerifierRunPurpose,
    /// Tells whether two measurements used the same examples.
    pub data_digest: String,
    /// Judges and figures, which every run shows. Its member `own` is true for a measurement of all
    /// there is with the judge of the version alone; only such a one speaks for the version.
    pub document: Value,
    /// Each case with its inputs and what the judge said; null where they were not read.
    pub cases: Value,
    pub at: Timestamp,
}

impl Measurement {
    /// Whether it speaks for the version, and not for other judges or for a part of the cases.
    pub fn is_own(&self) -> bool {
        self.document.get("own") == Some(&Value::Bool(true))
    }
}

/// How somebody reaches a verifier of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareRoute {
    /// The id of the workflow that names the verifier.
    pub workflow: String,
    pub by: ShareOrigin,
}

/// A verifier in a list, and what somebody may do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedVerifier {
    pub verifier: Verifier,
    pub role: VerifierRole,
    /// `None` for an owner.
    pub shared: Option<ShareRoute>,
}
