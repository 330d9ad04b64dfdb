//! The storage of accounts: its size, the texts beside decisions, and the pruning of old rows.
//! Decision entries and the ledger are never pruned.

pub(crate) mod gone;

use jurat_core::{
    id::{AccountId, RoundId},
    round::{RetainedRequest, RoundRequest},
    time::Timestamp,
};

use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// The storage of accounts, and its retention.
    pub struct StorageOps = store.storage();
    reads {
        /// The stored bytes of the account that count towards its quota.
        fn bytes(account: &AccountId) -> StorageUsage = bytes;
        /// The first account after this text that has stored anything.
        fn account_after(after: &str) -> Option<AccountId> = account_after;
        /// The request that is kept beside the decision of a round.
        fn retained(of: &RoundKey) -> RetainedRequest = kept;
        /// The requests of some rounds, in one line each; rounds without a kept request are left
        /// out.
        fn request_lines(of: &RoundKeys) -> Vec<(RoundId, String)> = lines;
        /// The number of rows that would be pruned, counted up to the limit.
        fn prunable(pruning: &PruneOrder) -> PruneCounts = gone::count;
    }
    changes {
        /// Sums up the counts of an account, so that they are read quickly.
        fn sum(account: &AccountId) -> () = sum;
        /// Prunes old rows of one account, up to the limit for each kind.
        fn prune(pruning: &PruneOrder) -> PruneCounts = gone::prune_some;
    }
    writes {
        /// Erases the texts of an ended round; its decision stays. Returns when it was erased,
        /// which may be earlier.
        fn erase_round(erasing: &RoundErasure) -> Timestamp, or ErasureRefusal = gone::erase;
    }
}

/// The size of an account's storage.
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
    /// It has not ended, and its texts are still needed.
    Open,
}

/// Selects the rows of an account to prune.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneOrder {
    pub account: AccountId,
    pub at: Timestamp,
    /// Answers under idempotency keys that were recorded before this time.
    pub answers_before: Timestamp,
    /// Texts of rounds that ended before this time.
    pub texts_before: Timestamp,
    /// Tasks and runs that ended before this time.
    pub events_before: Timestamp,
    /// Agent events added before this time, which are only counted here: they have an operation of
    /// their own.
    pub agent_events_before: Timestamp,
    /// Webhook deliveries added before this time, which are only counted here, too.
    pub deliveries_before: Timestamp,
    pub limit: u32,
}

/// The numbers of pruned rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneCounts {
    /// Answers under idempotency keys.
    pub answers: u64,
    /// Rounds whose request, outputs and texts were erased.
    pub rounds: u64,
    /// Tasks whose contracts, candidates, ballots and events were removed.
    pub tasks: u64,
    /// Runs whose specs, results and events were reduced to a skeleton.
    pub runs: u64,
    /// Agent events.
    pub agent_events: u64,
    /// Webhook deliveries.
    pub webhook_deliveries: u64,
}

impl PruneCounts {
    /// The largest of the numbers.
    pub fn most(&self) -> u64 {
        let of_work = [self.answers, self.rounds, self.tasks, self.runs];
        let of_messages = [self.agent_events, self.webhook_deliveries];
        of_work.into_iter().chain(of_messages).max().unwrap_or_default()
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            answers: self.answers + other.answers,
            rounds: self.rounds + other.rounds,
            tasks: self.tasks + other.tasks,
            runs: self.runs + other.runs,
            agent_events: self.agent_events + other.agent_events,
            webhook_deliveries: self.webhook_deliveries + other.webhook_deliveries,
        }
    }
}

// An account without a row has stored nothing, and the sum is null.
const BYTES: &str = "\
    select cast($1 as text) as id, cast(coalesce(sum(bytes), 0) as bigint) as bytes, \
    count(*) as parts from account_storage where account_id = $1";
/// A caller that adds to the storage of another account sees whether there is room, but no numbers.
const STORED: (&str, &str) = (BYTES, "select cast($1 as text) as id, jurat_stored($1) as bytes");
/// SQLite has one number for each account. PostgreSQL skips counts that another transaction sums
/// up.
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

async fn bytes(tx: &mut Tx<'_>, account: &AccountId) -> Result<StorageUsage> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "account_storage", "id")?;
        let bytes = u64::try_from(columns.number("bytes")?).unwrap_or(0);
        Ok(StorageUsage { bytes, parts: columns.count("parts")? })
    };
    Ok(tx.first(BYTES, args![account], read).await?.unwrap_or(StorageUsage { bytes: 0, parts: 0 }))
}

/// Whether the account may store more, checked in the transaction that stores it. The operator's
/// own account always may.
pub(crate) async fn room(
    tx: &mut Tx<'_>,
    account: &AccountId,
    quota_bytes: u64,
) -> Result<Result<(), StorageFull>> {
    if *account == AccountId::admin() {
        return Ok(Ok(()));
    }
    let read = |cells: &dyn DbRow| RowReader::new(cells, "account_storage", "id")?.number("bytes");
    let bytes = tx.first(tx.own(STORED), args![account], read).await?;
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    if bytes < quota_bytes {
        return Ok(Ok(()));
    }
    Ok(Err(StorageFull { account: account.clone(), bytes, quota_bytes }))
}

async fn sum(tx: &mut Tx<'_>, account: &AccountId) -> Result<()> {
    tx.run(tx.own(SUM), args![account]).await.map(drop)
}

async fn account_after(tx: &mut Tx<'_>, after: &str) -> Result<Option<AccountId>> {
    let read = |cells: &dyn DbRow| {
        RowReader::new(cells, "account_storage", "id")?.id("id", AccountId::parse)
    };
    tx.first(ACCOUNT_AFTER, args![after], read).await
}

async fn kept(tx: &mut Tx<'_>, of: &RoundKey) -> Result<RetainedRequest> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "round_payloads", "id")?;
        let request = columns.maybe_text("request")?;
        let asked = columns.maybe_text("asked")?.map(|line| RoundRequest { line, request });
        Ok(RetainedRequest { asked, erased_at: columns.maybe_time("erased_at")? })
    };
    let args = args![&of.account, of.round.as_str()];
    Ok(tx.first(KEPT, args, read).await?.unwrap_or_default())
}

async fn lines(tx: &mut Tx<'_>, of: &RoundKeys) -> Result<Vec<(RoundId, String)>> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "round_payloads", "id")?;
        Ok((columns.id("id", RoundId::parse)?, columns.text("asked")?))
    };
    let ids: Vec<&str> = of.rounds.iter().map(RoundId::as_str).collect();
    tx.all(tx.own(LINES), args![&of.account, crate::db::row::json(&ids)?], read).await
}

/// The statements that read large tables, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[(KEPT, KEPT), LINES];
