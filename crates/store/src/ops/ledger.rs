//! The ledger: credit is granted, held, captured and released, and every line stays.

use const_format::concatcp;
use jurat_core::{
    account::ledger::{Balance, Movement, Transfer},
    id::{AccountId, RoundId},
    time::Timestamp,
    webhook::WebhookEvent,
};

use super::{accounts, checkup::MOST_FAULTS, rounds::AFTER_ALL, webhooks::announce::announce};
use crate::{
    Behalf, Result,
    db::{
        row::{DbRow, RowReader, read_name},
        tx::{SqlArg, Tx, args, operations},
    },
};

operations! {
    /// Credit of accounts, and the ledger that explains it.
    pub struct LedgerOps = store.ledger();
    reads {
        /// The credit that an account spent since a time.
        fn spending(account: &AccountId, since: &Timestamp) -> Spending = spending;
        /// The faults of the ledger: balances that are not the sum of their lines, holds without an
        /// open round, open rounds without their hold, calls that the credit does not cover.
        fn faults() -> Vec<String> = faults;
    }
    writes {
        /// Grants credit to an account, or takes some back: at most the available credit that is
        /// not needed for rounds that may still cost more than they hold.
        fn grant(credit: &CreditGrant) -> Balance, or CreditGrantRefusal = grant;
    }
}

impl LedgerOps<'_> {
    /// The lines of an account's ledger, newest first, starting after the line `before`.
    pub async fn transfers(
        self,
        behalf: &Behalf,
        account: &AccountId,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>> {
        let before = before.unwrap_or(AFTER_ALL).to_owned();
        let account = account.clone();
        let list = Box::pin(self.0.read(("ledger", "transfers"), behalf, move |tx| {
            Box::pin(async move {
                tx.all(TRANSFERS, args![&account, before, limit], read_transfer).await
            })
        }));
        list.await
    }
}

/// Credit that an operator gives, or takes back if it is negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditGrant {
    pub account: AccountId,
    pub micros: i64,
    pub note: Option<String>,
    pub at: Timestamp,
}

/// Why credit was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreditGrantRefusal {
    UnknownAccount,
    /// No more can be taken back than is available.
    TooMuch(Balance),
}

/// The credit that an account spent since a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    pub micros: i64,
    /// Rounds that cost something.
    pub rounds: i64,
}

/// Ledger lines that are written together, and the change of the balance.
pub(crate) struct Posting {
    pub(crate) account_id: String,
    pub(crate) lines: Vec<LedgerLine>,
    /// The amounts that are added to the parts of the balance.
    pub(crate) change: Balance,
    /// The credit that must be available; without it nothing is posted.
    pub(crate) needed: Option<i64>,
    /// The amount that the account may owe from now on: below zero for no limit, and `None` to
    /// leave it as it is.
    pub(crate) may_owe: Option<i64>,
    pub(crate) round_id: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) at: i64,
}

/// A line of the ledger that has no number yet.
pub(crate) struct LedgerLine {
    pub(crate) movement: &'static str,
    pub(crate) micros: i64,
}

impl Posting {
    /// An empty posting for the cost of a round.
    pub(crate) fn of_round(account: &AccountId, round: &RoundId, at: Timestamp) -> Self {
        Self {
            account_id: account.to_string(),
            lines: Vec::new(),
            change: Balance::default(),
            needed: None,
            may_owe: None,
            round_id: Some(round.to_string()),
            note: None,
            at: at.micros(),
        }
    }

    /// A posting for a grant, which takes back no more than is available.
    pub(crate) fn of_grant(grant: &CreditGrant) -> Self {
        let posting = Self {
            account_id: grant.account.to_string(),
            lines: Vec::new(),
            change: Balance::default(),
            needed: None,
            may_owe: None,
            round_id: None,
            note: grant.note.clone(),
            at: grant.at.micros(),
        };
        let taken = grant.micros.checked_neg().filter(|taken| 0 < *taken);
        posting.with(Movement::Grant, grant.micros).needing(taken)
    }

