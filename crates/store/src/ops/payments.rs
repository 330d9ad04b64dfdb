//! Payments for single requests: each authorization is used once, and its settlement is finished by
//! whichever process is there.

use const_format::concatcp;
use jurat_core::{
    id::{AccountId, PaymentId, RoundId},
    idempotency::SavedAnswer,
    payment::{
        record::{Payment, PaymentKey},
        state::PaymentState,
    },
    time::Timestamp,
};

use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, read_number},
        tx::{Tx, args, of_found, operations},
    },
};

operations! {
    /// Payments for single requests.
    pub struct PaymentOps = store.payments();
    reads {
        /// A payment of any account.
        fn get(id: &PaymentId) -> Option<Payment> = get;
        /// The payment that used an authorization.
        fn of_authorization(key: &PaymentKey) -> Option<Payment> = of_authorization;
        /// The payment that has the payer's own name, unless it failed for good.
        fn of_identifier(account: &AccountId, identifier: &str) -> Option<Payment> = of_identifier;
        /// Whether an account has a settled payment on record.
        fn has_paid(account: &AccountId) -> bool = has_paid;
        /// The payments of all accounts whose settlement is not known.
        fn counts() -> PaymentCounts = counts;
    }
    changes {
        /// Stores the reply and the intent to settle. Returns `false` if the payment is no longer
        /// reserved.
        fn settle(settling: &PaymentSettling) -> bool = settle;
        /// Takes payments whose settlement is due, so that no other process tries at the same time.
        fn take_due(take: &PaymentTake) -> Vec<Payment> = take_due;
        /// Makes payments due that a stopped process had taken or was settling. Only for a process that is alone.
        fn take_over(now: &Timestamp) -> u64 = take_over;
        /// Records that a payment was settled, whoever found out. Returns `false` if it was known.
        fn settled(end: &PaymentEnd) -> bool = settled;
        /// Records an attempt that did not settle the payment. Returns `false` if another process
        /// has taken the payment since, or knows more.
        fn unsettled(end: &PaymentUnsettled) -> bool = unsettled;
        /// Gives a reserved authorization back, for which nothing was sent to be settled.
        fn release(account: &AccountId, id: &PaymentId) -> bool = release;
        /// Removes old payments that have ended or were never sent to be settled, and first the
        /// replies of those that were settled. Returns how many changed; 0 means that nothing is
        /// left.
        fn prune(pruning: &PaymentPruning) -> u64 = prune;
    }
    writes {
        /// Sets an authorization aside for one request, and creates the account of its payer.
        fn reserve(new: &NewPayment) -> (), or PaymentRefusal = reserve;
    }
}

/// A payment that is about to be reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPayment {
    pub payment: Payment,
    /// How many payments of the account may be in settlement, unknown while their authorization
    /// ends after `good_since`, or reserved since `young_since`.
    pub most_open: u32,
    pub young_since: Timestamp,
    pub good_since: Timestamp,
}

/// Why a payment was not reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentRefusal {
    /// The authorization was used, or the payer's own name for the payment.
    Known,
    /// Too many payments of the account are in progress or unknown.
    TooManyOpen,
}

/// The reply to a paid request, and the intent to settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentSettling {
    pub account: AccountId,
    pub id: PaymentId,
    pub round: RoundId,
    pub answer: SavedAnswer,
    pub lease_token: u64,
    /// When another process may try.
    pub next_at: Timestamp,
    pub now: Timestamp,
}

/// A search for payments whose settlement is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentTake {
    pub lease_token: u64,
    /// When another process may try.
    pub next_at: Timestamp,
    pub now: Timestamp,
    pub limit: u32,
}

/// The proof of a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentEnd {
    pub account: AccountId,
    pub id: PaymentId,
    pub transaction: String,
    pub now: Timestamp,
}

/// An attempt that did not settle a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentUnsettled {
    pub account: AccountId,
    pub id: PaymentId,
    pub lease_token: u64,
    /// `unknown` or `failed_final`.
    pub state: PaymentState,
    /// The transaction that the facilitator named, if it ever did.
    pub transaction: Option<String>,
    pub reason: String,
    /// Attempts that may have reached the facilitator.
    pub attempts: u32,
    /// When to try again, if ever.
    pub next_at: Option<Timestamp>,
    pub now: Timestamp,
}

/// The payments to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentPruning {
    /// Payments without a change since then lose their reply if they were settled, and are removed
    /// otherwise, if their authorization is over.
    pub before: Timestamp,
    /// Settled payments without a change since then are removed, if their authorization is over.
    pub settled_before: Timestamp,
    pub now: Timestamp,
    pub limit: u32,
}

/// Payments whose settlement is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PaymentCounts {
    pub count: u64,
    /// When the oldest was reserved.
    pub first: Option<Timestamp>,
}

const COLUMNS: &str = "\
    account_id, id, network, asset, payer, nonce, protocol, amount, request_digest, \
    payment_digest, identifier, state, settle_request, valid_before, round_id, status, answer, \
    transaction_id, reason, attempts, created_at, updated_at";
