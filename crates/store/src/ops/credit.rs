//! Requests to the ledger, and their results.

use jurat_core::{
    account::ledger::{AccountState, Balance},
    id::AccountId,
    time::Timestamp,
};

use crate::{
    Result,
    db::{
        rows::{
            DbRow,
            ledger::{Posting, read_balance},
        },
        sql::ledger as sql,
        tx::{SqlArg, Tx, args},
    },
};

/// Credit that an operator grants, or takes back if it is negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditGrant {
    pub account: AccountId,
    pub micros: i64,
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreditGrantOutcome {
    Done(Balance),
    UnknownAccount,
    /// No more can be taken back than is available.
    TooMuch(Balance),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// The suspension of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    pub account: AccountId,
    /// `None` lifts it.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuspensionOutcome {
    Done(Box<AccountState>),
    UnknownAccount,
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// The spending of an account since a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    pub micros: i64,
    /// Rounds with a cost.
    pub rounds: i64,
}

/// Grants credit to an account as part of another operation.
pub(crate) async fn give(tx: &mut impl Tx, grant: &CreditGrant) -> Result<()> {
    tx.run(sql::BALANCE_MAKE, args![&grant.account]).await?;
    post(tx, &Posting::of_grant(grant)).await
}

/// Writes lines and changes an existing balance.
pub(crate) async fn post(tx: &mut impl Tx, posting: &Posting) -> Result<()> {
    if !posting.moves_something() {
        return Ok(());
    }
    let change = posting.change;
    let args = args![
        change.granted,
        change.available,
        change.held,
        change.spent,
        posting.count(),
        SqlArg::Number(posting.may_owe),
        &posting.account_id,
        SqlArg::Number(posting.needed)
    ];
    let read = |cells: &dyn DbRow| read_balance(&cells);
    let Some((_, last)) = tx.first(sql::BALANCE_CHANGE, args, read).await? else { return Ok(()) };
    for (id, line) in posting.numbered(last) {
        let args = args![
            &posting.account_id,
            id,
            line.movement,
            line.micros,
            posting.round_id.as_deref(),
            posting.note.as_deref(),
            posting.at
        ];
        tx.run(sql::TRANSFER_ADD, args).await?;
    }
    Ok(())
}
