//! Rows of credit, and postings to the ledger.

use jurat_core::{
    account::ledger::{AccountState, Balance, Movement, Transfer},
    id::{AccountId, RoundId},
    time::Timestamp,
};

use super::{DbRow, RowReader};
use crate::{CreditGrant, Result, Spending};

/// Lines that are written together, and their effect on the balance.
pub(crate) struct Posting {
    pub(crate) account_id: String,
    pub(crate) lines: Vec<LedgerLine>,
    /// The change of each part of the balance.
    pub(crate) change: Balance,
    /// The credit that must be available for the posting.
    pub(crate) needed: Option<i64>,
    /// How much the account may owe from then on; negative for an unlimited account, and `None` if
    /// that does not change.
    pub(crate) may_owe: Option<i64>,
    pub(crate) round_id: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) at: i64,
}

/// A line of the ledger without a number.
pub(crate) struct LedgerLine {
    pub(crate) movement: &'static str,
    pub(crate) micros: i64,
}

impl Posting {
    /// The cost of a round.
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

    /// No more can be taken back than is available.
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

    /// Adds a line, unless nothing moves.
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

    /// Taking credit back leaves what rounds in progress may still cost.
    pub(crate) fn leaving(self, at_risk: i64) -> Self {
        let needed = self.needed.map(|needed| needed.saturating_add(at_risk));
        Self { needed, ..self }
    }

    /// Whether the posting needs no available credit.
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

/// All have the same length, so that texts sort like numbers.
fn line_id(number: i64) -> String {
    format!("{number:016}")
}

/// A balance, and the number of its lines.
pub(crate) fn read_balance(cells: &impl DbRow) -> Result<(Balance, i64)> {
    let columns = RowReader::new(cells, "credit_balances", "account_id")?;
    Ok((balance_of(&columns)?, columns.number("lines")?))
}

fn balance_of<C: DbRow>(columns: &RowReader<'_, C>) -> Result<Balance> {
    Ok(Balance {
        granted: columns.number("granted")?,
        available: columns.number("available")?,
        held: columns.number("held")?,
        spent: columns.number("spent")?,
    })
}

pub(crate) fn read_account(cells: &impl DbRow) -> Result<AccountState> {
    let columns = RowReader::new(cells, "accounts", "id")?;
    Ok(AccountState {
        account: columns.id("id", AccountId::parse)?,
        created_at: columns.time("created_at")?,
        suspended_at: columns.maybe_time("suspended_at")?,
        balance: balance_of(&columns)?,
    })
}

pub(crate) fn read_transfer(cells: &impl DbRow) -> Result<Transfer> {
    let columns = RowReader::new(cells, "credit_transfers", "id")?;
    let round = match columns.maybe_text("round_id")? {
        None => None,
        Some(_) => Some(columns.id("round_id", RoundId::parse)?),
    };
    Ok(Transfer {
        id: columns.text("id")?,
        movement: columns.word("movement")?,
        micros: columns.number("micros")?,
        round,
        note: columns.maybe_text("note")?,
        at: columns.time("created_at")?,
    })
}

pub(crate) fn read_spending(cells: &impl DbRow) -> Result<Spending> {
    let columns = RowReader::new(cells, "credit_transfers", "account_id")?;
    Ok(Spending { micros: columns.number("micros")?, rounds: columns.number("rounds")? })
}

pub(crate) fn read_at_risk(cells: &impl DbRow) -> Result<i64> {
    RowReader::new(cells, "rounds", "account_id")?.number("at_risk")
}

/// A finding of a check, in words.
pub(crate) fn fault(what: &str, why: &str) -> String {
    format!("`{what}`: {why}")
}
