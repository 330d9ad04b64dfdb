//! Webhooks of accounts, and the outbox of deliveries to them.

pub(crate) mod announce;
mod change;
mod deliver;
mod push;
mod rows;

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    list::ListPage,
    time::Timestamp,
    webhook::{
        Push, Webhook, WebhookChange, WebhookDelivery, WebhookDeliveryFilter, WebhookDeliveryState,
        WebhookEvent, WebhookSecret, WebhookSecrets,
    },
};

use self::rows::{DELIVERY_COLUMNS, WEBHOOK_COLUMNS, read_delivery, read_webhook};
use super::{agent_events::NotLeaseHolder, tasks::read::LAST};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{NotFound, Tx, args, operations},
    },
};

operations! {
    /// Webhooks and their deliveries.
    pub struct WebhookOps = store.webhooks();
    reads {
        fn get(account: &AccountId, id: &str) -> Option<Webhook> = get;
        /// The account's own webhooks, in order of creation. Those about one subject belong to it,
        /// and are left out.
        fn list(account: &AccountId, page: &ListPage) -> Vec<Webhook> = list;
        fn delivery(account: &AccountId, id: &str) -> Option<WebhookDelivery> = delivery;
        /// The deliveries to a webhook, newest first.
        fn deliveries(account: &AccountId, filter: &WebhookDeliveryFilter) -> Vec<WebhookDelivery>
            = deliveries;
        /// The time at which the next delivery of any account is due.
        fn next_due() -> Option<Timestamp> = deliver::next;
        /// The first account after this text that has deliveries.
        fn account_after(after: &str) -> Option<AccountId> = account_after;
        /// How many push notifications an account has, without those that are removed before one
        /// more is added.
        fn push_count(account: &AccountId, stale_before: &Timestamp) -> u32 = push::count;
        /// The push notifications about a subject, in order of creation.
        fn pushes(account: &AccountId, subject: &str) -> Vec<Push> = push::list;
        /// Webhooks of all accounts that were disabled by failures, the latest first.
        fn disabled(limit: &u32) -> Vec<Webhook> = disabled;
    }
    changes {
        /// Takes those deliveries of all accounts that have been due for the longest time, and
        /// returns them in any order. The number of attempts of a delivery identifies its holder
        /// until it is taken again.
        fn take_due(take: &WebhookTake) -> Vec<TakenWebhookDelivery> = deliver::take_due;
        /// Removes old deliveries of an account that are not sent any more, up to the limit.
        fn prune(pruning: &WebhookPruning) -> u64 = deliver::prune;
    }
    writes {
        fn add(added: &WebhookAdd) -> Webhook, or TooManyWebhooks = change::add;
        /// Adds a push notification, or replaces the one of the same name.
        fn add_push(added: &PushAdd) -> Webhook, or TooManyPushes = push::add;
        fn change(changed: &WebhookUpdate) -> Webhook, or NotFound = change::change;
        /// Replaces the secret; the previous one signs, too, until a time.
        fn rotate(rotated: &WebhookRotation) -> Webhook, or NotFound = change::rotate;
        /// Removes a webhook and its deliveries.
        fn remove(removed: &WebhookKey) -> (), or NotFound = change::remove;
        /// Sends an event to one webhook.
        fn send(sent: &WebhookSend) -> WebhookDelivery, or WebhookSendRefusal = change::send;
        /// Sends an event again that was delivered or has failed.
        fn replay(replayed: &WebhookReplay) -> WebhookDelivery, or WebhookSendRefusal
            = change::replay;
        /// Records the outcome of an attempt, unless the delivery was taken again or replaced in the
        /// meantime.
        fn note(outcome: &WebhookOutcome) -> WebhookNoted, or NotLeaseHolder = deliver::note;
    }
}

/// A webhook to add, with its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAdd {
    pub webhook: Webhook,
    pub secret: WebhookSecret,
    /// The most webhooks that an account may have, including this one.
    pub most: u32,
}

/// The account has as many webhooks as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyWebhooks;

/// A push notification to add, with what accompanies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushAdd {
    pub webhook: Webhook,
    pub secret: WebhookSecret,
    /// Notifications that were added before this time are removed.
    pub stale_before: Timestamp,
}

/// Why a push notification was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooManyPushes {
    OfSubject,
    OfAccount,
}

/// A webhook of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookKey {
    pub account: AccountId,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUpdate {
    pub key: WebhookKey,
    pub change: WebhookChange,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRotation {
    pub key: WebhookKey,
    pub secret: WebhookSecret,
    /// Until when the previous secret signs, too.
    pub previous_until: Timestamp,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSend {
    pub key: WebhookKey,
    pub event: WebhookEvent,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookReplay {
    pub account: AccountId,
    pub delivery: String,
    pub at: Timestamp,
}

/// Why an event was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookSendRefusal {
    Unknown,
    /// The webhook is disabled.
    Disabled,
    /// It is waiting to be sent already.
    Pending,
    /// Too many deliveries wait for the webhook.
    TooMany,
}

/// A request for due deliveries, with the time until which they are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTake {
    pub now: Timestamp,
    /// When each is sent again, if no outcome is recorded by then.
    pub until: Timestamp,
    pub limit: u32,
    /// Webhooks and accounts at their limit, whose deliveries are not taken.
    pub without: Vec<String>,
}

/// A delivery to make, and its webhook, unless that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenWebhookDelivery {
    pub delivery: WebhookDelivery,
    pub webhook: Option<(Webhook, WebhookSecrets)>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookOutcome {
    pub account: AccountId,
    pub id: String,
    pub webhook: String,
    /// The number of attempts with which the delivery was taken.
    pub attempt: u32,
    /// The attempts before its last replay, as it was taken.
    pub attempts_before: u32,
    /// When the delivery was added. A push notification that is replaced has the same id, and so
    /// have its deliveries.
    pub created_at: Timestamp,
    pub state: WebhookDeliveryState,
    pub next_at: Option<Timestamp>,
    pub status: Option<u16>,
    pub reply: Option<String>,
    pub last_error: Option<String>,
    pub effect: WebhookEffect,
    pub at: Timestamp,
}

/// What an attempt says about its webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookEffect {
    Works,
    Fails,
    /// It is disabled for this reason if this many attempts have failed since its last success.
    Disable {
        reason: String,
        after_failures: u32,
    },
    /// It belonged to one subject, and its receiver is gone.
    Remove,
    /// No request was sent.
    Nothing,
}

