//! Counts stored bytes, stores payloads besides the decisions of rounds, and prunes old data.
//! Decision entries and the ledger are never removed.

pub(crate) mod gone;

use std::convert::Infallible;

use jurat_core::{
    id::{AccountId, RoundId},
    round::{RetainedRequest, RoundRequest},
    time::Timestamp,
};

use crate::{
    Result,
    db::{
        rows::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// The stored data of accounts, and how long it is kept.
    pub trait StorageOps;
    reads {
        /// How much the account has stored, as far as it counts.
        fn storage_bytes(account: &AccountId) -> StorageUsage = bytes;
        /// The next account with stored data after this text.
        fn storage_account(after: &str) -> Option<AccountId> = account_after;
        /// The stored payload of a round besides its decision.
        fn round_kept(of: &RoundKey) -> RetainedRequest = kept;
        /// The requests of some rounds, in one line each; rounds without a stored request are left
        /// out.
        fn round_lines(of: &RoundKeys) -> Vec<(RoundId, String)> = lines;
        /// How much would be pruned, counted up to the limit.
        fn prunable(pruning: &PruneOrder) -> PruneCounts = gone::count;
    }
    writes {
        /// Erases the request and the answers of an ended round; its decision stays. Returns when
        /// it was erased, which may be earlier.
        fn round_erase(erasing: &RoundErasure) -> Timestamp, or ErasureRefusal = gone::erase;
        /// Merges the counts of an account, so that the total is read quickly.
        fn storage_sum(account: &AccountId) -> (), or Infallible = sum;
        /// Prunes the old data of one account, of each kind no more than the limit.
        fn prune(pruning: &PruneOrder) -> PruneCounts, or Infallible = gone::prune_some;
    }
}

/// How much an account has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageUsage {
    pub bytes: u64,
    /// The number of counts in the sum.
    pub parts: u64,
}

/// An account has reached its quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageFull {
    pub account: AccountId,
    pub bytes: u64,
    pub quota_bytes: u64,
}

/// A round of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundKey {
    pub account: AccountId,
    pub round: RoundId,
}

/// Some rounds of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundKeys {
    pub account: AccountId,
    pub rounds: Vec<RoundId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundErasure {
    pub account: AccountId,
    pub round: RoundId,
    pub at: Timestamp,
}

/// Why nothing was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureRefusal {
    /// There is no such round.
    Unknown,
    /// It is open, and its answers are still needed.
    Open,
}

/// Selects the rows of an account to prune.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneOrder {
    pub account: AccountId,
    pub at: Timestamp,
    /// Replies under idempotency keys recorded before this time.
    pub answers_before: Timestamp,
    /// Requests and answers of rounds that ended before this time.
    pub texts_before: Timestamp,
    /// Tasks and runs that ended before this time.
    pub events_before: Timestamp,
    /// Agent events added before this time, which are only counted here: they have an operation of
    /// their own.
    pub agent_events_before: Timestamp,
    pub limit: u32,
}

/// How much was pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneCounts {
    /// Replies under idempotency keys.
    pub answers: u64,
    /// Rounds whose request, outputs and texts were erased.
    pub rounds: u64,
    /// Tasks whose contracts, candidates, ballots and events were removed.
    pub tasks: u64,
    /// Runs whose specs, results and events were reduced to a skeleton.
    pub runs: u64,
    /// Agent events.
    pub agent_events: u64,
}

impl PruneCounts {
    /// The largest of the numbers.
    pub fn most(&self) -> u64 {
        let all = [self.answers, self.rounds, self.tasks, self.runs, self.agent_events];
        all.into_iter().max().unwrap_or_default()
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            answers: self.answers + other.answers,
            rounds: self.rounds + other.rounds,
            tasks: self.tasks + other.tasks,
            runs: self.runs + other.runs,
            agent_events: self.agent_events + other.agent_events,
        }
    }
}

// Without a row nothing is stored, and the sum is null.
const BYTES: &str = "\
    select cast($1 as text) as id, cast(coalesce(sum(bytes), 0) as bigint) as bytes, \
    count(*) as parts from account_storage where account_id = $1";
