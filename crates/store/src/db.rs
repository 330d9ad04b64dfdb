//! The two databases: connections, transactions, migrations, SQL text, and rows.

pub(crate) mod idempotency;
pub(crate) mod load;
pub(crate) mod migrations;
pub(crate) mod postgres;
pub(crate) mod rows;
pub(crate) mod search;
pub(crate) mod sql;
pub(crate) mod sqlite;
pub(crate) mod tx;

#[cfg(test)]
mod plans;
