//! The one thread that writes: it takes all queued writes, commits them together, then answers.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use rusqlite::{Connection, ffi};
use tokio::sync::{mpsc, oneshot};

use crate::{Result, StoreError, StoreLoad, error::DatabaseRefusal};

/// Maximum length of the queue; a write that finds it full waits to be queued.
const QUEUE: usize = 1_024;
/// Maximum number of writes that share one commit.
const BATCH: usize = 256;

pub(super) struct SqliteWriter {
    queue: mpsc::Sender<WriterMessage>,
    commit_sizes: Histogram,
}

enum WriterMessage {
    Write(Box<dyn QueuedWrite>),
    Close(oneshot::Sender<()>),
}

/// A write in the queue.
trait QueuedWrite: Send {
    /// Does the work within the transaction, and returns whether to keep it.
    fn run(&mut self, tx: &mut Connection) -> SavepointEnd;
    /// Answers the caller, after the commit.
    fn answer(self: Box<Self>, commit: &CommitOutcome);
}

#[derive(PartialEq, Eq)]
enum SavepointEnd {
    Keep,
    Undo,
}

enum CommitOutcome {
    Done,
    Failed(Arc<rusqlite::Error>),
    /// SQLite undid the whole transaction when one write failed, as it does on a full disk.
    Undone,
    /// An earlier commit may or may not be on disk. A retry could acknowledge a lost write.
    DiskUnsure,
}

struct PendingWrite<T, W> {
    work: Option<W>,
    outcome: Option<Result<T>>,
    /// Decides from the result whether to keep the work.
    is_kept: fn(&T) -> bool,
    reply: oneshot::Sender<Result<T>>,
}

impl SqliteWriter {
    pub(super) fn start(connection: Connection) -> Result<Self> {
        let (queue, messages) = mpsc::channel(QUEUE);
        let commit_sizes = Histogram::new(exponential_buckets(1.0, 2.0, 9));
        let sizes = commit_sizes.clone();
        thread::Builder::new()
            .name("jurat-store".to_owned())
            .spawn(move || work_off(connection, messages, &sizes))
            .map_err(StoreError::unavailable)?;
        Ok(Self { queue, commit_sizes })
    }

    /// The work in progress.
    pub(super) fn load(&self) -> StoreLoad {
        StoreLoad {
            writes_waiting: self.queue.max_capacity() - self.queue.capacity(),
            commit_sizes: Some(self.commit_sizes.clone()),
            connections: None,
        }
    }

    /// Returns when the work is committed.
    pub(super) async fn write<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    {
        self.write_kept(work, |_| true).await
    }

    /// Returns when the work is committed, or rolled back because `is_kept` rejects its result.
    pub(super) async fn write_kept<T, W>(&self, work: W, is_kept: fn(&T) -> bool) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let pending = PendingWrite { work: Some(work), outcome: None, is_kept, reply };
        self.queue.send(WriterMessage::Write(Box::new(pending))).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Returns when all writes queued before are done and the connection is closed.
    pub(super) async fn close(&self) {
        let (done, closing) = oneshot::channel();
        if self.queue.send(WriterMessage::Close(done)).await.is_ok() {
            // An error means that the thread ended before it saw the message.
            closing.await.ok();
        }
    }
}

impl fmt::Debug for SqliteWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteWriter").finish_non_exhaustive()
    }
}

/// The body of the thread; ends on a close, or when no writer is left.
fn work_off(
    mut connection: Connection,
    mut messages: mpsc::Receiver<WriterMessage>,
    sizes: &Histogram,
) {
    let mut is_disk_unsure = false;
    let mut batch: Vec<Box<dyn QueuedWrite>> = Vec::with_capacity(BATCH);
    let mut closing = None;
    while closing.is_none()
        && let Some(message) = messages.blocking_recv()
    {
        let mut next = Some(message);
        while let Some(message) = next {
            match message {
                WriterMessage::Write(write) => batch.push(write),
                WriterMessage::Close(done) => closing = Some(done),
            }
            let is_full = batch.len() == BATCH || closing.is_some();
            next = if is_full { None } else { messages.try_recv().ok() };
        }
        let commit = if is_disk_unsure {
            CommitOutcome::DiskUnsure
        } else {
            commit(&mut connection, &mut batch)
        };
        is_disk_unsure = is_disk_unsure || commit.leaves_disk_unsure();
        if let Ok(size @ 1..) = u32::try_from(batch.len()) {
            sizes.observe(f64::from(size));
        }
        for write in batch.drain(..) {
            write.answer(&commit);
        }
    }
    // Writes that are still queued are refused before the last lock is released.
    drop(messages);
    if let Err((_, error)) = connection.close() {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the database did not close cleanly"
        );
    }
    if let Some(done) = closing {
        done.send(()).ok();
    }
}

