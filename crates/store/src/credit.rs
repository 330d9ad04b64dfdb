//! What the ledger is asked to do, and what came of it.

use jurat_core::{
    id::AccountId,
    ledger::{AccountState, Balance},
    time::Timestamp,
};

/// Credit that an operator gives, or takes back when it is negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub account: AccountId,
    pub micros: i64,
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    Done(Balance),
    UnknownAccount,
    /// No more can be taken back than is available.
    TooMuch(Balance),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// Whether an account may have anything done that costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    pub account: AccountId,
    /// `None` lifts it.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspended {
    Done(Box<AccountState>),
    UnknownAccount,
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// What an account spent since a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    pub micros: i64,
    /// Rounds that cost something.
    pub rounds: i64,
}
