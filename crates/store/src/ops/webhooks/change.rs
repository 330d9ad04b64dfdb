//! Adds, changes and removes webhooks, and sends an event to one of them.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    time::Timestamp,
    webhook::{
        MOST_PENDING, Webhook, WebhookDelivery, WebhookDeliveryState, WebhookSecret, WebhookState,
    },
};

use super::{
    TooManyWebhooks, WebhookAdd, WebhookKey, WebhookReplay, WebhookRotation, WebhookSend,
    WebhookSendRefusal, WebhookUpdate, delivery, get, rows::events_text,
};
use crate::{
    Result, StoreError,
    db::{
        row::{DbRow, RowReader},
        tx::{NotFound, Tx, args},
    },
};

/// A webhook about one subject belongs to it, and does not count.
const COUNT: &str = "\
    select $1 as id, count(*) as times from webhooks \
    where account_id = $1 and subject is null";
const ADD: &str = "\
    insert into webhooks (account_id, id, url, description, events, subject, scheme, secret, \
    state, created_at, updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, 'enabled', $9, $9)";
const DESCRIBE: &str = "\
    update webhooks set description = $1, events = $2, updated_at = $3 \
    where account_id = $4 and id = $5";
const ENABLE: &str = "\
    update webhooks set state = 'enabled', disabled_at = null, disabled_reason = null, \
    failing_since = null, updated_at = $1 where account_id = $2 and id = $3 and state = 'disabled'";
const DISABLE: &str = "\
    update webhooks set state = 'disabled', disabled_at = $1, disabled_reason = $2, \
    updated_at = $1 where account_id = $3 and id = $4 and state = 'enabled'";
/// Ends the deliveries that wait for a webhook; they can be replayed.
pub(super) const GIVE_UP: &str = "\
    update webhook_deliveries set state = 'failed', next_at = null, \
    last_error = 'the webhook was disabled', updated_at = $1 \
    where account_id = $2 and webhook_id = $3 and state = 'pending'";
const ROTATE: &str = "\
    update webhooks set previous_secret = secret, previous_until = $1, secret = $2, \
    updated_at = $3 where account_id = $4 and id = $5";
const REMOVE: &str = "delete from webhooks where account_id = $1 and id = $2";
const REMOVE_DELIVERIES: &str =
    "delete from webhook_deliveries where account_id = $1 and webhook_id = $2";
const SEND: &str = "\
    insert into webhook_deliveries (account_id, id, webhook_id, event_id, event_type, subject, \
    body, state, attempts, attempts_before, next_at, created_at, updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, 'pending', 0, 0, $8, $8, $8) on conflict do nothing";
pub(super) const REPLAY: &str = "\
    update webhook_deliveries set state = 'pending', attempts_before = attempts, next_at = $1, \
    last_error = null, updated_at = $1 \
    where account_id = $2 and id = $3 and next_at is null";
const PENDING: &str = concatcp!(
    "select $1 as id, count(*) as times from (\
     select 1 from webhook_deliveries where account_id = $1 and webhook_id = $2 \
     and state = 'pending' limit ",
    MOST_PENDING,
    ") as waiting"
);

/// The reason that the owner of a webhook sees after disabling it.
const BY_OWNER: &str = "its owner disabled it";

pub(super) async fn add(
    tx: &mut Tx<'_>,
    added: &WebhookAdd,
) -> Result<Result<Webhook, TooManyWebhooks>> {
    let WebhookAdd { webhook, secret, most } = added;
    let account = &webhook.account;
    tx.lock(&format!("webhooks {account}")).await?;
    if *most <= times(tx, COUNT, args![account]).await? {
        return Ok(Err(TooManyWebhooks));
    }
    insert(tx, webhook, secret).await?;
    Ok(Ok(webhook.clone()))
}

pub(super) async fn insert(
    tx: &mut Tx<'_>,
    webhook: &Webhook,
    secret: &WebhookSecret,
) -> Result<()> {
    let args = args![
        &webhook.account,
        &webhook.id,
        &webhook.url,
        webhook.description.as_deref(),
        events_text(&webhook.events),
        webhook.subject.as_deref(),
        webhook.scheme.as_str(),
        secret.reveal(),
        webhook.created_at
    ];
    tx.run(ADD, args).await.map(drop)
}

/// A count that a statement names `times`.
pub(super) async fn times(
    tx: &mut Tx<'_>,
    text: &'static str,
    args: Vec<crate::db::tx::SqlArg>,
) -> Result<u32> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "webhooks", "id")?.count("times");
    Ok(tx.first(text, args, read).await?.unwrap_or(0))
}