fn commit(connection: &mut Connection, batch: &mut [Box<dyn QueuedWrite>]) -> CommitOutcome {
    if batch.is_empty() {
        return CommitOutcome::Done;
    }
    let error = match try_commit(connection, batch) {
        Ok(commit) => return commit,
        Err(error) => error,
    };
    tracing::error!(
        error = &error as &dyn std::error::Error,
        store.writes = batch.len(),
        "the database rejected a group of writes"
    );
    if !connection.is_autocommit()
        && let Err(error) = connection.execute_batch("rollback")
    {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "could not roll back a failed write"
        );
    }
    CommitOutcome::Failed(Arc::new(error))
}

fn try_commit(
    connection: &mut Connection,
    batch: &mut [Box<dyn QueuedWrite>],
) -> rusqlite::Result<CommitOutcome> {
    run(connection, "begin immediate")?;
    for write in batch {
        run(connection, "savepoint one_write")?;
        if write.run(connection) == SavepointEnd::Undo {
            // Without this check the next write would run outside any transaction.
            if connection.is_autocommit() {
                return Ok(CommitOutcome::Undone);
            }
            run(connection, "rollback to one_write")?;
        }
        run(connection, "release one_write")?;
    }
    run(connection, "commit")?;
    Ok(CommitOutcome::Done)
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

impl<T, W> QueuedWrite for PendingWrite<T, W>
where
    T: Send,
    W: FnOnce(&mut Connection) -> Result<T> + Send,
{
    fn run(&mut self, tx: &mut Connection) -> SavepointEnd {
        // The thread must survive a write that panics, because no other thread writes. The changes
        // are rolled back, and nothing else is left behind, because the write owns everything it
        // uses.
        self.outcome = self.work.take().map(|work| {
            catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or_else(|_| Err(panicked()))
        });
        let is_kept = |outcome: &T| (self.is_kept)(outcome);
        let kept = self.outcome.as_ref().is_some_and(|it| it.as_ref().is_ok_and(is_kept));
        if kept { SavepointEnd::Keep } else { SavepointEnd::Undo }
    }

    fn answer(self: Box<Self>, commit: &CommitOutcome) {
        let outcome = match (self.outcome, commit) {
            (Some(outcome), CommitOutcome::Done) => outcome,
            // A write that failed by itself reports its own error.
            (Some(Err(error)), _) => Err(error),
            (_, CommitOutcome::Failed(error)) => Err(StoreError::unavailable(Arc::clone(error))),
            (_, CommitOutcome::Undone) => Err(StoreError::unavailable(DatabaseRefusal::Undone)),
            (_, CommitOutcome::DiskUnsure) => {
                Err(StoreError::unavailable(DatabaseRefusal::DiskUnsure))
            }
            (None, CommitOutcome::Done) => Err(closed()),
        };
        // The caller may have stopped waiting.
        self.reply.send(outcome).ok();
    }
}

impl CommitOutcome {
    fn leaves_disk_unsure(&self) -> bool {
        let Self::Failed(error) = self else { return false };
        let code = error.sqlite_error().map(|error| error.extended_code);
        matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
    }
}

fn panicked() -> StoreError {
    tracing::error!("a write panicked and was rolled back; the panic message shows where");
    StoreError::unavailable(DatabaseRefusal::Panicked)
}

fn closed() -> StoreError {
    StoreError::unavailable(DatabaseRefusal::Closed)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::StoreErrorKind;

    fn writer() -> SqliteWriter {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("create table notes (id integer primary key, text text)").unwrap();
        SqliteWriter::start(connection).unwrap()
    }

    fn insert(
        id: i64,
        bytes: usize,
    ) -> impl FnOnce(&mut Connection) -> Result<()> + Send + 'static {
        move |tx| {
            tx.execute("insert into notes (id, text) values (?1, ?2)", (id, "x".repeat(bytes)))?;
            Ok(())
        }
    }

    async fn kept(writer: &SqliteWriter) -> i64 {
        let count = |tx: &mut Connection| {
            Ok(tx.query_row("select count(*) from notes", [], |row| row.get(0))?)
        };
        writer.write(count).await.unwrap()
    }

    /// Blocks the writer while the other writes queue, so that they share one commit.
    async fn together<T>(writer: &SqliteWriter, others: impl Future<Output = T>) -> T {
        let (begun, holding) = oneshot::channel();
        let (open, gate) = mpsc::channel::<()>();
        let held = writer.write(move |_: &mut Connection| {
            begun.send(()).unwrap();
            gate.recv().map_err(StoreError::unavailable)
        });
        let meanwhile = async {
            // Nothing is queued earlier, because it could share the commit of the blocking write.
            holding.await.unwrap();
            tokio::join!(others, async { open.send(()).unwrap() }).0
        };
        tokio::join!(held, meanwhile).1
    }

    #[tokio::test]
    async fn one_failing_write_does_not_undo_its_batch() {
        let writer = writer();
        let others = async {
            tokio::join!(
                writer.write(insert(1, 10)),
                writer.write(insert(1, 10)),
                writer.write(|tx| {
                    tx.execute("insert into notes (id) values (7)", [])?;
                    Err::<(), _>(closed())
                }),
                writer.write(insert(2, 10)),
            )
        };
        let (first, again, other, last) = together(&writer, others).await;
        first.unwrap();
        last.unwrap();
        assert_eq!(again.unwrap_err().kind, StoreErrorKind::Conflict);
        assert!(other.is_err());
        assert_eq!(kept(&writer).await, 2);
    }

    #[tokio::test]
    async fn a_write_that_panics_is_undone_and_the_next_ones_continue() {
        let writer = writer();
        let others = async {
            tokio::join!(
                writer.write(insert(1, 10)),
                writer.write(|tx: &mut Connection| -> Result<()> {
                    tx.execute("insert into notes (id) values (7)", [])?;
                    panic!("a bug")
                }),
                writer.write(insert(2, 10)),
            )
        };
        let (before, panicking, after) = together(&writer, others).await;
        before.unwrap();
        after.unwrap();
        assert_eq!(panicking.unwrap_err().kind, StoreErrorKind::Unavailable);
        assert_eq!(kept(&writer).await, 2);
    }

    #[tokio::test]
    async fn a_full_disk_acknowledges_nothing_that_is_lost_and_recovers() {
        let writer = writer();
        let limit = |pages: i64| {
            move |tx: &mut Connection| Ok(tx.pragma_update(None, "max_page_count", pages)?)
        };
        writer.write(insert(1, 10)).await.unwrap();
        writer.write(limit(4)).await.unwrap();
        let others = async {
            tokio::join!(
                writer.write(insert(2, 10)),
                writer.write(insert(3, 100_000)),
                writer.write(insert(4, 10)),
            )
        };
        let (before, large, after) = together(&writer, others).await;
        // All three shared the transaction that SQLite undid.
        for refused in [before, large, after] {
            assert_eq!(refused.unwrap_err().kind, StoreErrorKind::Unavailable);
        }
        assert_eq!(kept(&writer).await, 1);
        writer.write(limit(1_000)).await.unwrap();
        writer.write(insert(3, 100_000)).await.unwrap();
        assert_eq!(kept(&writer).await, 2);
    }

    #[tokio::test]
    async fn writes_queued_before_the_close_are_done() {
        let writer = writer();
        let (written, ()) = tokio::join!(writer.write(insert(1, 10)), writer.close());
        written.unwrap();
        let late = writer.write(insert(2, 10)).await.unwrap_err();
        assert_eq!(late.kind, StoreErrorKind::Unavailable);
        writer.close().await;
    }

    #[test]
    fn only_a_failed_fsync_leaves_the_disk_in_doubt() {
        let failed = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            CommitOutcome::Failed(Arc::new(error)).leaves_disk_unsure()
        };
        assert!(failed(ffi::SQLITE_IOERR_FSYNC));
        assert!(!failed(ffi::SQLITE_FULL));
        assert!(!failed(ffi::SQLITE_BUSY));
    }
}
