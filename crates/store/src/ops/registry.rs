//! What the registry is asked to do with verifiers, and what came of it.

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

/// A version to be deployed: the first of a verifier, or the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVerifierVersion {
    pub account: AccountId,
    pub name: String,
    pub description: String,
    pub config: VerifierConfig,
    /// Must be the current token of a verifier that is there, and left out for a new one.
    pub expected_token: Option<String>,
    /// The identifier of a new verifier.
    pub new_id: String,
    pub new_token: String,
    /// How many bytes its owner may have stored, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeployOutcome {
    Done(DeployedVersion),
    /// The owner of the verifier has stored as much as it may.
    Full(StorageFull),
    /// There is such a verifier, and no token was given.
    TokenMissing {
        current: String,
    },
    /// Somebody else deployed meanwhile.
    TokenStale {
        current: String,
    },
    /// A token was given, and there is no such verifier.
    TokenUnexpected,
    /// The name belongs to a verifier that was revoked.
    NameRevoked,
    /// The token is that of no verifier with the name that the caller accepted; these full names lead
    /// to those of others.
    TokenOfNone(Vec<String>),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// Which verifier to revoke or to delete.
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
    /// Live templates were published with it, and it stays; their names.
    Serving(Vec<String>),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierRunFilter {
    pub verifier_id: Option<String>,
    pub version: Option<u32>,
    pub verdict: Option<VerifierRunVerdict>,
    pub purpose: Option<VerifierRunPurpose>,
    /// Begun at this time or later.
    pub since: Option<Timestamp>,
    /// Begun before this time.
    pub until: Option<Timestamp>,
    pub limit: u32,
    /// Starts behind this run, towards older ones.
    pub before: Option<String>,
}

/// A verdict that a judge gave before.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedVerdict {
    /// Of all that the judge was given.
    pub digest: String,
    pub document: Value,
    pub at: Timestamp,
}

/// Which known verdicts are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictPruning {
    /// Those from before this time.
    pub before: Timestamp,
    /// All but so many of the newest.
    pub most: u32,
    /// At most so many at once, so that no other write waits long.
    pub limit: u32,
}