    /// Adds a line, unless the amount is zero.
    pub(crate) fn with(mut self, movement: Movement, micros: i64) -> Self {
        if micros != 0 {
            self.change = self.change.after(movement, micros);
            self.lines.push(LedgerLine { movement: movement.as_str(), micros });
        }
        self
    }

    pub(crate) fn needing(self, needed: Option<i64>) -> Self {
        Self { needed, ..self }
    }

    pub(crate) fn noting(self, note: &str) -> Self {
        Self { note: Some(note.to_owned()), ..self }
    }

    pub(crate) fn owing(self, may_owe: i64) -> Self {
        Self { may_owe: Some(may_owe), ..self }
    }

    /// If credit is taken back, leaves the amount that open rounds may still cost.
    pub(crate) fn leaving(self, at_risk: i64) -> Self {
        let needed = self.needed.map(|needed| needed.saturating_add(at_risk));
        Self { needed, ..self }
    }

    /// Whether the posting is possible for an account without a balance.
    pub(crate) fn is_for_any(&self) -> bool {
        self.needed.is_none_or(|needed| needed <= 0)
    }

    pub(crate) fn moves_something(&self) -> bool {
        !self.lines.is_empty()
    }

    pub(crate) fn count(&self) -> i64 {
        i64::try_from(self.lines.len()).unwrap_or(i64::MAX)
    }

    /// The lines with their identifiers; `last` is the number of the last one.
    pub(crate) fn numbered(&self, last: i64) -> impl Iterator<Item = (String, &LedgerLine)> {
        let before = last - self.count();
        (1..).zip(&self.lines).map(move |(number, line)| (line_id(before + number), line))
    }
}

/// The identifier of a line. All have the same length, so that they sort like their numbers.
fn line_id(number: i64) -> String {
    format!("{number:016}")
}

/// A part of the daily limit for visitors.
pub(crate) struct DayReservation {
    pub(crate) day: i64,
    pub(crate) micros: i64,
    pub(crate) cap: i64,
}

/// The day of a time, counted from 1970 in UTC.
pub(crate) fn day_of(micros: i64) -> i64 {
    micros.div_euclid(86_400_000_000)
}

/// Changes a balance, unless there is none or less is available than is needed. Without `$6` the
/// amount that the account may owe stays as it is; if `$6` is below zero, it is not limited.
const CHANGE: &str = "\
    update credit_balances set granted = granted + $1, available = available + $2, \
    held = held + $3, spent = spent + $4, lines = lines + $5, \
    may_owe = case when cast($6 as bigint) < 0 then null \
    else coalesce(cast($6 as bigint), may_owe) end \
    where account_id = $7 and available >= coalesce($8, available) \
    returning account_id, granted, available, held, spent, lines";
/// Changes the balance and adds the lines, in one message for PostgreSQL, because all rounds of an
/// account wait for each other here. The lines are numbered as in `Posting::numbered`.
const POST: &str = concatcp!(
    "with balance as (",
    CHANGE,
    "), posted as ( \
     insert into credit_transfers (account_id, id, movement, micros, round_id, note, created_at) \
     select balance.account_id, lpad((balance.lines - $5 + line.number)::text, 16, '0'), \
     line.movement, line.micros, $11, $12, $13 from balance, \
     unnest($9::text[], $10::bigint[]) with ordinality as line (movement, micros, number) \
     ) select account_id, granted, available, held, spent, lines from balance"
);
const MAKE: &str = "\
    insert into credit_balances (account_id, granted, available, held, spent, lines) \
    values ($1, 0, 0, 0, 0, 0) on conflict do nothing";
const BALANCE: &str = "\
    select account_id, granted, available, held, spent, lines \
    from credit_balances where account_id = $1";
/// Makes other transactions that move credit of the account wait until this one ends.
const BALANCE_LOCKED: (&str, &str) = (BALANCE, concatcp!(BALANCE, " for update"));
/// The amount by which the open rounds of an account may cost more than they hold, without the
/// round that is about to begin.
const AT_RISK: &str = "\
    select $1 as account_id, \
    cast(coalesce(sum(most_micros - held_micros), 0) as bigint) as at_risk from rounds \
    where account_id = $1 and state = 'open' and most_micros > held_micros and id <> $2";
