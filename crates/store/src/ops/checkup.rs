//! The state of a store, for its operator.

use jurat_core::{
    id::{AccountId, RoundId},
    round::{ClosingSummary, Round},
    time::Timestamp,
};

/// How many faults of a kind are named; one is enough to act on.
pub(crate) const MOST_FAULTS: i64 = 20;

/// The state of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCheckup {
    pub schema_version: i64,
    /// The version that this program is written for.
    pub schema_needed: i64,
    /// Damage that the database itself finds, one line each.
    pub faults: Vec<String>,
    /// Settings of the database that put acknowledged data at risk, one line each.
    pub risks: Vec<String>,
    /// The clock of the database, if it has one of its own.
    pub clock: Option<Timestamp>,
    /// When the newest round was opened.
    pub newest: Option<Timestamp>,
    pub ended_rounds: u64,
    /// Rounds that have an entry although they are open or missing.
    pub strays: Vec<String>,
}

/// A page of the ended rounds, by account and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRoundsQuery {
    /// Starts after this round.
    pub after: Option<(AccountId, RoundId)>,
    /// Skips older rounds.
    pub since: Option<RoundId>,
    pub limit: u32,
}

/// Everything stored about an ended round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundRecord {
    pub round: Round,
    /// Its form in lists.
    pub listed: ClosingSummary,
    /// The receipt of its entry.
    pub entry_receipt_id: String,
    /// When its answers were erased, together with their verifier.
    pub erased_at: Option<Timestamp>,
}
