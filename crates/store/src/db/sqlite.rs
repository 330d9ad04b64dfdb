//! SQLite: one file, or memory. One thread writes, a few connections read.

mod readers;
pub(crate) mod setup;
mod writer;

use std::path::Path;

use rusqlite::{ErrorCode, Row};

use self::{readers::SqliteReaders, writer::SqliteWriter};
use super::{
    row::DbRow,
    tx::{Tx, TxFuture, complete},
};
use crate::{Result, StoreError, StoreLoad};

#[derive(Debug)]
pub(crate) struct Sqlite {
    writer: SqliteWriter,
    /// `None` in memory, where only the writer's connection has the tables.
    readers: Option<SqliteReaders>,
}

impl Sqlite {
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let opening = tokio::task::spawn_blocking(move || {
            let writing = setup::open_file(&path)?;
            let readers = SqliteReaders::open(&path)?;
            Ok(Self { writer: SqliteWriter::start(writing)?, readers: Some(readers) })
        });
        opening.await.map_err(StoreError::unavailable)?
    }

    pub(crate) fn in_memory() -> Result<Self> {
        Ok(Self { writer: SqliteWriter::start(setup::open_memory()?)?, readers: None })
    }

    /// Runs an operation, and rolls it back if `is_kept` rejects its result.
    pub(crate) async fn write<T, W>(&self, work: W, is_kept: fn(&T) -> bool) -> Result<T>
    where
        T: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T> + Send + 'static,
    {
        let write = self
            .writer
            .write_kept(move |connection| complete(work(&mut Tx::sqlite(connection))), is_kept);
        write.await
    }

    /// Runs an operation that only reads.
    pub(crate) async fn read<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> TxFuture<'t, T> + Send + 'static,
    {
        let Some(readers) = &self.readers else { return self.write(work, |_| true).await };
        readers.read(move |connection| complete(work(&mut Tx::sqlite(connection)))).await
    }

    pub(crate) async fn ping(&self) -> Result<()> {
        // Goes through the writer, because a store that cannot write is of no use.
        self.writer.write(|connection| Ok(connection.execute_batch("select 1")?)).await
    }

    pub(crate) fn load(&self) -> StoreLoad {
        self.writer.load()
    }

    pub(crate) async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        self.writer.close().await;
    }
}

impl DbRow for Row<'_> {
    fn text(
        &self,
        column: &str,
    ) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.get(column)?)
    }

    fn number(
        &self,
        column: &str,
    ) -> Result<Option<i64>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.get(column)?)
    }

    fn bytes(
        &self,
        column: &str,
    ) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.get(column)?)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) {
            Self::conflict(error)
        } else {
            Self::unavailable(error)
        }
    }
}
