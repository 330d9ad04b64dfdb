//! Requests to the registry of verifiers, and their results.

use jurat_core::{
    id::AccountId,
    time::Timestamp,
    verifier::{
        Verifier, VerifierConfig, VerifierSelector,
        registry::DeployedVersion,
        run::{VerifierRunPurpose, VerifierRunVerdict},
    },
};
use serde_json::Value;

use crate::StorageFull;

/// A version to deploy: the first of a verifier, or the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVerifierVersion {
    pub account: AccountId,
    pub name: String,
    pub description: String,
    pub config: VerifierConfig,
    /// Must be the current token of an existing verifier, and absent for a new one.
    pub expected_token: Option<String>,
    /// The id of a new verifier.
    pub new_id: String,
    pub new_token: String,
    /// The storage quota of its owner, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeployOutcome {
    Done(DeployedVersion),
    /// The owner of the verifier has reached its quota.
    Full(StorageFull),
    /// The verifier exists, and no token was given.
    TokenMissing {
        current: String,
    },
    /// The verifier was deployed meanwhile.
    TokenStale {
        current: String,
    },
    /// A token was given, and there is no such verifier.
    TokenUnexpected,
    /// The name belongs to a revoked verifier.
    NameRevoked,
    /// The token belongs to no verifier of this name that the caller accepted; these full names
    /// lead to those of other owners.
    TokenOfNone(Vec<String>),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// Which verifier to revoke or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierRemoval {
    pub account: AccountId,
    pub which: VerifierSelector,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifierRemoveOutcome {
    /// The verifier as it was.
    Gone(Box<Verifier>),
    Unknown,
    /// Live templates were published with it, so it stays; their names.
    Serving(Vec<String>),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// Selects runs, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierRunFilter {
    pub verifier_id: Option<String>,
    pub version: Option<u32>,
    pub verdict: Option<VerifierRunVerdict>,
    pub purpose: Option<VerifierRunPurpose>,
    /// Started at this time or later.
    pub since: Option<Timestamp>,
    /// Started before this time.
    pub until: Option<Timestamp>,
    pub limit: u32,
    /// Starts after this run, towards older ones.
    pub before: Option<String>,
}

/// A cached verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedVerdict {
    /// The digest of everything that the judge was given.
    pub digest: String,
    pub document: Value,
    pub at: Timestamp,
}

/// Selects the cached verdicts to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictPruning {
    /// Those from before this time.
    pub before: Timestamp,
    /// All but this many of the newest.
    pub most: u32,
    /// At most this many in one transaction, so that no other write waits long.
    pub limit: u32,
}