const TRANSFER: &str = "\
    insert into credit_transfers (account_id, id, movement, micros, round_id, note, created_at) \
    values ($1, $2, $3, $4, $5, $6, $7)";
const TRANSFERS: &str = "\
    select id, movement, micros, round_id, note, created_at from credit_transfers \
    where account_id = $1 and id < $2 order by id desc limit $3";
/// A round has at most one line for its cost. A correction that a provider reports afterwards is a
/// line of its own; it does not count as a round if it gives something back.
const SPENDING: &str = "\
    select $1 as account_id, cast(coalesce(sum(micros), 0) as bigint) as micros, \
    cast(coalesce(sum(case when micros > 0 then 1 else 0 end), 0) as bigint) as rounds \
    from credit_transfers \
    where account_id = $1 and movement = 'capture' and created_at >= $2";
const DAY_MAKE: &str =
    "insert into anonymous_days (day, micros) values ($1, 0) on conflict do nothing";
/// Reserves a part of the daily limit, if enough of it is left.
const DAY_RESERVE: &str = "\
    update anonymous_days set micros = micros + $1 where day = $2 and micros + $1 <= $3";
const DAY_RETURN: &str = "update anonymous_days set micros = micros - $1 where day = $2";

/// The faults of a ledger, each with the query that finds them.
pub(crate) const RULES: [(&str, &str); 6] = [
    (
        "the balance does not match its ledger lines",
        "select credit_balances.account_id as name from credit_balances left join ( \
         select account_id, count(*) as lines, \
         sum(case when movement = 'grant' then micros else 0 end) as granted, \
         sum(case when movement = 'hold' then -micros when movement = 'capture' then 0 \
         else micros end) as available, \
         sum(case when movement = 'hold' then micros when movement = 'grant' then 0 \
         else -micros end) as held, \
         sum(case when movement = 'capture' then micros else 0 end) as spent \
         from credit_transfers group by account_id \
         ) as sums on sums.account_id = credit_balances.account_id \
         where credit_balances.granted <> coalesce(sums.granted, 0) \
         or credit_balances.available <> coalesce(sums.available, 0) \
         or credit_balances.held <> coalesce(sums.held, 0) \
         or credit_balances.spent <> coalesce(sums.spent, 0) \
         or credit_balances.lines <> coalesce(sums.lines, 0) limit $1",
    ),
    (
        "there are ledger lines but no balance",
        "select distinct account_id as name from credit_transfers where not exists ( \
         select 1 from credit_balances \
         where credit_balances.account_id = credit_transfers.account_id) limit $1",
    ),
    (
        "the ledger lines do not match the round: the amount it held, and how that was settled",
        "select sums.round_id as name from ( \
         select account_id, round_id, \
         sum(case when movement = 'hold' then micros else 0 end) as held, \
         sum(case when movement = 'hold' then 0 else micros end) as settled \
         from credit_transfers where round_id is not null group by account_id, round_id \
         ) as sums left join rounds \
         on rounds.account_id = sums.account_id and rounds.id = sums.round_id \
         where rounds.id is null or sums.held <> coalesce(rounds.held_micros, 0) \
         or sums.settled <> case when rounds.state = 'open' then 0 else sums.held end limit $1",
    ),
    (
        "several rounds are in progress, and together they may cost more than the account has",
        "select rounds.account_id as name from rounds join credit_balances \
         on credit_balances.account_id = rounds.account_id \
         where rounds.state = 'open' and rounds.is_limited = 1 \
         and rounds.most_micros > rounds.held_micros \
         group by rounds.account_id, credit_balances.available having count(*) > 1 \
         and credit_balances.available < sum(rounds.most_micros - rounds.held_micros) limit $1",
    ),
    (
        "the round is open, but its hold is not in the ledger",
        "select rounds.id as name from rounds left join ( \
         select account_id, round_id from credit_transfers where movement = 'hold' \
         ) as holds on holds.account_id = rounds.account_id and holds.round_id = rounds.id \
         where rounds.state = 'open' and rounds.held_micros > 0 and holds.round_id is null limit $1",
    ),
    (
        "the execution is marked as paid, but its round captured nothing",
        "select execution_id as name from execution_captures where not exists ( \
         select 1 from credit_transfers \
         where credit_transfers.account_id = execution_captures.account_id \
         and credit_transfers.round_id = execution_captures.round_id \
         and credit_transfers.movement = 'capture') limit $1",
    ),
];

