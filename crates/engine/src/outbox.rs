//! Delivers the due messages of an outbox in the store, a limited number at a time, so that a slow
//! receiver does not delay the others, nor an account with many of them other accounts. Agent events
//! and webhooks share it.

use std::{marker::PhantomData, time::Duration};

use futures::{FutureExt as _, future::BoxFuture, stream::FuturesUnordered};
use jurat_core::{id::AccountId, key_counts::KeyCounts, time::Timestamp};
use jurat_store::StoreError;
use tokio::sync::Notify;

use crate::{
    Engine,
    due_loop::{DueLoop, DueWork},
};

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
    /// How many deliveries run concurrently.
    const AT_ONCE: usize;
    /// How many concurrent deliveries one account may have before others come first. Messages that
    /// are taken together may exceed it, like the limit of a receiver.
    const PER_ACCOUNT: usize;
    /// The part of the free slots that one account may hold: one in this many. So slow receivers of
    /// a few accounts never take all slots.
    const SHARE: usize;

    /// The signal that a message may be due.
    fn wake(engine: &Engine) -> &Notify;

    /// How long a receiver may take to answer.
    fn timeout(engine: &Engine) -> Duration;

    /// Who receives a message.
    fn receiver(message: &Self::Message) -> &str;

    /// Whose message it is.
    fn account(message: &Self::Message) -> &AccountId;

    /// The time at which the next message is due.
    fn next_due(engine: &Engine) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// Takes due messages, except those of receivers and accounts that have enough to do.
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
    /// Accounts at their limit.
    pub(crate) without_accounts: Vec<String>,
}

/// The due messages, and when the next one is due.
struct DueMessages<M> {
    taken: Vec<M>,
    next: Option<Timestamp>,
}

/// What a delivery occupies.
struct DeliverySlot {
    receiver: String,
    account: AccountId,
}

/// The deliveries of a node as the work of a loop.
struct OutboxDelivery<'w, O> {
    engine: &'w Engine,
    /// The deliveries in progress to each receiver.
    receivers: KeyCounts<String>,
    /// The deliveries in progress of each account.
    accounts: KeyCounts<AccountId>,
    /// Whether the last look may have left out due messages, because a limit was reached.
    is_limited: bool,
    outbox: PhantomData<O>,
}

impl<'w, O: MessageOutbox> DueWork for OutboxDelivery<'w, O> {
    type Found = DueMessages<O::Message>;
    type Error = StoreError;
    type Look = BoxFuture<'w, Result<Self::Found, StoreError>>;
    type Ended = DeliverySlot;
    type Item = BoxFuture<'w, DeliverySlot>;

    const ITEMS: &'static str = O::ITEMS;

    fn take(&mut self, now: Timestamp, free: usize) -> Self::Look {
        let window = u64::try_from(O::timeout(self.engine).as_millis()).unwrap_or(u64::MAX);
        let share = share_of::<O>(free);
        let taking = OutboxTake {
            now,
            until: now.plus_millis(window.saturating_add(MARGIN_MS)),
            limit: u32::try_from(share.min(PER_RECEIVER)).unwrap_or(u32::MAX),
            without: at_limit(&self.receivers, PER_RECEIVER),
            without_accounts: at_limit(&self.accounts, share),
        };
        self.is_limited = !taking.without.is_empty() || !taking.without_accounts.is_empty();
        self.engine.take_due_messages::<O>(taking).boxed()
    }

    fn start(
        &mut self,
        found: Self::Found,
        running: &FuturesUnordered<Self::Item>,
    ) -> Option<Timestamp> {
        for message in found.taken {
            let slot = DeliverySlot {
                receiver: O::receiver(&message).to_owned(),
                account: O::account(&message).clone(),
            };
            self.receivers.add(&slot.receiver, 1);
            self.accounts.add(&slot.account, 1);
            let delivered = O::deliver(self.engine, message).map(|()| slot);
            running.push(delivered.boxed());
        }
        found.next
    }

    fn ended(&mut self, slot: DeliverySlot, running: usize) -> Option<Timestamp> {
        let DeliverySlot { receiver, account } = slot;
        self.receivers.remove(&receiver, 1);
        self.accounts.remove(&account, 1);
        // More messages may wait for this receiver or for a slot; and with each free slot, every
        // account may hold more of them.
        let was_full = self.is_limited || running + 1 == O::AT_ONCE;
        was_full.then(|| self.engine.inner.clock.now())
    }
}

/// How many deliveries an account may hold while this many slots are free.
fn share_of<O: MessageOutbox>(free: usize) -> usize {
    (free / O::SHARE).clamp(1, O::PER_ACCOUNT)
}

/// The keys that hold as much as they may.
fn at_limit<K: ToString>(counts: &KeyCounts<K>, most: usize) -> Vec<String> {
    let full = counts.iter().filter(|(_, count)| most <= **count);
    full.map(|(key, _)| key.to_string()).collect()
}

impl Engine {
    /// Delivers the messages of an outbox until this node stops.
    pub(crate) fn deliver_outbox<O: MessageOutbox + Send>(&self) {
        let engine = self.clone();
        let _delivering = self.inner.background.spawn(async move {
            let due_loop = DueLoop {
                clock: &*engine.inner.clock,
                at_once: O::AT_ONCE,
                longest_sleep: LONGEST_SLEEP,
                wake: O::wake(&engine),
                stop: &engine.inner.stopping,
                grace: Some(GRACE),
            };
            let mut work = OutboxDelivery::<O> {
                engine: &engine,
                receivers: KeyCounts::new(),
                accounts: KeyCounts::new(),
                is_limited: false,
                outbox: PhantomData,
            };
            // The loop never gives up, so it does not end with an error.
            let _ended = due_loop.run(&mut work).await;
        });
    }

    /// Takes due messages. If there are none, nothing is written.
    async fn take_due_messages<O: MessageOutbox>(
        &self,
        taking: OutboxTake,
    ) -> Result<DueMessages<O::Message>, StoreError> {
        let now = taking.now;
        let next = O::next_due(self).await?;
        if next.is_none_or(|at| now < at) {
            return Ok(DueMessages { taken: Vec::new(), next });
        }
        let limit = usize::try_from(taking.limit).unwrap_or(usize::MAX);
        let taken = O::take(self, taking).await?;
        if limit <= taken.len() {
            return Ok(DueMessages { taken, next: Some(now) });
        }
        let next = O::next_due(self).await?;
        // Due messages that were skipped wait until others of their receiver or account have ended.
        Ok(DueMessages { taken, next: next.filter(|at| now < *at) })
    }
}
