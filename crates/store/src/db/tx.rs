//! The transaction that every operation runs in, and the macro that declares operations.
//!
//! An operation is one `async` function over a `Tx`. On SQLite each statement completes
//! immediately, so the function is polled once, on the thread of the writer or of a reader. On
//! PostgreSQL it waits for each statement.

use std::{future::Future, pin::Pin};

use jurat_core::{id::AccountId, time::Timestamp};
use rusqlite::{Connection, types::ToSqlOutput};
use sqlx::{
    PgConnection, Postgres as PgDatabase,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use super::row::{DbRow, json, to_bigint};
use crate::{Result, StoreError, error::DatabaseRefusal};

/// The account for which the database is read or written; PostgreSQL hides the rows of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behalf {
    Account(AccountId),
    /// The installation itself, across accounts.
    Platform,
}

impl From<&AccountId> for Behalf {
    fn from(account: &AccountId) -> Self {
        Self::Account(account.clone())
    }
}

/// How a write ended. Only `Done` changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome<T, R> {
    Done(T),
    Refused(R),
    /// Its idempotency key was used before.
    Repeated,
}

impl<T, R> WriteOutcome<T, R> {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// The refusal of a write that names something unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFound;

/// An argument of a statement.
#[derive(Debug, Clone)]
pub(crate) enum SqlArg {
    Text(Option<String>),
    Number(Option<i64>),
    Bytes(Vec<u8>),
    /// An array on PostgreSQL, and a JSON array on SQLite.
    Texts(Vec<Option<String>>),
    Numbers(Vec<i64>),
}

/// The future of an operation.
pub(crate) type TxFuture<'t, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 't>>;

/// A transaction on either database.
#[derive(Debug)]
pub(crate) struct Tx<'a> {
    pub(crate) connection: TxConnection<'a>,
    /// The statements so far, for tests that compare them.
    #[cfg(test)]
    pub(crate) texts: Vec<&'static str>,
}

/// A connection with an open transaction. SQLite's is borrowed mutably, because only a mutable
/// borrow lets the future of an operation move between threads.
pub(crate) enum TxConnection<'a> {
    Sqlite(&'a mut Connection),
    Postgres(&'a mut PgConnection),
}

impl std::fmt::Debug for TxConnection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sqlite(_) => "Sqlite",
            Self::Postgres(_) => "Postgres",
        })
    }
}

impl<'a> Tx<'a> {
    pub(crate) fn sqlite(connection: &'a mut Connection) -> Self {
        Self::new(TxConnection::Sqlite(connection))
    }

    pub(crate) fn postgres(connection: &'a mut PgConnection) -> Self {
        Self::new(TxConnection::Postgres(connection))
    }

    fn new(connection: TxConnection<'a>) -> Self {
        Self {
            connection,
            #[cfg(test)]
            texts: Vec::new(),
        }
    }

