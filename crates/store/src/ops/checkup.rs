//! What a store says of its own state, for those who look after it.

use jurat_core::{
    id::{AccountId, RoundId},
    round::{ClosingSummary, Round},
    time::Timestamp,
};

/// How many faults of a kind are named; one is enough to act on.
pub(crate) const MOST_FAULTS: i64 = 20;

/// How the database stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCheckup {
    pub schema_version: i64,
    /// The version that this program is written for.
    pub schema_needed: i64,
    /// What the database itself finds damaged, a line each.
    pub faults: Vec<String>,
    /// Settings of the database that put at risk what was acknowledged, a line each.
    pub risks: Vec<String>,
    /// Now by the clock of the database, where that has one of its own.
    pub clock: Option<Timestamp>,
    /// When the newest round was opened.
    pub newest: Option<Timestamp>,
    pub ended_rounds: u64,
    /// Rounds that have an entry and have not ended, or are not there.
    pub strays: Vec<String>,
}

/// A part of the rounds that have ended, by account and identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRoundsQuery {
    /// Starts behind this round.
    pub after: Option<(AccountId, RoundId)>,
    /// Leaves out older rounds.
    pub since: Option<RoundId>,
    pub limit: u32,
}

/// All that is stored of a round that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundRecord {
    pub round: Round,
    /// What lists show of it.
    pub listed: ClosingSummary,
    /// By which its entry is found.
    pub entry_receipt_id: String,
    /// When what was said in it was erased, with the verifier that it was a run of.
    pub erased_at: Option<Timestamp>,
}