pub(super) async fn change(
    tx: &mut Tx<'_>,
    changed: &WebhookUpdate,
) -> Result<Result<Webhook, NotFound>> {
    let WebhookUpdate { key: WebhookKey { account, id }, change, at } = changed;
    let Some(known) = get(tx, account, id).await? else { return Ok(Err(NotFound)) };
    if change.description.is_some() || change.events.is_some() {
        let description = change.description.as_ref().or(known.description.as_ref());
        let events = change.events.as_ref().unwrap_or(&known.events);
        let args = args![description, events_text(events), *at, account, id];
        tx.run(DESCRIBE, args).await?;
    }
    match change.state {
        Some(WebhookState::Enabled) => drop(tx.run(ENABLE, args![*at, account, id]).await?),
        Some(WebhookState::Disabled) => drop(disable(tx, (account, id), BY_OWNER, *at).await?),
        None => {}
    }
    Ok(get(tx, account, id).await?.ok_or(NotFound))
}

/// Disables a webhook and ends the deliveries that wait for it; `false` if it was disabled before.
pub(super) async fn disable(
    tx: &mut Tx<'_>,
    (account, id): (&AccountId, &str),
    reason: &str,
    at: Timestamp,
) -> Result<bool> {
    let is_new = tx.run(DISABLE, args![at, reason, account, id]).await? == 1;
    if is_new {
        tx.run(GIVE_UP, args![at, account, id]).await?;
    }
    Ok(is_new)
}

pub(super) async fn rotate(
    tx: &mut Tx<'_>,
    rotated: &WebhookRotation,
) -> Result<Result<Webhook, NotFound>> {
    let WebhookRotation { key: WebhookKey { account, id }, secret, previous_until, at } = rotated;
    let args = args![*previous_until, secret.reveal(), *at, account, id];
    if tx.run(ROTATE, args).await? == 0 {
        return Ok(Err(NotFound));
    }
    Ok(get(tx, account, id).await?.ok_or(NotFound))
}

pub(super) async fn remove(tx: &mut Tx<'_>, removed: &WebhookKey) -> Result<Result<(), NotFound>> {
    let WebhookKey { account, id } = removed;
    if tx.run(REMOVE, args![account, id]).await? == 0 {
        return Ok(Err(NotFound));
    }
    tx.run(REMOVE_DELIVERIES, args![account, id]).await?;
    Ok(Ok(()))
}

/// Why no event can be sent to a webhook now.
async fn obstacle(
    tx: &mut Tx<'_>,
    account: &AccountId,
    webhook: &str,
) -> Result<Option<WebhookSendRefusal>> {
    let Some(known) = get(tx, account, webhook).await? else {
        return Ok(Some(WebhookSendRefusal::Unknown));
    };
    if known.state == WebhookState::Disabled {
        return Ok(Some(WebhookSendRefusal::Disabled));
    }
    let pending = times(tx, PENDING, args![account, webhook]).await?;
    Ok((MOST_PENDING <= pending).then_some(WebhookSendRefusal::TooMany))
}

pub(super) async fn send(
    tx: &mut Tx<'_>,
    sent: &WebhookSend,
) -> Result<Result<WebhookDelivery, WebhookSendRefusal>> {
    let WebhookSend { key: WebhookKey { account, id }, event, at } = sent;
    if let Some(refused) = obstacle(tx, account, id).await? {
        return Ok(Err(refused));
    }
    let name = event.id.replace("evt_", "dlv_");
    let of = id.split_once('_').map_or(&**id, |(_, of)| of);
    let delivery_id = format!("{name}_{of}");
    let args = args![
        account,
        &delivery_id,
        id,
        &event.id,
        event.event_type.as_str(),
        event.subject.as_deref(),
        &event.body,
        *at
    ];
    tx.run(SEND, args).await?;
    let missing = || StoreError::conflict("a delivery that was added is not there");
    delivery(tx, account, &delivery_id).await?.ok_or_else(missing).map(Ok)
}

pub(super) async fn replay(
    tx: &mut Tx<'_>,
    replayed: &WebhookReplay,
) -> Result<Result<WebhookDelivery, WebhookSendRefusal>> {
    let WebhookReplay { account, delivery: id, at } = replayed;
    let Some(known) = delivery(tx, account, id).await? else {
        return Ok(Err(WebhookSendRefusal::Unknown));
    };
    if known.state == WebhookDeliveryState::Pending {
        return Ok(Err(WebhookSendRefusal::Pending));
    }
    if let Some(refused) = obstacle(tx, account, &known.webhook).await? {
        return Ok(Err(refused));
    }
    if tx.run(REPLAY, args![*at, account, id]).await? == 0 {
        return Ok(Err(WebhookSendRefusal::Pending));
    }
    Ok(delivery(tx, account, id).await?.ok_or(WebhookSendRefusal::Unknown))
}