    #[cfg(test)]
    fn note(&mut self, text: &'static str) {
        self.texts.push(text);
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "only tests note the statements")]
    fn note(&self, _: &'static str) {}

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn run(&mut self, text: &'static str, args: Vec<SqlArg>) -> Result<u64> {
        self.note(text);
        match &mut self.connection {
            TxConnection::Sqlite(connection) => execute(connection, text, &args),
            TxConnection::Postgres(connection) => {
                Ok(bind(text, args).execute(&mut **connection).await?.rows_affected())
            }
        }
    }

    /// All rows of a query.
    pub(crate) async fn all<T>(
        &mut self,
        text: &'static str,
        args: Vec<SqlArg>,
        read: fn(&dyn DbRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.note(text);
        match &mut self.connection {
            TxConnection::Sqlite(connection) => query(connection, text, &args, read),
            TxConnection::Postgres(connection) => {
                let rows: Vec<PgRow> = bind(text, args).fetch_all(&mut **connection).await?;
                rows.iter().map(|row| read(row)).collect()
            }
        }
    }

    /// The first row of a query.
    pub(crate) async fn first<T>(
        &mut self,
        text: &'static str,
        args: Vec<SqlArg>,
        read: fn(&dyn DbRow) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.all(text, args, read).await?.into_iter().next())
    }

    /// Makes other transactions that lock the same name wait until this one ends. An operation that
    /// needs several locks takes them in ascending order, before it reads the data that they
    /// protect.
    pub(crate) async fn lock(&mut self, name: &str) -> Result<()> {
        // The first number separates these locks from the lock of the migrations.
        const LOCK: &str = "select pg_advisory_xact_lock(1785036917, hashtext($1))";
        self.note("lock");
        match &mut self.connection {
            // Only one thread writes.
            TxConnection::Sqlite(_) => Ok(()),
            TxConnection::Postgres(connection) => {
                sqlx::query(LOCK).bind(name).execute(&mut **connection).await?;
                Ok(())
            }
        }
    }

    /// Raises the time limit for statements that read whole tables.
    pub(crate) async fn allow_long_statements(&mut self) -> Result<()> {
        match &mut self.connection {
            TxConnection::Sqlite(_) => Ok(()),
            TxConnection::Postgres(connection) => {
                let set = sqlx::query("set local statement_timeout = '120s'");
                set.execute(&mut **connection).await?;
                Ok(())
            }
        }
    }

    /// Chooses the text for this database from a pair: SQLite's and PostgreSQL's.
    pub(crate) fn own(&self, (sqlite, postgres): (&'static str, &'static str)) -> &'static str {
        match self.connection {
            TxConnection::Sqlite(_) => sqlite,
            TxConnection::Postgres(_) => postgres,
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.connection, TxConnection::Sqlite(_))
    }
}

fn query<T>(
    connection: &Connection,
    text: &str,
    args: &[SqlArg],
    read: fn(&dyn DbRow) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(text)?;
    let rows = statement.query_and_then(rusqlite::params_from_iter(args), |row| read(row))?;
    rows.collect()
}

fn execute(connection: &Connection, text: &str, args: &[SqlArg]) -> Result<u64> {
    let changed = connection.prepare_cached(text)?.execute(rusqlite::params_from_iter(args))?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

fn bind(text: &'static str, args: Vec<SqlArg>) -> Query<'static, PgDatabase, PgArguments> {
    args.into_iter().fold(sqlx::query(text), |query, arg| match arg {
        SqlArg::Text(text) => query.bind(text),
        SqlArg::Number(number) => query.bind(number),
        SqlArg::Bytes(bytes) => query.bind(bytes),
        SqlArg::Texts(texts) => query.bind(texts),
        SqlArg::Numbers(numbers) => query.bind(numbers),
    })
}

/// Completes an operation on SQLite, whose statements never wait.
pub(crate) fn complete<T>(operation: impl Future<Output = Result<T>>) -> Result<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(operation).poll(&mut context) {
        std::task::Poll::Ready(outcome) => outcome,
        std::task::Poll::Pending => Err(StoreError::unavailable(DatabaseRefusal::Panicked)),
    }
}

/// A statement that changes the rows found by a query, for both databases. Rows are identified by
/// their physical location, so that none is looked up twice; a row that another transaction has
/// locked is skipped.
macro_rules! of_found {
    ($change:expr, $found:expr, $rest:expr) => {
        (
            const_format::concatcp!(
                $change,
                " where rowid in (select rowid from ",
                $found,
                ")",
                $rest
            ),
            const_format::concatcp!(
                $change,
                " where ctid = any (array(select ctid from ",
                $found,
                " for update skip locked))",
                $rest
            ),
        )
    };
}
pub(crate) use of_found;

/// The arguments of a statement, in order.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::tx::SqlArg::from($value)),*] };
}
pub(crate) use args;