/// What followed the outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookNoted {
    Recorded,
    /// The webhook was disabled, and the other webhooks of the account are notified.
    Disabled,
}

/// Selects the deliveries to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookPruning {
    pub account: AccountId,
    /// Removes deliveries that were added before this time.
    pub before: Timestamp,
    /// Removes push notifications that were added before this time and have nothing to send.
    pub stale_pushes_before: Timestamp,
    pub limit: u32,
}

const GET: &str =
    concatcp!("select ", WEBHOOK_COLUMNS, " from webhooks where account_id = $1 and id = $2");
const LIST: &str = concatcp!(
    "select ",
    WEBHOOK_COLUMNS,
    " from webhooks where account_id = $1 and id > $2 and subject is null order by id limit $3"
);
const DISABLED: &str = concatcp!(
    "select ",
    WEBHOOK_COLUMNS,
    " from webhooks where disabled_at is not null and failing_since is not null \
     and subject is null order by disabled_at desc limit $1"
);
const DELIVERY: &str = concatcp!(
    "select ",
    DELIVERY_COLUMNS,
    " from webhook_deliveries where account_id = $1 and id = $2"
);
const DELIVERIES: &str = concatcp!(
    "select ",
    DELIVERY_COLUMNS,
    " from webhook_deliveries where account_id = $1 and webhook_id = $2 \
     and (created_at, id) < ($3, $4) order by created_at desc, id desc limit $5"
);
const DELIVERIES_OF_STATE: &str = concatcp!(
    "select ",
    DELIVERY_COLUMNS,
    " from webhook_deliveries where account_id = $1 and webhook_id = $2 and state = $3 \
     and (created_at, id) < ($4, $5) order by created_at desc, id desc limit $6"
);
const ACCOUNT_AFTER: &str = "\
    select id, account_id from webhook_deliveries where account_id > $1 \
    order by account_id limit 1";

/// The statements on the growing table, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (DELIVERY, DELIVERY),
    (DELIVERIES, DELIVERIES),
    (DELIVERIES_OF_STATE, DELIVERIES_OF_STATE),
    (ACCOUNT_AFTER, ACCOUNT_AFTER),
    (announce::ANNOUNCE, announce::ANNOUNCE),
    (deliver::NEXT, deliver::NEXT),
    (deliver::NOTE, deliver::NOTE),
    (deliver::FAILURES, deliver::FAILURES),
    (change::GIVE_UP, change::GIVE_UP),
    (change::REPLAY, change::REPLAY),
    deliver::TAKE,
    deliver::PRUNE,
];

async fn get(tx: &mut Tx<'_>, account: &AccountId, id: &str) -> Result<Option<Webhook>> {
    tx.first(GET, args![account, id], read_webhook).await
}

async fn list(tx: &mut Tx<'_>, account: &AccountId, page: &ListPage) -> Result<Vec<Webhook>> {
    let after = page.after.as_deref().unwrap_or_default();
    tx.all(LIST, args![account, after, page.limit], read_webhook).await
}

async fn disabled(tx: &mut Tx<'_>, limit: &u32) -> Result<Vec<Webhook>> {
    tx.all(DISABLED, args![*limit], read_webhook).await
}

async fn delivery(
    tx: &mut Tx<'_>,
    account: &AccountId,
    id: &str,
) -> Result<Option<WebhookDelivery>> {
    tx.first(DELIVERY, args![account, id], read_delivery).await
}

async fn deliveries(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &WebhookDeliveryFilter,
) -> Result<Vec<WebhookDelivery>> {
    let text = if filter.state.is_some() { DELIVERIES_OF_STATE } else { DELIVERIES };
    let mut args = args![account, &filter.webhook];
    args.extend(filter.state.map(|state| state.as_str().into()));
    let before = filter.before.as_ref();
    args.push(before.map_or(LAST, |it| it.created_at).into());
    args.push(before.map_or("", |it| it.id.as_str()).into());
    args.push(filter.limit.into());
    tx.all(text, args, read_delivery).await
}

async fn account_after(tx: &mut Tx<'_>, after: &str) -> Result<Option<AccountId>> {
    let read = |cells: &dyn DbRow| {
        RowReader::new(cells, "webhook_deliveries", "id")?.id("account_id", AccountId::parse)
    };
    tx.first(ACCOUNT_AFTER, args![after], read).await
}
