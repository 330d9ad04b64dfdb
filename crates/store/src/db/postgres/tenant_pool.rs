//! The pool of connections. Each is taken on behalf of an account, and sees only that account's
//! rows.

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, PgPool, Postgres, Transaction,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{Behalf, ConnectionCounts, Result};

const CONNECTIONS: u32 = 16;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was idle for longer is tested before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// None of our statements should take long, and a slow one must not hold its connection for ever. A
/// wait for a lock ends sooner, and a node that stalls within a transaction loses it, so that its
/// locks do not stall every other node. Acknowledged writes are on disk, whatever the server's
/// default. A connection sees nothing until its account is set.
const SETTINGS: &str = "set statement_timeout = '10s'; set lock_timeout = '5s'; \
    set idle_in_transaction_session_timeout = '10s'; set synchronous_commit = on; \
    set jurat.account = ''";
/// Sets the account that the policies of the tables compare with their rows.
const SIGHT: &str = "select set_config('jurat.account', $1, false)";
/// Stands for every account; no account has this name.
const EVERYTHING: &str = "*";

/// The connections. None keeps the account of its previous user, because every way to take a
/// connection sets its account.
#[derive(Debug)]
pub(super) struct TenantPool {
    pool: PgPool,
}

impl TenantPool {
    pub(super) async fn connect(options: PgConnectOptions) -> Result<Self> {
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if TRUSTED_IDLE < meta.idle_for {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute(SETTINGS).await.map(drop) })
            })
            .connect_with(options)
            .await?;
        Ok(Self { pool })
    }

    /// A connection that sees the rows of an account.
    pub(super) async fn of(&self, behalf: &Behalf) -> Result<PoolConnection<Postgres>> {
        let mut connection = self.pool.acquire().await?;
        sqlx::query(SIGHT).bind(whose(behalf)).execute(&mut *connection).await?;
        Ok(connection)
    }

    /// Begins a transaction that sees the rows of an account, with one message.
    pub(super) async fn begin(&self, behalf: &Behalf) -> Result<Transaction<'static, Postgres>> {
        // The name of an account has only letters, digits and `_`.
        let begin = format!("begin; set local jurat.account = '{}'", whose(behalf));
        Ok(self.pool.begin_with(AssertSqlSafe(begin)).await?)
    }

    /// Like `begin`, for a read-only operation: all its statements see the same moment.
    pub(super) async fn begin_reading(
        &self,
        behalf: &Behalf,
    ) -> Result<Transaction<'static, Postgres>> {
        let begin = format!(
            "begin isolation level repeatable read read only; set local jurat.account = '{}'",
            whose(behalf)
        );
        Ok(self.pool.begin_with(AssertSqlSafe(begin)).await?)
    }

    pub(super) fn connections(&self) -> ConnectionCounts {
        let idle = u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX);
        ConnectionCounts { used: self.pool.size().saturating_sub(idle), idle }
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

fn whose(behalf: &Behalf) -> &str {
    match behalf {
        Behalf::Account(account) => account.as_str(),
        Behalf::Platform => EVERYTHING,
    }
}
