//! Credits and how accounts stand, in SQLite.

use jurat_core::{
    account::ledger::{AccountState, Balance, Transfer},
    id::AccountId,
    list::ListPage,
    time::Timestamp,
};
use rusqlite::{Connection, params};

use super::{all, execute, first, idempotency};
use crate::{
    CreditGrant, CreditGrantOutcome, Result, Spending, Suspension, SuspensionOutcome,
    db::{
        rows::{
            idempotency::IdempotencyRow,
            ledger::{
                Posting, fault, read_account, read_at_risk, read_balance, read_spending,
                read_transfer,
            },
            rounds::{AFTER_ALL, DayReservation},
        },
        sql::ledger as sql,
    },
    ops::checkup::MOST_FAULTS,
};

/// Writes lines and changes the balance; `None` when less is available than is needed.
pub(super) fn post(tx: &Connection, posting: &Posting) -> Result<Option<Balance>> {
    let mut changed = change(tx, posting)?;
    if changed.is_none() && posting.is_for_any() {
        execute(tx, sql::BALANCE_MAKE, params![posting.account_id])?;
        changed = change(tx, posting)?;
    }
    let Some((balance, last)) = changed else { return Ok(None) };
    for (id, line) in posting.numbered(last) {
        let params = params![
            posting.account_id,
            id,
            line.movement,
            line.micros,
            posting.round_id,
            posting.note,
            posting.at
        ];
        execute(tx, sql::TRANSFER_ADD, params)?;
    }
    Ok(Some(balance))
}

fn change(tx: &Connection, posting: &Posting) -> Result<Option<(Balance, i64)>> {
    let change = posting.change;
    let params = params![
        change.granted,
        change.available,
        change.held,
        change.spent,
        posting.count(),
        posting.may_owe,
        posting.account_id,
        posting.needed
    ];
    first(tx, sql::BALANCE_CHANGE, params, |row| read_balance(row))
}

/// Whether so much is left of the day for a round without a key.
pub(super) fn has_left(tx: &Connection, part: &DayReservation) -> Result<bool> {
    let used: Option<i64> = first(tx, sql::DAY_GET, params![part.day], |row| Ok(row.get(1)?))?;
    Ok(used.unwrap_or(0).saturating_add(part.micros) <= part.cap)
}

pub(super) fn reserve(tx: &Connection, part: &DayReservation) -> Result<()> {
    execute(tx, sql::DAY_MAKE, params![part.day])?;
    execute(tx, sql::DAY_RESERVE, params![part.micros, part.day, part.cap]).map(drop)
}

/// Gives back what a round without a key did not cost.
pub(super) fn give_back(tx: &Connection, part: &DayReservation) -> Result<()> {
    execute(tx, sql::DAY_RETURN, params![part.micros, part.day]).map(drop)
}

/// What an account has; nothing, when nothing was ever counted for it.
pub(super) fn balance(tx: &Connection, account: &str) -> Result<Balance> {
    let found = first(tx, sql::BALANCE_GET, params![account], |row| read_balance(row))?;
    Ok(found.map(|(balance, _)| balance).unwrap_or_default())
}

/// By how much the rounds of the account may cost more than they hold, without this one.
pub(super) fn at_risk(tx: &Connection, account: &str, round: &str) -> Result<i64> {
    let found = first(tx, sql::AT_RISK, params![account, round], |row| read_at_risk(row))?;
    Ok(found.unwrap_or_default())
}

pub(super) fn grant(
    tx: &Connection,
    grant: &CreditGrant,
    idempotency: Option<&IdempotencyRow>,
) -> Result<CreditGrantOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(CreditGrantOutcome::Repeated);
    }
    if account(tx, &grant.account)?.is_none() {
        return Ok(CreditGrantOutcome::UnknownAccount);
    }
    let at_risk = at_risk(tx, grant.account.as_str(), "")?;
    let Some(balance) = post(tx, &Posting::of_grant(grant).leaving(at_risk))? else {
        return Ok(CreditGrantOutcome::TooMuch(balance(tx, grant.account.as_str())?));
    };
    idempotency::record_answered_write(tx, idempotency, |answer| answer.of_balance(&balance))?;
    Ok(CreditGrantOutcome::Done(balance))
}

pub(super) fn suspend(
    tx: &Connection,
    suspension: &Suspension,
    idempotency: Option<&IdempotencyRow>,
) -> Result<SuspensionOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(SuspensionOutcome::Repeated);
    }
    let id = suspension.account.as_str();
    match suspension.since {
        Some(since) => execute(tx, sql::ACCOUNT_SUSPEND, params![since.micros(), id])?,
        None => execute(tx, sql::ACCOUNT_RESUME, params![id])?,
    };
    let Some(state) = account(tx, &suspension.account)? else {
        return Ok(SuspensionOutcome::UnknownAccount);
    };
    idempotency::record_answered_write(tx, idempotency, |answer| answer.of_account(&state))?;
    Ok(SuspensionOutcome::Done(Box::new(state)))
}

pub(super) fn account(tx: &Connection, account: &AccountId) -> Result<Option<AccountState>> {
    first(tx, sql::ACCOUNT_GET, params![account.as_str()], |row| read_account(row))
}

pub(super) fn accounts(tx: &Connection, page: &ListPage) -> Result<Vec<AccountState>> {
    let after = page.after.as_deref().unwrap_or_default();
    all(tx, sql::ACCOUNT_LIST, params![after, page.limit], |row| read_account(row))
}

pub(super) fn spent(tx: &Connection, account: &AccountId, since: Timestamp) -> Result<Spending> {
    let params = params![account.as_str(), since.micros()];
    Ok(first(tx, sql::SPENT, params, |row| read_spending(row))?.unwrap_or_default())
}

pub(super) fn transfers(
    tx: &Connection,
    account: &AccountId,
    before: Option<&str>,
    limit: u32,
) -> Result<Vec<Transfer>> {
    let params = params![account.as_str(), before.unwrap_or(AFTER_ALL), limit];
    all(tx, sql::TRANSFER_LIST, params, |row| read_transfer(row))
}

pub(super) fn check(tx: &Connection) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (why, text) in sql::RULES.into_iter().chain([sql::CAPTURED_TWICE_SQLITE]) {
        let found: Vec<String> = all(tx, text, params![MOST_FAULTS], |row| Ok(row.get(0)?))?;
        faults.extend(found.iter().map(|what| fault(what, why)));
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::sqlite::setup;

    /// How SQLite finds the rows of a query.
    fn plan(text: &str) -> Vec<String> {
        let connection = setup::open_memory().unwrap();
        let mut statement = connection.prepare(&format!("explain query plan {text}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        lines.map(Result::unwrap).collect()
    }

    #[test]
    fn no_page_of_the_ledger_reads_rows_that_it_does_not_show() {
        let transfers = plan(sql::TRANSFER_LIST);
        let by_id = "SEARCH credit_transfers USING INDEX sqlite_autoindex_credit_transfers_1 \
            (account_id=? AND id<?)";
        assert_eq!(transfers, [by_id]);
        let spent = plan(sql::SPENT);
        let by_time = "SEARCH credit_transfers USING COVERING INDEX credit_transfers_spent \
            (account_id=? AND created_at>?)";
        assert_eq!(spent, [by_time]);
    }
}
