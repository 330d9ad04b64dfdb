//! Rounds: opened before any call is sent, closed with their decision, taken over and listed.

mod close;
mod list;
mod open;
pub(crate) mod rows;

use const_format::concatcp;
use jurat_core::{
    id::{AccountId, NodeId, RoundId},
    round::{OpenRound, Round, RoundClosing, RoundFilter, RoundStatus, RoundSummary},
    time::Timestamp,
};

use self::rows::{
    ClosingRow, OPEN_COLUMNS, REPLICA_COLUMNS, RoundRow, read_id, read_key, read_replica,
    read_round, read_taken_over,
};
use crate::{
    Behalf, IdempotencyRecord, Result, WriteOutcome,
    db::{
        idempotency::Note,
        row::read_name,
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Rounds and their decision entries.
    pub struct RoundOps = store.rounds();
    reads {
        fn get(account: &AccountId, id: &RoundId) -> Option<Round> = get;
        /// The first answered round of a task call's execution.
        fn of_task_call(account: &AccountId, execution_id: &str) -> Option<Round> = of_task_call;
        /// The account's rounds, newest first. Shares are rounded to four digits here.
        fn list(account: &AccountId, filter: &RoundFilter) -> Vec<RoundSummary> = list::list;
        /// How many of the newest rounds match.
        fn count(account: &AccountId, filter: &RoundCount) -> u32 = list::count;
        /// The open rounds of a node that were cancelled.
        fn cancelled(node: &NodeId) -> Vec<(AccountId, RoundId)> = cancelled;
        /// The canonical decision entry with this digest.
        fn entry(account: &AccountId, receipt_id: &str) -> Option<String> = entry;
    }
    changes {
        /// Takes over open rounds that their nodes abandoned; a late close by such a node has no
        /// effect. An unreadable round is logged and stays open, and does not hinder the others.
        fn take_over(claim: &RoundTakeover) -> Vec<OpenRound> = take_over;
        /// Asks the node of a round to cancel it; `false` if the round is not open.
        fn cancel(account: &AccountId, id: &RoundId, at: &Timestamp) -> bool = cancel;
    }
}

impl RoundOps<'_> {
    /// Records a round before any call is sent. PostgreSQL keeps the length of the lease
    /// (`lease_until` − `opened_at`) and starts it now by its own clock. The round's verifier run
    /// and the credit that it holds are recorded with it.
    pub async fn open(
        self,
        behalf: &Behalf,
        round: &OpenRound,
        idempotency: Option<&IdempotencyRecord<RoundOpening>>,
    ) -> Result<WriteOutcome<RoundOpening, RoundOpenRefusal>> {
        // Encoded here, because SQLite has only one thread that writes.
        let row = RoundRow::new(round)?;
        let name = ("rounds", "open");
        // Most rounds have no key, and one statement needs no transaction.
        if idempotency.is_none() && row.is_alone() {
            let insert = Box::pin(self.0.statement(name, behalf, move |tx| {
                Box::pin(async move { open::insert(tx, &row).await })
            }));
            return insert.await.map(|()| WriteOutcome::Done(RoundOpening::Whole));
        }
        let note = idempotency.map(|record| Note::of_round(record, &round.id));
        let open = Box::pin(self.0.write_noted(name, behalf, note, move |tx| {
            Box::pin(async move { open::open(tx, row).await })
        }));
        open.await
    }

    /// Ends a round with its replicas, its decision and its entry, if it is open and the lease
    /// token of `round` still holds. Its verifier run ends with it. The cost is captured from the
    /// credit that the round holds, and the rest is released. The execution of a task call is paid
    /// for once: if another of its rounds captured the cost, this one costs nothing.
    pub async fn close(
        self,
        behalf: &Behalf,
        round: &OpenRound,
        closing: &RoundClosing,
    ) -> Result<WriteOutcome<RoundCharge, RoundLost>> {
        let row = ClosingRow::new(round, closing)?;
        let name = ("rounds", "close");
        if row.is_alone() {
            let end = Box::pin(self.0.statement(name, behalf, move |tx| {
                Box::pin(async move { close::end(tx, row).await })
            }));
            return Ok(if end.await? {
                WriteOutcome::Done(RoundCharge::Own)
            } else {
                WriteOutcome::Refused(RoundLost)
            });
        }
        let close = Box::pin(self.0.write(name, behalf, None, move |tx| {
            Box::pin(async move { close::close(tx, row).await })
        }));
        close.await
    }
}

