//! The connections that read while the writer writes.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::setup;
use crate::{Result, StoreError, error::DatabaseRefusal};

const READERS: u32 = 4;

pub(super) struct SqliteReaders {
    /// One permit for each idle connection.
    free: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl SqliteReaders {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let connections = (0..READERS).map(|_| setup::open_reader(path));
        let idle = connections.collect::<Result<Vec<Connection>>>()?;
        Ok(Self { free: Arc::new(Semaphore::new(idle.len())), idle: Arc::new(Mutex::new(idle)) })
    }

    pub(super) async fn read<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| closed())?;
        let idle = Arc::clone(&self.idle);
        let reading = tokio::task::spawn_blocking(move || {
            let mut connection = idle.lock().pop().ok_or_else(closed)?;
            // A read that panics must not lose its connection.
            let outcome = catch_unwind(AssertUnwindSafe(|| at_one_moment(&mut connection, work)));
            let ended = end(&connection);
            idle.lock().push(connection);
            // Released here, so that no connection is lost if the caller stops waiting.
            drop(permit);
            let found = outcome.unwrap_or_else(|_| Err(panicked()))?;
            ended.map(|()| found)
        });
        reading.await.map_err(StoreError::unavailable)?
    }

    /// Waits for reads in progress, then closes the connections.
    pub(super) async fn close(&self) {
        if let Ok(every) = self.free.acquire_many(READERS).await {
            self.free.close();
            self.idle.lock().clear();
            drop(every);
        }
    }
}

impl fmt::Debug for SqliteReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteReaders").finish_non_exhaustive()
    }
}

/// Lets all statements of the work see the same state.
fn at_one_moment<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T>,
) -> Result<T> {
    connection.execute_batch("begin")?;
    work(connection)
}

/// Ends the transaction of a read. It only reads, so the rollback loses nothing.
fn end(connection: &Connection) -> Result<()> {
    if connection.is_autocommit() {
        return Ok(());
    }
    Ok(connection.execute_batch("rollback")?)
}

fn panicked() -> StoreError {
    tracing::error!("a read panicked; the panic message shows where");
    StoreError::unavailable(DatabaseRefusal::Panicked)
}

fn closed() -> StoreError {
    StoreError::unavailable(DatabaseRefusal::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_read_that_panics_returns_its_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        drop(setup::open_file(&path).unwrap());
        let readers = SqliteReaders::open(&path).unwrap();
        for _ in 0..READERS {
            let error = readers.read(|_| -> Result<()> { panic!("a bug") }).await.unwrap_err();
            assert_eq!(error.kind, crate::StoreErrorKind::Unavailable);
        }
        readers.read(|_| Ok(())).await.unwrap();
    }
}
