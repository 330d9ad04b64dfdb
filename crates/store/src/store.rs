//! The store: one database behind families of operations.

use std::{fmt, path::Path, sync::Arc};

use crate::{
    Behalf, IdempotencyRecord, Result, StoreError, StoreLoad, StoreLocation, WriteOutcome,
    db::{
        idempotency::{Note, write_once},
        postgres::{self, Postgres},
        sqlite::Sqlite,
        tx::{Tx, TxFuture},
    },
    error::DatabaseRefusal,
};

/// The data of an installation. Each operation is one transaction, and a write that returns `Ok` is
/// on disk. Operations are grouped in families, such as `store.rounds()` or `store.keys()`; the
/// first argument of each is the account on whose behalf it runs.
pub struct Store {
    database: Database,
    faults: Option<FaultPlan>,
}

#[derive(Debug)]
enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// The family of an operation, and its name.
pub type OperationName = (&'static str, &'static str);

/// Decides which operations fail, to test the code that uses the store.
pub type FaultPlan = Arc<dyn Fn(OperationName) -> Option<WriteFault> + Send + Sync>;

/// The way in which an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// The operation is not carried out.
    Refused,
    /// The operation is carried out, but its answer is lost.
    AnswerLost,
}

impl Store {
    /// Opens and migrates the file. A missing file is created with mode 0600.
    pub async fn sqlite(path: &Path) -> Result<Self> {
        Ok(Self { database: Database::Sqlite(Sqlite::open(path).await?), faults: None })
    }

    /// A store whose data is lost when it is dropped.
    pub fn in_memory() -> Result<Self> {
        Ok(Self { database: Database::Sqlite(Sqlite::in_memory()?), faults: None })
    }

    /// Connects to a database that has the schema this program needs. The role needs no right to
    /// change the schema. `options[search_path]` in the URL selects the schema.
    pub async fn postgres(url: &str) -> Result<Self> {
        Ok(Self { database: Database::Postgres(Postgres::connect(url).await?), faults: None })
    }

    /// Injects the failures that the plan selects.
    #[must_use]
    pub fn with_faults(self, plan: FaultPlan) -> Self {
        Self { faults: Some(plan), ..self }
    }

    /// Checks that the store can be written to.
    pub async fn ping(&self) -> Result<()> {
        match &self.database {
            Database::Sqlite(sqlite) => sqlite.ping().await,
            Database::Postgres(postgres) => postgres.ping().await,
        }
    }

    /// The work in progress at this moment.
    pub fn load(&self) -> StoreLoad {
        match &self.database {
            Database::Sqlite(sqlite) => sqlite.load(),
            Database::Postgres(postgres) => postgres.load(),
        }
    }

    /// Finishes the queued work and releases the database. Later calls fail with `Unavailable`.
    pub async fn close(&self) {
        match &self.database {
            Database::Sqlite(sqlite) => sqlite.close().await,
            Database::Postgres(postgres) => postgres.close().await,
        }
    }

    /// Runs an operation that only reads.
    pub(crate) async fn read<T, W>(
        &self,
        name: OperationName,
        behalf: &Behalf,
        work: W,
    ) -> Result<T>
    where
        T: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T> + Send + 'static,
    {
        let fault = self.fault(name)?;
        let found = match &self.database {
            Database::Sqlite(sqlite) => sqlite.read(work).await?,
            Database::Postgres(postgres) => postgres.read(behalf, work).await?,
        };
        fault.map_or(Ok(found), |_| Err(closed()))
    }

    /// Runs an operation that cannot be refused.
    pub(crate) async fn change<T, W>(
        &self,
        name: OperationName,
        behalf: &Behalf,
        work: W,
    ) -> Result<T>
    where
        T: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T> + Send + 'static,
    {
        self.commit(name, behalf, work, |_| true).await
    }

    /// Runs an operation that may be refused, and at most once per idempotency key.
    pub(crate) async fn write<T, R, W>(
        &self,
        name: OperationName,
        behalf: &Behalf,
        idempotency: Option<&IdempotencyRecord<T>>,
        work: W,
    ) -> Result<WriteOutcome<T, R>>
    where
        T: Send + 'static,
        R: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, Result<T, R>> + Send + 'static,
    {
        let note = idempotency.map(Note::of_write);
        self.write_noted(name, behalf, note, work).await
    }

    /// Like `write`, with a note that may name a round.
    pub(crate) async fn write_noted<T, R, W>(
        &self,
        name: OperationName,
        behalf: &Behalf,
        note: Option<Note<T>>,
        work: W,
    ) -> Result<WriteOutcome<T, R>>
    where
        T: Send + 'static,
        R: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, Result<T, R>> + Send + 'static,
    {
        let write =
            self.commit(name, behalf, move |tx| write_once(tx, note, work), WriteOutcome::is_done);
        write.await
    }

    /// Runs an operation that consists of one statement. PostgreSQL commits it by itself, which
    /// saves a message each way.
    pub(crate) async fn statement<T, W>(
        &self,
        name: OperationName,
        behalf: &Behalf,
        work: W,
    ) -> Result<T>
    where
        T: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T> + Send + 'static,
    {
        let fault = self.fault(name)?;
        let done = match &self.database {
            Database::Sqlite(sqlite) => sqlite.write(work, |_| true).await?,
            Database::Postgres(postgres) => postgres.statement(behalf, work).await?,
        };
        fault.map_or(Ok(done), |_| Err(closed()))
    }

    /// Runs an operation, and rolls it back if `is_kept` rejects its result.
    async fn commit<T, W>(
        &self,
        name: OperationName,
        behalf: &Behalf,
        work: W,
        is_kept: fn(&T) -> bool,
    ) -> Result<T>
    where
        T: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T> + Send + 'static,
    {
        let fault = self.fault(name)?;
        let done = match &self.database {
            Database::Sqlite(sqlite) => sqlite.write(work, is_kept).await?,
            Database::Postgres(postgres) => postgres.write(behalf, work, is_kept).await?,
        };
        fault.map_or(Ok(done), |_| Err(closed()))
    }

    /// The fault of an operation whose answer is lost; an error for an operation that is refused.
    fn fault(&self, name: OperationName) -> Result<Option<WriteFault>> {
        match self.faults.as_ref().and_then(|plan| plan(name)) {
            Some(WriteFault::Refused) => Err(closed()),
            fault => Ok(fault),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("database", &self.database).finish_non_exhaustive()
    }
}

fn closed() -> StoreError {
    StoreError::unavailable(DatabaseRefusal::Closed)
}

/// Opens the store, creates or migrates its tables, and checks that this program can serve them.
pub async fn open(location: &StoreLocation) -> Result<Arc<Store>> {
    Ok(Arc::new(match location {
        StoreLocation::Memory => Store::in_memory()?,
        StoreLocation::File(path) => Store::sqlite(path).await?,
        StoreLocation::Postgres { url, migrate_url: None } => Store::postgres(url).await?,
        StoreLocation::Postgres { url, migrate_url: Some(migrate_url) } => {
            let role = postgres::role_of(url)?;
            migrate_postgres(migrate_url, Some(&role)).await?;
            Store::postgres(url).await?
        }
    }))
}

/// Creates or migrates the tables with a role that has the right to, and grants the serving role
/// access to them. Any number of nodes may do this at the same time.
pub async fn migrate_postgres(url: &str, serving_role: Option<&str>) -> Result<()> {
    Postgres::migrate(url, serving_role).await
}
