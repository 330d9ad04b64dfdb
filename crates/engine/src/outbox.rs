//! Delivers the due messages of an outbox in the store, a limited number at a time, so that a slow
//! receiver does not delay the others. Agent events and webhooks share it.

use std::{marker::PhantomData, time::Duration};

use futures::{FutureExt as _, future::BoxFuture, stream::FuturesUnordered};
use jurat_core::{key_counts::KeyCounts, time::Timestamp};
use jurat_store::StoreError;
use tokio::sync::Notify;

use crate::{
    Engine,
    due_loop::{DueLoop, DueWork},
};

/// How many deliveries run concurrently.
const AT_ONCE: usize = 64;
/// How many concurrent deliveries one receiver may have before others come first.
const PER_RECEIVER: usize = 8;
/// Added to the timeout of an answer, for the write that follows.
const MARGIN_MS: u64 = 5_000;
/// The maximum sleep of a node: other nodes may have added messages to the same store.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The grace period for deliveries in progress when this node stops.
const GRACE: Duration = Duration::from_secs(2);

/// An outbox in the store: messages that are taken under a lease and delivered at least once.
pub(crate) trait MessageOutbox: 'static {
    type Message: Send;

    /// The name of the messages in a log line.
    const ITEMS: &'static str;

    /// The signal that a message may be due.
    fn wake(engine: &Engine) -> &Notify;

    /// How long a receiver may take to answer.
    fn timeout(engine: &Engine) -> Duration;

    /// Who receives a message.
    fn receiver(message: &Self::Message) -> &str;

    /// The time at which the next message is due.
    fn next_due(engine: &Engine) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// Takes due messages, except those for receivers that have enough to do.
    fn take(
        engine: &Engine,
        taking: OutboxTake,
    ) -> BoxFuture<'_, Result<Vec<Self::Message>, StoreError>>;

    /// Makes one attempt to deliver a message, and records its outcome.
    fn deliver(engine: &Engine, message: Self::Message) -> BoxFuture<'_, ()>;
}

/// The messages to take, and the time until which they are taken.
#[derive(Debug)]
pub(crate) struct OutboxTake {
    pub(crate) now: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) limit: u32,
    /// Receivers at their limit.
    pub(crate) without: Vec<String>,
}

/// The due messages, and when the next one is due.
struct DueMessages<M> {
    taken: Vec<M>,
    next: Option<Timestamp>,
}

/// The deliveries of a node as the work of a loop.
struct OutboxDelivery<'w, O> {
    engine: &'w Engine,
    /// The deliveries in progress to each receiver.
    busy: KeyCounts<String>,
    outbox: PhantomData<O>,
}

impl<'w, O: MessageOutbox> DueWork for OutboxDelivery<'w, O> {
    type Found = DueMessages<O::Message>;
    type Error = StoreError;
    type Look = BoxFuture<'w, Result<Self::Found, StoreError>>;
    /// The receiver of a message.
    type Ended = String;
    type Item = BoxFuture<'w, String>;

    const ITEMS: &'static str = O::ITEMS;

    fn take(&mut self, now: Timestamp, free: usize) -> Self::Look {
        let full = self.busy.iter().filter(|(_, count)| PER_RECEIVER <= **count);
        let without = full.map(|(receiver, _)| receiver.clone()).collect();
        self.engine.take_due_messages::<O>(now, free.min(PER_RECEIVER), without).boxed()
    }

    fn start(
        &mut self,
        found: Self::Found,
        running: &FuturesUnordered<Self::Item>,
    ) -> Option<Timestamp> {
        for message in found.taken {
            let receiver = O::receiver(&message).to_owned();
            self.busy.add(&receiver, 1);
            let delivered = O::deliver(self.engine, message).map(|()| receiver);
            running.push(delivered.boxed());
        }
        found.next
    }

    fn ended(&mut self, receiver: String, running: usize) -> Option<Timestamp> {
        // More messages may wait for this receiver, or for a slot.
        let was_full = self.busy.of(&receiver) == PER_RECEIVER || running + 1 == AT_ONCE;
        self.busy.remove(&receiver, 1);
        was_full.then(|| self.engine.inner.clock.now())
    }
}

impl Engine {
    /// Delivers the messages of an outbox until this node stops.
    pub(crate) fn deliver_outbox<O: MessageOutbox + Send>(&self) {
        let engine = self.clone();
        let _delivering = self.inner.background.spawn(async move {
            let due_loop = DueLoop {
                clock: &*engine.inner.clock,
                at_once: AT_ONCE,
                longest_sleep: LONGEST_SLEEP,
                wake: O::wake(&engine),
                stop: &engine.inner.stopping,
                grace: Some(GRACE),
            };
            let mut work = OutboxDelivery::<O> {
                engine: &engine,
                busy: KeyCounts::new(),
                outbox: PhantomData,
            };
            // The loop never gives up, so it does not end with an error.
            let _ended = due_loop.run(&mut work).await;
        });
    }

    /// Takes due messages. If there are none, nothing is written.
    async fn take_due_messages<O: MessageOutbox>(
        &self,
        now: Timestamp,
        limit: usize,
        without: Vec<String>,
    ) -> Result<DueMessages<O::Message>, StoreError> {
        let next = O::next_due(self).await?;
        if next.is_none_or(|at| now < at) {
            return Ok(DueMessages { taken: Vec::new(), next });
        }
        let window = u64::try_from(O::timeout(self).as_millis()).unwrap_or(u64::MAX);
        let taking = OutboxTake {
            now,
            until: now.plus_millis(window.saturating_add(MARGIN_MS)),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            without,
        };
        let taken = O::take(self, taking).await?;
        if limit <= taken.len() {
            return Ok(DueMessages { taken, next: Some(now) });
        }
        let next = O::next_due(self).await?;
        // Due messages that were skipped wait until their receiver has accepted some.
        Ok(DueMessages { taken, next: next.filter(|at| now < *at) })
    }
}