const CAPTURES: &str = "\
    as name from credit_transfers join rounds on rounds.account_id = credit_transfers.account_id \
    and rounds.id = credit_transfers.round_id \
    where credit_transfers.movement = 'capture' and rounds.step is not null \
    group by rounds.account_id, ";
const EXECUTION_SQLITE: &str = "json_extract(rounds.step, '$.execution_id') ";
const EXECUTION_POSTGRES: &str = "rounds.step::json ->> 'execution_id' ";
const TWICE: &str = "having count(distinct rounds.id) > 1 limit $1";
/// Executions of task calls that were captured more than once; the databases read documents in
/// different ways.
const CAPTURED_TWICE: (&str, (&str, &str)) = (
    "the execution was captured more than once",
    (
        concatcp!("select ", EXECUTION_SQLITE, CAPTURES, EXECUTION_SQLITE, TWICE),
        concatcp!("select ", EXECUTION_POSTGRES, CAPTURES, EXECUTION_POSTGRES, TWICE),
    ),
);

/// Posts to a ledger; `None` if less is available than is needed. The balance then stays locked
/// until the transaction ends, so this comes last in it.
pub(crate) async fn post(tx: &mut Tx<'_>, posting: &Posting) -> Result<Option<Balance>> {
    let mut posted = try_post(tx, posting).await?;
    if posted.is_none() && posting.is_for_any() {
        tx.run(MAKE, args![&posting.account_id]).await?;
        posted = try_post(tx, posting).await?;
    }
    let Some((balance, last)) = posted else { return Ok(None) };
    if let Ok(account) = AccountId::parse(&posting.account_id) {
        let at = Timestamp::from_micros(posting.at);
        let event = WebhookEvent::of_credit(&account, (posting.change, balance), last, at);
        if let Some(event) = event {
            announce(tx, &account, &event, at).await?;
        }
    }
    Ok(Some(balance))
}

/// Changes the balance. Returns it with the number of its last line.
async fn try_post(tx: &mut Tx<'_>, posting: &Posting) -> Result<Option<(Balance, i64)>> {
    let Posting { account_id, change, lines, round_id, note, at, .. } = posting;
    let mut args = args![
        change.granted,
        change.available,
        change.held,
        change.spent,
        posting.count(),
        posting.may_owe,
        account_id,
        posting.needed
    ];
    if !tx.is_sqlite() {
        let movements = lines.iter().map(|line| Some(line.movement.to_owned())).collect();
        let micros = lines.iter().map(|line| line.micros).collect();
        args.extend([SqlArg::Texts(movements), SqlArg::Numbers(micros)]);
        args.extend(args![round_id.as_ref(), note.as_ref(), *at]);
        return tx.first(POST, args, read_balance).await;
    }
    let Some((balance, last)) = tx.first(CHANGE, args, read_balance).await? else {
        return Ok(None);
    };
    for (id, line) in posting.numbered(last) {
        let (movement, micros) = (line.movement, line.micros);
        let args = args![account_id, id, movement, micros, round_id.as_ref(), note.as_ref(), *at];
        tx.run(TRANSFER, args).await?;
    }
    Ok(Some((balance, last)))
}

/// Reserves a part of the daily limit for a visitor; `false` if not enough of it is left. All such
/// rounds wait for each other here, so this comes late, but before the balance.
pub(crate) async fn reserve(tx: &mut Tx<'_>, part: &DayReservation) -> Result<bool> {
    tx.run(DAY_MAKE, args![part.day]).await?;
    Ok(tx.run(DAY_RESERVE, args![part.micros, part.day, part.cap]).await? == 1)
}

/// Returns the part of the daily limit that was reserved and not spent.
pub(crate) async fn give_back(tx: &mut Tx<'_>, part: &DayReservation) -> Result<()> {
    tx.run(DAY_RETURN, args![part.micros, part.day]).await.map(drop)
}

