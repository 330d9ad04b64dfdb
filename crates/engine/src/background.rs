//! Tracks background tasks: none is detached, and shutdown stops them and waits.

use std::{future::Future, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Waits for a time and for nothing else. Use it only if there is no event to wait for.
pub async fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the one function that sleeps")]
    tokio::time::sleep(span).await;
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Background {
    tracker: TaskTracker,
    stopping: CancellationToken,
}

impl Background {
    /// Runs work that shutdown waits for.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn(work)
    }

    /// Runs work that does not end by itself.
    pub(crate) fn until_shutdown(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.tracker.spawn(async move { stopping.run_until_cancelled(work).await });
    }

    /// Repeats work until shutdown.
    pub(crate) fn repeat_every<F: Future<Output = ()> + Send>(
        &self,
        period: Duration,
        mut work: impl FnMut() -> F + Send + 'static,
    ) {
        let stopping = self.stopping.clone();
        self.tracker.spawn(async move {
            let mut ticks = tokio::time::interval(period);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = stopping.cancelled() => return,
                    _ = ticks.tick() => {}
                }
                tokio::select! {
                    () = stopping.cancelled() => return,
                    ended = AssertUnwindSafe(work()).catch_unwind() => {
                        if ended.is_err() {
                            tracing::error!("background work panicked and is being restarted");
                        }
                    }
                }
            }
        });
    }

    pub(crate) async fn shutdown(&self) {
        self.stopping.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
