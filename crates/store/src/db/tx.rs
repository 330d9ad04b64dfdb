//! Operations that are written once and run on both databases.
//!
//! An operation is a function over a `Tx`. On SQLite its statements end at once, so the function is
//! driven to its end on the thread of the writer; on PostgreSQL it waits for each.

use std::future::Future;

use jurat_core::{id::AccountId, idempotency::SavedAnswer, time::Timestamp};
use rusqlite::{Connection, types::ToSqlOutput};
use sqlx::{
    PgConnection, Postgres as PgDatabase,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use super::{
    idempotency::IdempotencyRecord,
    rows::{
        DbRow,
        idempotency::{IdempotencyRow, status},
        to_bigint,
    },
};
use crate::{Result, StoreError, error::DatabaseRefusal};

/// On whose behalf the database is asked: PostgreSQL shows no more than that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behalf {
    Account(AccountId),
    /// The installation itself, across accounts.
    Platform,
}

/// How a write ended. What is not `Done` changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// A value that a statement is given.
#[derive(Debug, Clone)]
pub(crate) enum SqlArg {
    Text(Option<String>),
    Number(Option<i64>),
    Bytes(Vec<u8>),
}

/// A transaction on either database.
pub(crate) trait Tx {
    /// Runs a statement and returns how many rows it changed.
    fn run(&mut self, text: &'static str, args: Vec<SqlArg>) -> impl Future<Output = Result<u64>>;

    /// All rows of a question.
    fn all<T>(
        &mut self,
        text: &'static str,
        args: Vec<SqlArg>,
        read: fn(&dyn DbRow) -> Result<T>,
    ) -> impl Future<Output = Result<Vec<T>>>;

    /// Lets others who name the same thing wait until this transaction ends. Whoever needs several
    /// names them in ascending order. It is called before the first look at what it protects.
    fn lock(&mut self, what: &str) -> impl Future<Output = Result<()>>;

    /// The text for this database, where the two need different ones: SQLite's and PostgreSQL's.
    fn own(&self, texts: (&'static str, &'static str)) -> &'static str;

    /// The first row of a question.
    async fn first<T>(
        &mut self,
        text: &'static str,
        args: Vec<SqlArg>,
        read: fn(&dyn DbRow) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.all(text, args, read).await?.into_iter().next())
    }
}

/// A change of the rows that a question finds, for both databases: the rows are known by where they
/// stand, so that none is looked for twice, and one that somebody else holds is passed over.
macro_rules! of_found {
    ($change:expr, $found:expr, $rest:expr) => {
        (
            concat!($change, " where rowid in (select rowid from ", $found, ")", $rest),
            concat!(
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

impl rusqlite::ToSql for SqlArg {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Number(number) => number.to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
        }
    }
}

pub(crate) struct SqliteTx<'a>(pub(crate) &'a Connection);

impl SqliteTx<'_> {
    fn query<T>(
        &self,
        text: &str,
        args: &[SqlArg],
        read: fn(&dyn DbRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.0.prepare_cached(text)?;
        let rows = statement.query_and_then(rusqlite::params_from_iter(args), |row| read(row))?;
        rows.collect()
    }

    fn execute(&self, text: &str, args: &[SqlArg]) -> Result<u64> {
        let changed = self.0.prepare_cached(text)?.execute(rusqlite::params_from_iter(args))?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }
}

impl Tx for SqliteTx<'_> {
    async fn run(&mut self, text: &'static str, args: Vec<SqlArg>) -> Result<u64> {
        self.execute(text, &args)
    }

    async fn all<T>(
        &mut self,
        text: &'static str,
        args: Vec<SqlArg>,
        read: fn(&dyn DbRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.query(text, &args, read)
    }

    async fn lock(&mut self, _: &str) -> Result<()> {
        // Only one thread writes.
        Ok(())
    }

    fn own(&self, (sqlite, _): (&'static str, &'static str)) -> &'static str {
        sqlite
    }
}

pub(crate) struct PgTx<'a>(pub(crate) &'a mut PgConnection);

