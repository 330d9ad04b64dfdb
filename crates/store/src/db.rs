//! The two databases: connections, transactions, migrations, and reading rows.

pub(crate) mod idempotency;
pub(crate) mod load;
pub(crate) mod migrations;
pub(crate) mod postgres;
pub(crate) mod row;
pub(crate) mod search;
pub(crate) mod sqlite;
pub(crate) mod tx;

#[cfg(test)]
mod plans;
