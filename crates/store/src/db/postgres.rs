//! PostgreSQL, shared by any number of nodes.

pub(crate) mod migrate;
mod role;
mod tenant_pool;

use std::str::FromStr as _;

use sqlx::{
    Connection as _, PgConnection, Row as _,
    postgres::{PgConnectOptions, PgRow},
};

use self::tenant_pool::TenantPool;
use super::{
    migrations,
    row::DbRow,
    tx::{Tx, TxFuture},
};
use crate::{Behalf, Result, StoreError, StoreLoad, error::DatabaseRefusal};

#[derive(Debug)]
pub(crate) struct Postgres {
    pool: TenantPool,
}

impl Postgres {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        // Tried first, because a pool retries until its timeout, and then reports only the timeout.
        PgConnection::connect_with(&options(url)?).await?.close().await?;
        let pool = TenantPool::connect(options(url)?).await?;
        let mut first = pool.of(&Behalf::Platform).await?;
        let found = migrate::version(&mut first).await?;
        migrations::check_served(found).map_err(StoreError::unavailable)?;
        role::check(&mut first).await?;
        drop(first);
        Ok(Self { pool })
    }

    pub(crate) async fn migrate(url: &str, serving_role: Option<&str>) -> Result<()> {
        migrate::run(&options(url)?, serving_role).await
    }

    /// Runs a read-only operation, which sees the database at one moment.
    pub(crate) async fn read<T, W>(&self, behalf: &Behalf, work: W) -> Result<T>
    where
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T>,
    {
        let mut transaction = self.pool.begin_reading(behalf).await?;
        let found = work(&mut Tx::postgres(&mut transaction)).await?;
        transaction.rollback().await?;
        Ok(found)
    }

    /// Runs an operation, and rolls it back if `is_kept` rejects its result.
    pub(crate) async fn write<T, W>(
        &self,
        behalf: &Behalf,
        work: W,
        is_kept: fn(&T) -> bool,
    ) -> Result<T>
    where
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T>,
    {
        let mut transaction = self.pool.begin(behalf).await?;
        let done = work(&mut Tx::postgres(&mut transaction)).await?;
        if is_kept(&done) {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        Ok(done)
    }

    /// Runs an operation that consists of one statement, which commits by itself.
    pub(crate) async fn statement<T, W>(&self, behalf: &Behalf, work: W) -> Result<T>
    where
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T>,
    {
        let mut connection = self.pool.of(behalf).await?;
        work(&mut Tx::postgres(&mut connection)).await
    }

    pub(crate) async fn ping(&self) -> Result<()> {
        let read_only: String =
            sqlx::query_scalar("select current_setting('transaction_read_only')")
                .fetch_one(&mut *self.pool.of(&Behalf::Platform).await?)
                .await?;
        // A standby answers too, but accepts no writes.
        if read_only == "on" {
            return Err(StoreError::unavailable(DatabaseRefusal::ReadOnly));
        }
        Ok(())
    }

    pub(crate) fn load(&self) -> StoreLoad {
        StoreLoad { connections: Some(self.pool.connections()), ..StoreLoad::default() }
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// The role that a URL logs in with.
pub(crate) fn role_of(url: &str) -> Result<String> {
    Ok(options(url)?.get_username().to_owned())
}

fn options(url: &str) -> Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?.application_name("jurat"))
}

impl DbRow for PgRow {
    fn text(
        &self,
        column: &str,
    ) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.try_get(column)?)
    }

    fn number(
        &self,
        column: &str,
    ) -> Result<Option<i64>, Box<dyn std::error::Error + Send + Sync>> {
        // Unchecked, because it reads small and big integers alike.
        Ok(self.try_get_unchecked(column)?)
    }

    fn bytes(
        &self,
        column: &str,
    ) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.try_get(column)?)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let contradicts = error.as_database_error().is_some_and(|error| {
            error.is_unique_violation()
                || error.is_foreign_key_violation()
                || error.is_check_violation()
        });
        if contradicts { Self::conflict(error) } else { Self::unavailable(error) }
    }
}

#[cfg(test)]
mod tests {
    use jurat_core::id::AccountId;
    use jurat_testkit::postgres::TestSchema;

    use super::*;

    #[tokio::test]
    async fn a_connection_overrides_unsafe_server_defaults() {
        let schema = TestSchema::served().await;
        let url = format!(
            "{}&options[synchronous_commit]=off&options[lock_timeout]=0\
             &options[idle_in_transaction_session_timeout]=0&options[statement_timeout]=0",
            schema.serving_url()
        );
        let store = Postgres::connect(&url).await.unwrap();
        let mut connection = store.pool.of(&Behalf::Platform).await.unwrap();
        for (name, expected) in [
            // Acknowledged writes are on disk.
            ("synchronous_commit", "on"),
            // A stalled node holds neither a connection nor a lock for long.
            ("statement_timeout", "10s"),
            ("lock_timeout", "5s"),
            ("idle_in_transaction_session_timeout", "10s"),
        ] {
            let setting: String = sqlx::query_scalar("select current_setting($1)")
                .bind(name)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            assert_eq!(setting, expected, "{name}");
        }
        drop(connection);
        store.close().await;
        schema.drop().await;
    }

    /// A connection keeps no trace of its previous account, whichever way it is taken.
    #[tokio::test]
    async fn a_reused_connection_shows_only_its_current_account() {
        let schema = TestSchema::served().await;
        let store = Postgres::connect(&schema.serving_url()).await.unwrap();
        let whose = async |connection: &mut PgConnection| -> String {
            let setting = sqlx::query_scalar("select current_setting('jurat.account')");
            setting.fetch_one(connection).await.unwrap()
        };
        let (alice, bob) = (AccountId::anonymous(1), AccountId::anonymous(2));
        for _ in 0..3 {
            let mut connection = store.pool.of(&Behalf::from(&alice)).await.unwrap();
            assert_eq!(whose(&mut connection).await, alice.as_str());
            drop(connection);
            let mut transaction = store.pool.begin(&Behalf::Account(bob.clone())).await.unwrap();
            assert_eq!(whose(&mut transaction).await, bob.as_str());
            transaction.rollback().await.unwrap();
            let mut transaction = store.pool.begin(&Behalf::Platform).await.unwrap();
            assert_eq!(whose(&mut transaction).await, "*");
            transaction.commit().await.unwrap();
            let mut connection = store.pool.of(&Behalf::from(&bob)).await.unwrap();
            assert_eq!(whose(&mut connection).await, bob.as_str());
        }
        store.close().await;
        schema.drop().await;
    }
}