/// The hold with which a round was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundOpening {
    /// The round holds the amount that it asked for.
    Whole,
    /// The round holds the whole balance of the account, which is less than it asked for.
    WithLess { held_micros: i64 },
}

/// Why a round was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundOpenRefusal {
    /// The credit of the account covers one call at a time, and another is in progress.
    InTurn,
    /// The account lacks the credit that the round would hold.
    Overdrawn { available_micros: i64 },
    /// The verifier of the round's run was deleted in the meantime.
    VerifierGone,
    /// The daily limit for visitors is spent or reserved.
    DaySpent,
}

/// The cost of a closed round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundCharge {
    /// Its own cost.
    Own,
    /// Nothing: another round of the same execution was paid for.
    PaidBefore,
}

/// Another node ended the round or took it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundLost;

/// The rounds to count; those of tasks are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundCount {
    pub state: Option<RoundStatus>,
    /// Opened or ended at this time or later.
    pub updated_since: Option<Timestamp>,
    /// How many of the newest rounds are looked at.
    pub among: u32,
}

/// The rounds to take over, the new node, and its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundTakeover {
    pub node: NodeId,
    /// Fences out the former holders.
    pub lease_token: u64,
    pub lease_until: Timestamp,
    pub now: Timestamp,
    pub limit: u32,
    pub orphans: TakeoverScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverScope {
    /// Rounds whose lease is over.
    LeaseOver,
    /// Every open round of another node. Only for SQLite under the exclusive lock, where no other
    /// node can be alive; PostgreSQL treats it as `LeaseOver`.
    All,
}

/// Greater than any identifier, so that a list without a start begins at its end.
pub(crate) const AFTER_ALL: &str = "\u{7f}";

/// Maximum number of tries of a takeover that finds only unreadable rounds. Each try leases the
/// rounds that it finds, so the next one finds others.
const TAKEOVER_TRIES: usize = 16;

/// The clock of PostgreSQL. The clocks of nodes may differ, so the database measures all leases. As
/// a subquery it is read once for each statement.
const CLOCK: &str = "(select (extract(epoch from clock_timestamp()) * 1000000)::bigint)";

/// With the columns of a closed round; the replicas are read separately.
const GET: &str = concatcp!(
    "select ",
    OPEN_COLUMNS,
    ", rounds.state, rounds.closed_at, rounds.outcome, rounds.consensus, rounds.receipt_id, \
     entries.entry from rounds left join entries \
     on entries.account_id = rounds.account_id and entries.round_id = rounds.id \
     where rounds.account_id = $1 and rounds.id = $2"
);
const REPLICAS: &str = concatcp!(
    "select ",
    REPLICA_COLUMNS,
    " from replicas where account_id = $1 and round_id = $2 order by position"
);
const OF_TASK_CALL: (&str, &str) = (
    "select id from rounds where account_id = $1 and step is not null \
     and json_extract(step, '$.execution_id') = $2 and state = 'closed' and outcome <> 'failed' \
     order by closed_at, id limit 1",
    "select id from rounds where account_id = $1 and step is not null \
     and step::json ->> 'execution_id' = $2 and state = 'closed' and outcome <> 'failed' \
     order by closed_at, id limit 1",
);
const CANCEL: &str = "\
    update rounds set cancel_requested_at = $1 \
    where account_id = $2 and id = $3 and state = 'open'";
const CANCELLED: &str = "\
    select account_id, id from rounds \
    where node_id = $1 and state = 'open' and cancel_requested_at is not null";
const ENTRY: &str = "select entry as name from entries where account_id = $1 and receipt_id = $2";

