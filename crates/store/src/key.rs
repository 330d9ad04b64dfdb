//! An API key as it is kept: its secret only as a hash.

use std::{collections::BTreeSet, fmt};

use jurat_core::{caller::Scope, id::AccountId, time::Timestamp};

#[derive(Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: String,
    pub account: AccountId,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    pub scopes: BTreeSet<Scope>,
    pub name: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

impl fmt::Debug for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRecord")
            .field("id", &self.id)
            .field("account", &self.account)
            .field("scopes", &self.scopes)
            .field("revoked_at", &self.revoked_at)
            .finish_non_exhaustive()
    }
}