const ACCOUNT: &str = "\
    insert into accounts (id, created_at, kind) values ($1, $2, 'payer') \
    on conflict (id) do nothing";
const RESERVE: &str = "\
    insert into payments (account_id, id, network, asset, payer, nonce, protocol, amount, \
    request_digest, payment_digest, identifier, state, settle_request, valid_before, attempts, \
    created_at, updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'reserved', $12, $13, 0, $14, $15) \
    on conflict do nothing";
/// A reservation that is not young belongs to a request that was interrupted. A payment can stay
/// unknown for ever, and costs nobody anything more once its authorization is over.
const OPEN: &str = "\
    select cast(count(*) as bigint) as number, 'open' as name from payments \
    where account_id = $1 and (state = 'settling' \
    or (state = 'reserved' and $2 < created_at) \
    or (state = 'unknown' and $3 < valid_before))";
const GET: &str = concatcp!("select ", COLUMNS, " from payments where id = $1");
const OF_AUTHORIZATION: &str = concatcp!(
    "select ",
    COLUMNS,
    " from payments where network = $1 and asset = $2 and payer = $3 and nonce = $4"
);
const OF_IDENTIFIER: &str = concatcp!(
    "select ",
    COLUMNS,
    " from payments where account_id = $1 and identifier = $2 \
     and identifier is not null and state <> 'failed_final'"
);
/// One settled payment is enough. SQLite would read those of all accounts along the index of the
/// states, which a text that is put together does not use.
const HAS_PAID: &str = "\
    select cast(count(*) as bigint) as number, 'paid' as name from (select 1 from payments \
    where account_id = $1 and state || '' = 'settled' limit 1) as settled";
const SETTLE: &str = "\
    update payments set state = 'settling', round_id = $1, status = $2, answer = $3, \
    attempts = 1, lease_token = $4, next_at = $5, updated_at = $6 \
    where account_id = $7 and id = $8 and state = 'reserved'";
const TAKE: (&str, &str) = of_found!(
    "update payments set lease_token = $1, next_at = $2, attempts = attempts + 1",
    "payments where next_at <= $3 order by next_at limit $4",
    concatcp!(" returning ", COLUMNS)
);
const TAKE_OVER: &str = "\
    update payments set next_at = $1 where next_at > $1 and lease_token is not null";
const SETTLED: &str = "\
    update payments set state = 'settled', transaction_id = $1, reason = null, \
    lease_token = null, next_at = null, updated_at = $2 \
    where account_id = $3 and id = $4 and state in ('settling', 'unknown')";
/// A reply that was not paid for is not kept.
const UNSETTLED: &str = "\
    update payments set state = $1, reason = $2, attempts = $3, lease_token = null, \
    next_at = $4, updated_at = $5, transaction_id = $6, \
    answer = case when cast($1 as text) = 'failed_final' then null else answer end \
    where account_id = $7 and id = $8 and lease_token = $9 and state in ('settling', 'unknown')";
const RELEASE: &str = "\
    delete from payments where account_id = $1 and id = $2 and state = 'reserved'";
const PRUNE: (&str, &str) = of_found!(
    "delete from payments",
    "payments where state = $1 and updated_at < $2 and valid_before < $3 \
     order by updated_at limit $4",
    ""
);
/// What stays of a settled payment keeps it from being demanded again.
const CLEAR: (&str, &str) = of_found!(
    "update payments set status = null, answer = null, settle_request = ''",
    "payments where state = 'settled' and updated_at < $1 and answer is not null \
     order by updated_at limit $2",
    ""
);
const COUNTS: &str = "\
    select 'open' as id, cast(count(*) as bigint) as times, min(created_at) as earliest \
    from payments where state in ('settling', 'unknown')";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (GET, GET),
    (OF_AUTHORIZATION, OF_AUTHORIZATION),
    (OF_IDENTIFIER, OF_IDENTIFIER),
    (HAS_PAID, HAS_PAID),
    TAKE,
    (TAKE_OVER, TAKE_OVER),
    PRUNE,
    CLEAR,
    (COUNTS, COUNTS),
];

async fn reserve(tx: &mut Tx<'_>, new: &NewPayment) -> Result<Result<(), PaymentRefusal>> {
    let NewPayment { payment, most_open, young_since, good_since } = new;
    let Payment { account, id, key, created_at, .. } = payment;
    tx.run(ACCOUNT, args![account, *created_at]).await?;
    let open = tx.first(OPEN, args![account, *young_since, *good_since], read_number).await?;
    let open = open.unwrap_or_default();
    if i64::from(*most_open) <= open {
        return Ok(Err(PaymentRefusal::TooManyOpen));
    }
    let args = args![
        account,
        id.as_str(),
        key.network.as_str(),
        &key.asset,
        key.payer.as_str(),
        &key.nonce,
        payment.protocol.as_str(),
        payment.amount,
        &payment.request_digest,
        &payment.payment_digest,
        payment.identifier.as_ref(),
        &payment.settle_request,
        payment.valid_before,
        *created_at,
        payment.updated_at
    ];
    let is_new = tx.run(RESERVE, args).await? == 1;
    Ok(if is_new { Ok(()) } else { Err(PaymentRefusal::Known) })
}