fn bind(text: &'static str, args: Vec<SqlArg>) -> Query<'static, PgDatabase, PgArguments> {
    args.into_iter().fold(sqlx::query(text), |query, arg| match arg {
        SqlArg::Text(text) => query.bind(text),
        SqlArg::Number(number) => query.bind(number),
        SqlArg::Bytes(bytes) => query.bind(bytes),
    })
}

impl Tx for PgTx<'_> {
    async fn run(&mut self, text: &'static str, args: Vec<SqlArg>) -> Result<u64> {
        Ok(bind(text, args).execute(&mut *self.0).await?.rows_affected())
    }

    async fn all<T>(
        &mut self,
        text: &'static str,
        args: Vec<SqlArg>,
        read: fn(&dyn DbRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows: Vec<PgRow> = bind(text, args).fetch_all(&mut *self.0).await?;
        rows.iter().map(|row| read(row)).collect()
    }

    async fn lock(&mut self, what: &str) -> Result<()> {
        // The first number keeps these locks apart from that of the migrations.
        const LOCK: &str = "select pg_advisory_xact_lock(1785036917, hashtext($1))";
        sqlx::query(LOCK).bind(what).execute(&mut *self.0).await?;
        Ok(())
    }

    fn own(&self, (_, postgres): (&'static str, &'static str)) -> &'static str {
        postgres
    }
}

/// Drives an operation whose statements all end at once.
pub(crate) fn at_once<T>(operation: impl Future<Output = Result<T>>) -> Result<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(operation).poll(&mut context) {
        std::task::Poll::Ready(outcome) => outcome,
        std::task::Poll::Pending => Err(StoreError::unavailable(DatabaseRefusal::Panicked)),
    }
}

/// A connection keeps the types of a statement by its text, and here every number is a large one:
/// these are not the texts of the notes elsewhere.
const IDEMPOTENCY_ADD: &str = "\
    insert into idempotency (\
        account_id, key, operation, request_digest, round_id, status, answer, created_at) \
    values ($1, $2, $3, $4, $5, cast($6 as smallint), $7, $8) on conflict do nothing";
const IDEMPOTENCY_ANSWER: &str = "\
    update idempotency set status = cast($1 as smallint), answer = $2 \
    where account_id = $3 and key = $4";

/// Notes the write before it is done; `false` when it was done before. Another transaction that
/// notes the same key is waited for, and what is not kept takes the note back.
pub(crate) async fn reserve_key(
    tx: &mut impl Tx,
    idempotency: Option<&IdempotencyRecord>,
) -> Result<bool> {
    let Some(idempotency) = idempotency.map(IdempotencyRow::new) else { return Ok(true) };
    let answer = idempotency.known();
    let round: Option<&str> = None;
    let args = args![
        &idempotency.account_id,
        &idempotency.key,
        &idempotency.operation,
        &idempotency.request_digest,
        round,
        answer.as_ref().map_or(SqlArg::Number(None), |it| i64::from(status(it.status)).into()),
        answer.as_ref().map(|it| it.text.as_str()),
        idempotency.created_at
    ];
    Ok(tx.run(IDEMPOTENCY_ADD, args).await? == 1)
}

/// Adds the answer that is known only after the write.
pub(crate) async fn save_answer(
    tx: &mut impl Tx,
    idempotency: Option<&IdempotencyRecord>,
    answer: Option<SavedAnswer>,
) -> Result<()> {
    let (Some(idempotency), Some(answer)) = (idempotency, answer) else { return Ok(()) };
    let code = i64::from(status(answer.status));
    let args = args![code, answer.text, &idempotency.account, &idempotency.key];
    tx.run(IDEMPOTENCY_ANSWER, args).await.map(drop)
}

/// A write within its transaction: not at all if it was done before, and noted if it is done now.
macro_rules! idempotent_write {
    ($tx:ident, $idempotency:ident, $write:expr) => {
        if $crate::db::tx::reserve_key(&mut $tx, $idempotency).await? {
            match $write.await? {
                Err(refused) => $crate::WriteOutcome::Refused(refused),
                Ok(result) => {
                    let answer =
                        $idempotency.and_then(|idempotency| idempotency.answer.of_result(&result));
                    $crate::db::tx::save_answer(&mut $tx, $idempotency, answer).await?;
                    $crate::WriteOutcome::Done(result)
                }
            }
        } else {
            $crate::WriteOutcome::Repeated
        }
    };
}
pub(crate) use idempotent_write;