/// An account that adds to another's object does not see the other's numbers, only whether there is
/// room.
const STORED: (&str, &str) = (BYTES, "select cast($1 as text) as id, jurat_stored($1) as bytes");
/// SQLite has one number for each account. Counts that a concurrent transaction merges are left to
/// it.
const SUM: (&str, &str) = (
    "update account_storage set bytes = bytes where account_id = $1",
    "with gone as (delete from account_storage where ctid = any (array( \
     select ctid from account_storage where account_id = $1 for update skip locked)) \
     returning bytes) insert into account_storage (account_id, bytes) \
     select $1, sum(bytes) from gone having 0 < count(*)",
);
const ACCOUNT_AFTER: &str = "\
    select account_id as id from account_storage where account_id > $1 \
    order by account_id limit 1";
const KEPT: &str = "\
    select rounds.id, rounds.erased_at, round_payloads.asked, round_payloads.request from rounds \
    left join round_payloads on round_payloads.account_id = rounds.account_id \
    and round_payloads.round_id = rounds.id \
    where rounds.account_id = $1 and rounds.id = $2";
const LINES: (&str, &str) = (
    "select round_id as id, asked from round_payloads where account_id = $1 \
     and round_id in (select value from json_each($2))",
    "select round_id as id, asked from round_payloads where account_id = $1 \
     and round_id in (select value from json_array_elements_text($2::json))",
);

async fn bytes(tx: &mut impl Tx, account: &AccountId) -> Result<StorageUsage> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(&cells, "account_storage", "id")?;
        let bytes = u64::try_from(columns.number("bytes")?).unwrap_or(0);
        Ok(StorageUsage { bytes, parts: columns.count("parts")? })
    };
    Ok(tx.first(BYTES, args![account], read).await?.unwrap_or(StorageUsage { bytes: 0, parts: 0 }))
}

/// Whether the account may store more, checked in the transaction that stores it. The operator's
/// own account always may.
pub(crate) async fn room(
    tx: &mut impl Tx,
    account: &AccountId,
    quota_bytes: u64,
) -> Result<Result<(), StorageFull>> {
    if *account == AccountId::admin() {
        return Ok(Ok(()));
    }
    let read = |cells: &dyn DbRow| RowReader::new(&cells, "account_storage", "id")?.number("bytes");
    let bytes = tx.first(tx.own(STORED), args![account], read).await?;
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    if bytes < quota_bytes {
        return Ok(Ok(()));
    }
    Ok(Err(StorageFull { account: account.clone(), bytes, quota_bytes }))
}

async fn sum(tx: &mut impl Tx, account: &AccountId) -> Result<Result<(), Infallible>> {
    tx.run(tx.own(SUM), args![account]).await.map(|_| Ok(()))
}

async fn account_after(tx: &mut impl Tx, after: &str) -> Result<Option<AccountId>> {
    let read = |cells: &dyn DbRow| {
        RowReader::new(&cells, "account_storage", "id")?.id("id", AccountId::parse)
    };
    tx.first(ACCOUNT_AFTER, args![after], read).await
}

async fn kept(tx: &mut impl Tx, of: &RoundKey) -> Result<RetainedRequest> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(&cells, "round_payloads", "id")?;
        let request = columns.maybe_text("request")?;
        let asked = columns.maybe_text("asked")?.map(|line| RoundRequest { line, request });
        Ok(RetainedRequest { asked, erased_at: columns.maybe_time("erased_at")? })
    };
    let args = args![&of.account, of.round.as_str()];
    Ok(tx.first(KEPT, args, read).await?.unwrap_or_default())
}

async fn lines(tx: &mut impl Tx, of: &RoundKeys) -> Result<Vec<(RoundId, String)>> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(&cells, "round_payloads", "id")?;
        Ok((columns.id("id", RoundId::parse)?, columns.text("asked")?))
    };
    let ids: Vec<&str> = of.rounds.iter().map(RoundId::as_str).collect();
    tx.all(tx.own(LINES), args![&of.account, crate::db::rows::json(&ids)?], read).await
}

/// The statements that read large tables, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(KEPT, KEPT), LINES];
