//! Work that a shutdown waits for: connections, and executions that may outlive their callers.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[derive(Debug, Clone, Default)]
pub(crate) struct BackgroundTasks {
    tracker: TaskTracker,
    out_of_patience: CancellationToken,
}

impl BackgroundTasks {
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let out_of_patience = self.out_of_patience.clone();
        self.tracker.spawn(async move { out_of_patience.run_until_cancelled(work).await });
    }

    /// Waits for all work. Work that takes longer than the grace period is dropped, because an
    /// executor that hangs would keep the process running for ever.
    pub(crate) async fn stop(&self, grace: Duration) {
        self.tracker.close();
        drop(tokio::time::timeout(grace, self.tracker.wait()).await);
        self.out_of_patience.cancel();
    }
}
