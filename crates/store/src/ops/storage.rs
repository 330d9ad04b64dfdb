//! How much an account has stored, what is kept beside the decisions of rounds, and what goes when it
//! is old. Decision entries and the ledger never go.

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
    /// What accounts have in the store, and for how long.
    pub trait StorageOps;
    reads {
        /// How much the account has stored, as far as it counts.
        fn storage_bytes(account: &AccountId) -> StorageUsage = bytes;
        /// The account with something stored that comes next behind this text.
        fn storage_account(after: &str) -> Option<AccountId> = account_after;
        /// What is kept of a round beside its decision.
        fn round_kept(of: &RoundKey) -> RetainedRequest = kept;
        /// What was asked in some rounds, in one line each; rounds of which nothing is kept are
        /// left out.
        fn round_lines(of: &RoundKeys) -> Vec<(RoundId, String)> = lines;
        /// How much would go, counted up to the limit.
        fn prunable(pruning: &PruneOrder) -> PruneCounts = gone::count;
    }
    writes {
        /// Erases what was asked and said in a round that has ended; its decision stays. Returns
        /// when it was erased, which may be earlier.
        fn round_erase(erasing: &RoundErasure) -> Timestamp, or ErasureRefusal = gone::erase;
        /// Sums up what was counted of an account, so that it is read quickly.
        fn storage_sum(account: &AccountId) -> (), or Infallible = sum;
        /// Removes what is old of one account, of each kind no more than the limit.
        fn prune(pruning: &PruneOrder) -> PruneCounts, or Infallible = gone::prune_some;
    }
}

/// How much an account has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageUsage {
    pub bytes: u64,
    /// Of so many numbers it is the sum.
    pub parts: u64,
}

/// That an account has stored as much as it may.
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
    /// It has not ended, and what is said in it is still needed.
    Open,
}

/// Which of an account's rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneOrder {
    pub account: AccountId,
    pub at: Timestamp,
    /// Answers under idempotency keys that were noted before.
    pub answers_before: Timestamp,
    /// What was asked and said in rounds that ended before.
    pub texts_before: Timestamp,
    /// Tasks and runs that ended before.
    pub events_before: Timestamp,
    /// Events to executors that were added before, which are only counted here: they have an
    /// operation of their own.
    pub agent_events_before: Timestamp,
    pub limit: u32,
}

/// How much went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneCounts {
    /// Answers under idempotency keys.
    pub answers: u64,
    /// Rounds whose request, outputs and texts are erased.
    pub rounds: u64,
    /// Tasks whose contracts, candidates, ballots and events are removed.
    pub tasks: u64,
    /// Runs of whose specs, results and events a skeleton is left.
    pub runs: u64,
    /// Events to executors.
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

// Without a row there is nothing stored, and the sum is null.
const BYTES: &str = "\
    select cast($1 as text) as id, cast(coalesce(sum(bytes), 0) as bigint) as bytes, \
    count(*) as parts from account_storage where account_id = $1";
/// Who adds to what is another's does not see its numbers, but whether there is room.
const STORED: (&str, &str) = (BYTES, "select cast($1 as text) as id, jurat_stored($1) as bytes");
/// SQLite has one number for each account. What others sum up at the same time is left to them.
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

/// Whether the account may store more, asked in the transaction that is to store it. The operator's
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

/// The texts that read large tables, for a look at how the databases read.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(KEPT, KEPT), LINES];
