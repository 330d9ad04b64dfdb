//! The calls of one driver: those in progress, and those that ended and are not recorded.

use std::{collections::BTreeSet, future::Future, pin::pin};

use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};

use super::worker_answer::FinishedTaskCall;

#[derive(Default)]
pub(crate) struct TaskCallsInFlight<'a> {
    pub(crate) calls: FuturesUnordered<BoxFuture<'a, FinishedTaskCall>>,
    /// The leases of the calls.
    pub(crate) leases: BTreeSet<u64>,
    /// Calls that ended and are not recorded.
    pub(crate) finished: Vec<FinishedTaskCall>,
}

impl TaskCallsInFlight<'_> {
    /// Waits for a call to end; for ever if there is none.
    pub(crate) async fn next(&mut self) {
        match self.calls.next().await {
            Some(ended) => {
                self.leases.remove(&ended.lease.token);
                self.finished.push(ended);
            }
            None => std::future::pending().await,
        }
    }

    /// Does other work while the calls continue. A suspended call might hold a resource that the
    /// other work needs, such as a connection to the store.
    pub(crate) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.next() => {}
            }
        }
    }
}