async fn get(tx: &mut Tx<'_>, id: &PaymentId) -> Result<Option<Payment>> {
    tx.first(GET, args![id.as_str()], read).await
}

async fn of_authorization(tx: &mut Tx<'_>, key: &PaymentKey) -> Result<Option<Payment>> {
    let args = args![key.network.as_str(), &key.asset, key.payer.as_str(), &key.nonce];
    tx.first(OF_AUTHORIZATION, args, read).await
}

async fn of_identifier(
    tx: &mut Tx<'_>,
    account: &AccountId,
    identifier: &str,
) -> Result<Option<Payment>> {
    tx.first(OF_IDENTIFIER, args![account, identifier], read).await
}

async fn has_paid(tx: &mut Tx<'_>, account: &AccountId) -> Result<bool> {
    Ok(tx.first(HAS_PAID, args![account], read_number).await?.is_some_and(|count| 0 < count))
}

async fn settle(tx: &mut Tx<'_>, settling: &PaymentSettling) -> Result<bool> {
    let args = args![
        settling.round.as_str(),
        i64::from(settling.answer.tag),
        &settling.answer.text,
        settling.lease_token,
        settling.next_at,
        settling.now,
        &settling.account,
        settling.id.as_str()
    ];
    Ok(tx.run(SETTLE, args).await? == 1)
}

async fn take_due(tx: &mut Tx<'_>, take: &PaymentTake) -> Result<Vec<Payment>> {
    let args = args![take.lease_token, take.next_at, take.now, take.limit];
    tx.all(tx.own(TAKE), args, read).await
}

async fn take_over(tx: &mut Tx<'_>, now: &Timestamp) -> Result<u64> {
    tx.run(TAKE_OVER, args![*now]).await
}

async fn settled(tx: &mut Tx<'_>, end: &PaymentEnd) -> Result<bool> {
    let args = args![&end.transaction, end.now, &end.account, end.id.as_str()];
    Ok(tx.run(SETTLED, args).await? == 1)
}

async fn unsettled(tx: &mut Tx<'_>, end: &PaymentUnsettled) -> Result<bool> {
    let args = args![
        end.state.as_str(),
        &end.reason,
        end.attempts,
        end.next_at,
        end.now,
        end.transaction.as_ref(),
        &end.account,
        end.id.as_str(),
        end.lease_token
    ];
    Ok(tx.run(UNSETTLED, args).await? == 1)
}

async fn release(tx: &mut Tx<'_>, account: &AccountId, id: &PaymentId) -> Result<bool> {
    Ok(tx.run(RELEASE, args![account, id.as_str()]).await? == 1)
}

async fn prune(tx: &mut Tx<'_>, pruning: &PaymentPruning) -> Result<u64> {
    let PaymentPruning { before, settled_before, now, limit } = *pruning;
    let mut changed = tx.run(tx.own(CLEAR), args![before, limit]).await?;
    for (state, before) in [
        (PaymentState::Settled, settled_before),
        (PaymentState::FailedFinal, before),
        (PaymentState::Reserved, before),
    ] {
        changed += tx.run(tx.own(PRUNE), args![state.as_str(), before, now, limit]).await?;
    }
    Ok(changed)
}

async fn counts(tx: &mut Tx<'_>) -> Result<PaymentCounts> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "payments", "id")?;
        Ok(PaymentCounts { count: columns.count("times")?, first: columns.maybe_time("earliest")? })
    };
    Ok(tx.first(COUNTS, args![], read).await?.unwrap_or_default())
}

fn read(cells: &dyn DbRow) -> Result<Payment> {
    let columns = RowReader::new(cells, "payments", "id")?;
    let status: Option<u16> = columns.maybe_count("status")?;
    let text = columns.maybe_text("answer")?;
    Ok(Payment {
        id: columns.id("id", PaymentId::parse)?,
        account: columns.id("account_id", AccountId::parse)?,
        key: PaymentKey {
            network: columns.word("network")?,
            asset: columns.text("asset")?,
            payer: columns.word("payer")?,
            nonce: columns.text("nonce")?,
        },
        protocol: columns.word("protocol")?,
        amount: columns.count("amount")?,
        request_digest: columns.text("request_digest")?,
        payment_digest: columns.text("payment_digest")?,
        identifier: columns.maybe_text("identifier")?,
        state: columns.word("state")?,
        settle_request: columns.text("settle_request")?,
        valid_before: columns.time("valid_before")?,
        round: columns.maybe_id("round_id", RoundId::parse)?,
        answer: status.zip(text).map(|(tag, text)| SavedAnswer { tag, text }),
        transaction: columns.maybe_text("transaction_id")?,
        reason: columns.maybe_text("reason")?,
        attempts: columns.count("attempts")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}
