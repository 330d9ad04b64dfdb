//! The loop that takes due work from the store, runs a limited number of items at a time, and sleeps
//! until more is due.

use std::{fmt::Display, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use jurat_core::time::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{Clock, background::pause};

/// How long to wait after a look that failed.
const RETRY_MS: u64 = 1_000;

/// The pace of a loop, and its signals.
pub(crate) struct DueLoop<'a> {
    pub(crate) clock: &'a dyn Clock,
    /// How many items may run concurrently.
    pub(crate) at_once: usize,
    /// The longest sleep: other nodes may have added work to the same store.
    pub(crate) longest_sleep: Duration,
    /// An item may be due now.
    pub(crate) wake: &'a Notify,
    /// The node stops.
    pub(crate) stop: &'a CancellationToken,
    /// How long running items may take after the end of the loop; `None` for no limit.
    pub(crate) grace: Option<Duration>,
}

/// The work of a loop.
pub(crate) trait DueWork {
    /// The result of a look.
    type Found;
    type Error: Display;
    /// A look in progress.
    type Look: Future<Output = Result<Self::Found, Self::Error>> + Unpin;
    /// The result of an item.
    type Ended;
    /// An item in progress.
    type Item: Future<Output = Self::Ended>;

    /// The name of the items in a log line.
    const ITEMS: &'static str;

    /// Looks for due items, and takes up to `free` of them.
    fn take(&mut self, now: Timestamp, free: usize) -> Self::Look;

    /// Starts the items of a look. Returns when to look again, if that is before the longest sleep.
    fn start(
        &mut self,
        found: Self::Found,
        running: &FuturesUnordered<Self::Item>,
    ) -> Option<Timestamp>;

    /// Takes the result of an item; `running` others are in progress. Returns when to look again, if
    /// that is before the planned time.
    fn ended(&mut self, ended: Self::Ended, running: usize) -> Option<Timestamp>;

    /// Whether the loop ends by itself.
    fn is_over(&self, _running: usize) -> bool {
        false
    }

    /// Whether a look that failed ends the loop.
    fn gives_up(&self, _running: usize) -> bool {
        false
    }

    /// Whether a look in progress is finished when the node stops, because its items could not be
    /// taken again for a long time.
    fn finishes_look(&self) -> bool {
        false
    }
}

/// The events that wake a loop.
enum LoopWake<F, E> {
    Stop,
    Found(F),
    Ended(E),
    Woken,
    Time,
}

type Wake<W> =
    LoopWake<Result<<W as DueWork>::Found, <W as DueWork>::Error>, <W as DueWork>::Ended>;

impl DueLoop<'_> {
    /// Runs until the node stops or the work is over, and then until the running items have ended.
    pub(crate) async fn run<W: DueWork>(&self, work: &mut W) -> Result<(), W::Error> {
        let mut running: FuturesUnordered<W::Item> = FuturesUnordered::new();
        let mut look: Option<W::Look> = None;
        let mut look_at = self.clock.now();
        let result = loop {
            let now = self.clock.now();
            let free = self.at_once.saturating_sub(running.len());
            if look.is_none() && free != 0 && look_at <= now {
                look = Some(work.take(now, free));
                look_at = now.plus_millis(millis(self.longest_sleep));
            }
            // If all slots are taken, the end of an item wakes the loop.
            let sleep = if free == 0 { self.longest_sleep } else { span(now, look_at) };
            let sooner = match self.next_wake::<W>(&mut look, &mut running, sleep).await {
                LoopWake::Stop => break Ok(()),
                LoopWake::Found(found) => {
                    look = None;
                    match found {
                        Ok(found) => work.start(found, &running),
                        Err(error) if work.gives_up(running.len()) => break Err(error),
                        Err(error) => {
                            tracing::warn!(items = W::ITEMS, error = %error, "could not look for due items");
                            Some(self.clock.now().plus_millis(RETRY_MS))
                        }
                    }
                }
                LoopWake::Ended(ended) => work.ended(ended, running.len()),
                // The sleep is over even if the clock was set back meanwhile.
                LoopWake::Woken | LoopWake::Time => Some(self.clock.now()),
            };
            look_at = sooner.map_or(look_at, |sooner| sooner.min(look_at));
            if work.is_over(running.len()) {
                break Ok(());
            }
        };
        if let Some(look) = look.filter(|_| work.finishes_look())
            && let Ok(found) = look.await
        {
            work.start(found, &running);
        }
        self.drain(work, running).await;
        result
    }

    async fn next_wake<W: DueWork>(
        &self,
        look: &mut Option<W::Look>,
        running: &mut FuturesUnordered<W::Item>,
        sleep: Duration,
    ) -> Wake<W> {
        let is_looking = look.is_some();
        let found = async {
            match look {
                Some(look) => look.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => LoopWake::Stop,
            found = found, if is_looking => LoopWake::Found(found),
            Some(ended) = running.next(), if !running.is_empty() => LoopWake::Ended(ended),
            () = self.wake.notified() => LoopWake::Woken,
            () = pause(sleep) => LoopWake::Time,
        }
    }

    async fn drain<W: DueWork>(&self, work: &mut W, mut running: FuturesUnordered<W::Item>) {
        let drained = async {
            while let Some(ended) = running.next().await {
                work.ended(ended, running.len());
            }
        };
        match self.grace {
            Some(grace) => drop(tokio::time::timeout(grace, drained).await),
            None => drained.await,
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// From now until then, in whole milliseconds and never too short.
fn span(now: Timestamp, until: Timestamp) -> Duration {
    Duration::from_millis(until.millis_since(now) + 1)
}
