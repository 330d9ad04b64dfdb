//! The search for workers of a task, which may take longer than a pass of its driver.

use futures::future::BoxFuture;

use crate::tasks::{TaskPortError, TaskWorker};

/// How far the search for workers has come.
#[derive(Default)]
pub(super) enum WorkerSearch<'a> {
    /// It starts when there is work to give out.
    #[default]
    Due,
    /// It takes long, and continues while the driver waits.
    Running(BoxFuture<'a, Result<Vec<TaskWorker>, TaskPortError>>),
    /// Its result is not used yet.
    Ended(Result<Vec<TaskWorker>, TaskPortError>),
    /// The workers are those of this look at the task.
    Done,
}

impl WorkerSearch<'_> {
    /// Drops a search that no work needs any more.
    pub(super) fn cancel(&mut self) {
        if !matches!(self, Self::Done) {
            *self = Self::Due;
        }
    }

    /// Waits for a running search to end; forever, if there is none.
    pub(super) async fn finish(&mut self) {
        match self {
            Self::Running(search) => {
                let found = search.await;
                *self = Self::Ended(found);
            }
            Self::Due | Self::Ended(_) | Self::Done => std::future::pending().await,
        }
    }
}