/// The balance of an account, locked until the transaction ends.
pub(crate) async fn locked_balance(tx: &mut Tx<'_>, account: &str) -> Result<Balance> {
    let found = tx.first(tx.own(BALANCE_LOCKED), args![account], read_balance).await?;
    Ok(found.map(|(balance, _)| balance).unwrap_or_default())
}

/// The amount by which the other open rounds of the account may cost more than they hold. It is
/// read after the balance is locked, so that no round begins in between.
pub(crate) async fn at_risk(tx: &mut Tx<'_>, account: &str, round: &str) -> Result<i64> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "rounds", "account_id")?.number("at_risk");
    Ok(tx.first(AT_RISK, args![account, round], read).await?.unwrap_or_default())
}

/// Grants credit to an account as a part of another operation.
pub(crate) async fn give(tx: &mut Tx<'_>, grant: &CreditGrant) -> Result<()> {
    tx.run(MAKE, args![&grant.account]).await?;
    let posting = Posting::of_grant(grant);
    if posting.moves_something() {
        post(tx, &posting).await?;
    }
    Ok(())
}

async fn grant(
    tx: &mut Tx<'_>,
    grant: &CreditGrant,
) -> Result<Result<Balance, CreditGrantRefusal>> {
    let account = grant.account.as_str();
    if accounts::get(tx, &grant.account).await?.is_none() {
        return Ok(Err(CreditGrantRefusal::UnknownAccount));
    }
    let mut posting = Posting::of_grant(grant);
    if posting.needed.is_some() {
        locked_balance(tx, account).await?;
        posting = posting.leaving(at_risk(tx, account, "").await?);
    }
    match post(tx, &posting).await? {
        Some(granted) => Ok(Ok(granted)),
        None => Ok(Err(CreditGrantRefusal::TooMuch(locked_balance(tx, account).await?))),
    }
}

async fn spending(tx: &mut Tx<'_>, account: &AccountId, since: &Timestamp) -> Result<Spending> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "credit_transfers", "account_id")?;
        Ok(Spending { micros: columns.number("micros")?, rounds: columns.number("rounds")? })
    };
    Ok(tx.first(SPENDING, args![account, *since], read).await?.unwrap_or_default())
}

async fn faults(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.allow_long_statements().await?;
    let (why, texts) = CAPTURED_TWICE;
    let mut faults = Vec::new();
    for (why, text) in RULES.into_iter().chain([(why, tx.own(texts))]) {
        let found = tx.all(text, args![MOST_FAULTS], read_name).await?;
        faults.extend(found.iter().map(|name| format!("`{name}`: {why}")));
    }
    Ok(faults)
}

/// A balance, and the number of lines that led to it.
fn read_balance(cells: &dyn DbRow) -> Result<(Balance, i64)> {
    let columns = RowReader::new(cells, "credit_balances", "account_id")?;
    Ok((balance_of(&columns)?, columns.number("lines")?))
}

pub(super) fn balance_of(columns: &RowReader<'_>) -> Result<Balance> {
    Ok(Balance {
        granted: columns.number("granted")?,
        available: columns.number("available")?,
        held: columns.number("held")?,
        spent: columns.number("spent")?,
    })
}

fn read_transfer(cells: &dyn DbRow) -> Result<Transfer> {
    let columns = RowReader::new(cells, "credit_transfers", "id")?;
    Ok(Transfer {
        id: columns.text("id")?,
        movement: columns.word("movement")?,
        micros: columns.number("micros")?,
        round: columns.maybe_id("round_id", RoundId::parse)?,
        note: columns.maybe_text("note")?,
        at: columns.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::sqlite::setup::plan;

    #[test]
    fn no_page_of_the_ledger_reads_rows_that_it_does_not_show() {
        let by_id = "SEARCH credit_transfers USING INDEX sqlite_autoindex_credit_transfers_1 \
            (account_id=? AND id<?)";
        assert_eq!(plan(TRANSFERS), [by_id]);
        let by_time = "SEARCH credit_transfers USING COVERING INDEX credit_transfers_spent \
            (account_id=? AND created_at>?)";
        assert_eq!(plan(SPENDING), [by_time]);
    }
}