// Only one process uses the file, so its own clock measures the leases of SQLite.
const TAKE_OVER_LAPSED: (&str, &str) = (
    concatcp!(
        "update rounds set node_id = $1, lease_token = $2, lease_until = $3 + $4 where rowid in ( \
         select rowid from rounds where state = 'open' and lease_until <= $4 \
         order by lease_until limit $5) returning ",
        OPEN_COLUMNS
    ),
    TAKE_OVER_POSTGRES,
);
const TAKE_OVER_ALL: (&str, &str) = (
    concatcp!(
        "update rounds set node_id = $1, lease_token = $2, lease_until = $3 + $4 where rowid in ( \
         select rowid from rounds where state = 'open' and node_id <> $1 \
         order by lease_until limit $5) returning ",
        OPEN_COLUMNS
    ),
    TAKE_OVER_POSTGRES,
);
/// Skips rounds that another node is taking over. The time of the node, `$4`, is not used.
const TAKE_OVER_POSTGRES: &str = concatcp!(
    "with late as materialized ( \
     select account_id, id from rounds where state = 'open' and lease_until <= ",
    CLOCK,
    " order by lease_until limit $5 for update skip locked \
     ) update rounds set node_id = $1, lease_token = $2, lease_until = ",
    CLOCK,
    " + $3 from late where rounds.account_id = late.account_id and rounds.id = late.id \
     and $4::bigint is not null returning ",
    OPEN_COLUMNS
);

async fn get(tx: &mut Tx<'_>, account: &AccountId, id: &RoundId) -> Result<Option<Round>> {
    match tx.first(GET, args![account, id.as_str()], read_round).await? {
        Some(round) => with_replicas(tx, round).await.map(Some),
        None => Ok(None),
    }
}

async fn of_task_call(
    tx: &mut Tx<'_>,
    account: &AccountId,
    execution_id: &str,
) -> Result<Option<Round>> {
    match tx.first(tx.own(OF_TASK_CALL), args![account, execution_id], read_id).await? {
        Some(id) => get(tx, account, &id).await,
        None => Ok(None),
    }
}

/// Adds the replicas to a round that has ended.
pub(super) async fn with_replicas(tx: &mut Tx<'_>, mut round: Round) -> Result<Round> {
    if let Some(closing) = &mut round.closing {
        let args = args![&round.open.account, round.open.id.as_str()];
        closing.replicas = tx.all(REPLICAS, args, read_replica).await?;
    }
    Ok(round)
}

async fn take_over(tx: &mut Tx<'_>, claim: &RoundTakeover) -> Result<Vec<OpenRound>> {
    let texts = match claim.orphans {
        TakeoverScope::LeaseOver => TAKE_OVER_LAPSED,
        TakeoverScope::All => TAKE_OVER_ALL,
    };
    let lease = claim.lease_until.micros().saturating_sub(claim.now.micros());
    for _ in 0..TAKEOVER_TRIES {
        let token = claim.lease_token.cast_signed();
        let args = args![claim.node.as_str(), token, lease, claim.now, claim.limit];
        let found = tx.all(tx.own(texts), args, read_taken_over).await?;
        let is_last = found.is_empty();
        let readable: Vec<OpenRound> = found.into_iter().flatten().collect();
        if is_last || !readable.is_empty() {
            return Ok(readable);
        }
    }
    Ok(Vec::new())
}

async fn cancel(
    tx: &mut Tx<'_>,
    account: &AccountId,
    id: &RoundId,
    at: &Timestamp,
) -> Result<bool> {
    Ok(tx.run(CANCEL, args![*at, account, id.as_str()]).await? == 1)
}

async fn cancelled(tx: &mut Tx<'_>, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>> {
    tx.all(CANCELLED, args![node.as_str()], read_key).await
}

async fn entry(tx: &mut Tx<'_>, account: &AccountId, receipt_id: &str) -> Result<Option<String>> {
    tx.first(ENTRY, args![account, receipt_id], read_name).await
}