impl From<&str> for SqlArg {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&String> for SqlArg {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<String> for SqlArg {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<&str>> for SqlArg {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<&AccountId> for SqlArg {
    fn from(account: &AccountId) -> Self {
        Self::from(account.as_str())
    }
}

impl From<i64> for SqlArg {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<u32> for SqlArg {
    fn from(number: u32) -> Self {
        Self::Number(Some(i64::from(number)))
    }
}

impl From<u64> for SqlArg {
    fn from(number: u64) -> Self {
        Self::Number(Some(to_bigint(number)))
    }
}

impl From<Option<u32>> for SqlArg {
    fn from(number: Option<u32>) -> Self {
        Self::Number(number.map(i64::from))
    }
}

impl From<Option<u64>> for SqlArg {
    fn from(number: Option<u64>) -> Self {
        Self::Number(number.map(to_bigint))
    }
}

impl From<bool> for SqlArg {
    fn from(switch: bool) -> Self {
        Self::Number(Some(i64::from(switch)))
    }
}

impl From<Timestamp> for SqlArg {
    fn from(at: Timestamp) -> Self {
        Self::Number(Some(at.micros()))
    }
}

impl From<Option<Timestamp>> for SqlArg {
    fn from(at: Option<Timestamp>) -> Self {
        Self::Number(at.map(Timestamp::micros))
    }
}

impl From<Vec<u8>> for SqlArg {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Option<String>> for SqlArg {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&String>> for SqlArg {
    fn from(text: Option<&String>) -> Self {
        Self::Text(text.cloned())
    }
}

impl From<Option<i64>> for SqlArg {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl rusqlite::ToSql for SqlArg {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let array = |text: Result<String>| {
            text.map(ToSqlOutput::from)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
        };
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Number(number) => number.to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
            Self::Texts(texts) => array(json(texts)),
            Self::Numbers(numbers) => array(json(numbers)),
        }
    }
}

/// Declares a family of operations: its accessor on `Store`, and a method for each line. A line
/// names the arguments, the result and the function; the arguments are references that the method
/// clones, because SQLite runs the function on another thread.
///
/// Each of `reads` sees the database at one moment. Each of `changes` and `writes` is one
/// transaction. A write also takes an idempotency record, and is rolled back if it is refused.
macro_rules! operations {
    (
        $(#[$doc:meta])*
        pub struct $family:ident = store.$accessor:ident();
        $(reads {
            $($(#[$r_doc:meta])* fn $read:ident($($r_arg:ident: &$r_type:ty),*) -> $found:ty
                = $r_operation:path;)*
        })?
        $(changes {
            $($(#[$c_doc:meta])* fn $change:ident($($c_arg:ident: &$c_type:ty),*) -> $changed:ty
                = $c_operation:path;)*
        })?
        $(writes {
            $($(#[$w_doc:meta])* fn $write:ident($($w_arg:ident: &$w_type:ty),*)
                -> $done:ty, or $refused:ty = $w_operation:path;)*
        })?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $family<'a>(&'a $crate::Store);

        impl $crate::Store {
            $(#[$doc])*
            pub fn $accessor(&self) -> $family<'_> {
                $family(self)
            }
        }

        impl $family<'_> {
            $($($(#[$r_doc])*
            pub async fn $read(
                self, behalf: &$crate::Behalf, $($r_arg: &$r_type),*
            ) -> $crate::Result<$found> {
                $(let $r_arg = $r_arg.to_owned();)*
                let name = (stringify!($accessor), stringify!($read));
                Box::pin(self.0.read(name, behalf, move |tx| {
                    Box::pin(async move { $r_operation(tx, $(&$r_arg),*).await })
                })).await
            })*)?

            $($($(#[$c_doc])*
            pub async fn $change(
                self, behalf: &$crate::Behalf, $($c_arg: &$c_type),*
            ) -> $crate::Result<$changed> {
                $(let $c_arg = $c_arg.to_owned();)*
                let name = (stringify!($accessor), stringify!($change));
                Box::pin(self.0.change(name, behalf, move |tx| {
                    Box::pin(async move { $c_operation(tx, $(&$c_arg),*).await })
                })).await
            })*)?

            $($($(#[$w_doc])*
            pub async fn $write(
                self, behalf: &$crate::Behalf, $($w_arg: &$w_type,)*
                idempotency: Option<&$crate::IdempotencyRecord<$done>>,
            ) -> $crate::Result<$crate::WriteOutcome<$done, $refused>> {
                $(let $w_arg = $w_arg.to_owned();)*
                let name = (stringify!($accessor), stringify!($write));
                Box::pin(self.0.write(name, behalf, idempotency, move |tx| {
                    Box::pin(async move { $w_operation(tx, $(&$w_arg),*).await })
                })).await
            })*)?
        }
    };
}
pub(crate) use operations;