/// What an operation returns when it is called through a trait.
pub(crate) type StoreFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A part of the store whose operations are written once: declares its trait, and does it for both
/// databases. Each of `reads` is one look at the database. Each of `writes` is one transaction,
/// which is undone when it is refused.
macro_rules! operations {
    (
        $(#[$doc:meta])*
        pub trait $part:ident;
        reads {
            $($(#[$r_doc:meta])* fn $read:ident($($r_arg:ident: &$r_type:ty),*) -> $found:ty
                = $r_operation:path;)*
        }
        writes {
            $($(#[$w_doc:meta])* fn $write:ident($($w_arg:ident: &$w_type:ty),*)
                -> $done:ty, or $refused:ty = $w_operation:path;)*
        }
    ) => {
        $(#[$doc])*
        pub trait $part: Send + Sync {
            $($(#[$r_doc])* fn $read<'a>(
                &'a self, behalf: &'a $crate::Behalf, $($r_arg: &'a $r_type),*
            ) -> $crate::db::tx::StoreFuture<'a, $found>;)*
            $($(#[$w_doc])* fn $write<'a>(
                &'a self, behalf: &'a $crate::Behalf, $($w_arg: &'a $w_type,)*
                idempotency: Option<&'a $crate::IdempotencyRecord>,
            ) -> $crate::db::tx::StoreFuture<'a, $crate::WriteOutcome<$done, $refused>>;)*
        }

        impl $part for $crate::Sqlite {
            $(fn $read<'a>(
                &'a self, _: &'a $crate::Behalf, $($r_arg: &'a $r_type),*
            ) -> $crate::db::tx::StoreFuture<'a, $found> {
                $(let $r_arg = $r_arg.to_owned();)*
                Box::pin(self.read(move |connection| {
                    let mut tx = $crate::db::tx::SqliteTx(connection);
                    $crate::db::tx::at_once($r_operation(&mut tx, $(&$r_arg),*))
                }))
            })*
            $(fn $write<'a>(
                &'a self, _: &'a $crate::Behalf, $($w_arg: &'a $w_type,)*
                idempotency: Option<&'a $crate::IdempotencyRecord>,
            ) -> $crate::db::tx::StoreFuture<'a, $crate::WriteOutcome<$done, $refused>> {
                $(let $w_arg = $w_arg.to_owned();)*
                let idempotency = idempotency.cloned();
                let work = move |connection: &rusqlite::Connection| {
                    let mut tx = $crate::db::tx::SqliteTx(connection);
                    $crate::db::tx::at_once(async {
                        let idempotency = idempotency.as_ref();
                        Ok($crate::db::tx::idempotent_write!(
                            tx, idempotency, $w_operation(&mut tx, $(&$w_arg),*)
                        ))
                    })
                };
                Box::pin(self.write_kept(work, $crate::WriteOutcome::is_done))
            })*
        }

        impl $part for $crate::Postgres {
            $(fn $read<'a>(
                &'a self, behalf: &'a $crate::Behalf, $($r_arg: &'a $r_type),*
            ) -> $crate::db::tx::StoreFuture<'a, $found> {
                Box::pin(async move {
                    let mut transaction = self.begin(behalf).await?;
                    let mut tx = $crate::db::tx::PgTx(&mut transaction);
                    let found = $r_operation(&mut tx, $($r_arg),*).await?;
                    transaction.rollback().await?;
                    Ok(found)
                })
            })*
            $(fn $write<'a>(
                &'a self, behalf: &'a $crate::Behalf, $($w_arg: &'a $w_type,)*
                idempotency: Option<&'a $crate::IdempotencyRecord>,
            ) -> $crate::db::tx::StoreFuture<'a, $crate::WriteOutcome<$done, $refused>> {
                Box::pin(async move {
                    let mut transaction = self.begin(behalf).await?;
                    let mut tx = $crate::db::tx::PgTx(&mut transaction);
                    let written = $crate::db::tx::idempotent_write!(
                        tx, idempotency, $w_operation(&mut tx, $($w_arg),*)
                    );
                    if written.is_done() {
                        transaction.commit().await?;
                    } else {
                        transaction.rollback().await?;
                    }
                    Ok(written)
                })
            })*
        }
    };
}
pub(crate) use operations;
