//! Takes due deliveries, and records the outcome of each attempt.

use const_format::concatcp;
use jurat_core::{time::Timestamp, webhook::WebhookEvent};

use super::{
    NotLeaseHolder, TakenWebhookDelivery, WebhookEffect, WebhookNoted, WebhookOutcome,
    WebhookPruning, WebhookTake, announce, change, get,
    rows::{DELIVERY_COLUMNS, WEBHOOK_COLUMNS, read_delivery, read_with_secrets},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, of_found},
    },
};

pub(super) const NEXT: &str = "\
    select id, next_at from webhook_deliveries where next_at is not null order by next_at limit 1";

/// An id contains no comma, so `replace` shortens the list only if the id is in it.
pub(super) const TAKE: (&str, &str) = of_found!(
    "update webhook_deliveries set attempts = attempts + 1, next_at = $1, updated_at = $2",
    "webhook_deliveries where next_at <= $2 and \
     replace(cast($3 as text), ',' || webhook_id || ',', '') = cast($3 as text) and \
     replace(cast($3 as text), ',' || account_id || ',', '') = cast($3 as text) \
     order by next_at limit $4",
    concatcp!(" returning ", DELIVERY_COLUMNS)
);
const WEBHOOK: &str = concatcp!(
    "select ",
    WEBHOOK_COLUMNS,
    ", secret, previous_secret from webhooks where account_id = $1 and id = $2"
);
pub(super) const NOTE: &str = "\
    update webhook_deliveries set state = $1, next_at = $2, status = $3, reply = $4, \
    last_error = $5, updated_at = $6 where account_id = $7 and id = $8 and attempts = $9";
const WORKS: &str = "\
    update webhooks set failing_since = null \
    where account_id = $1 and id = $2 and failing_since is not null";
const FAILS: &str = "\
    update webhooks set failing_since = $1 \
    where account_id = $2 and id = $3 and failing_since is null";
pub(super) const PRUNE: (&str, &str) = of_found!(
    "delete from webhook_deliveries",
    "webhook_deliveries where account_id = $1 and created_at < $2 and next_at is null \
     order by created_at limit $3",
    ""
);

pub(super) async fn next(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let read =
        |cells: &dyn DbRow| RowReader::new(cells, "webhook_deliveries", "id")?.time("next_at");
    tx.first(NEXT, args![], read).await
}

pub(super) async fn take_due(
    tx: &mut Tx<'_>,
    take: &WebhookTake,
) -> Result<Vec<TakenWebhookDelivery>> {
    let without = format!(",{},", take.without.join(",,"));
    let args = args![take.until, take.now, without, take.limit];
    let mut taken = Vec::new();
    for delivery in tx.all(tx.own(TAKE), args, read_delivery).await? {
        let args = args![&delivery.account, &delivery.webhook];
        let webhook = tx.first(WEBHOOK, args, read_with_secrets).await?;
        taken.push(TakenWebhookDelivery { delivery, webhook });
    }
    Ok(taken)
}

pub(super) async fn note(
    tx: &mut Tx<'_>,
    outcome: &WebhookOutcome,
) -> Result<Result<WebhookNoted, NotLeaseHolder>> {
    let WebhookOutcome { account, webhook, at, .. } = outcome;
    let args = args![
        outcome.state.as_str(),
        outcome.next_at,
        outcome.status.map(u32::from),
        outcome.reply.as_deref(),
        outcome.last_error.as_deref(),
        *at,
        account,
        &outcome.id,
        outcome.attempt
    ];
    if tx.run(NOTE, args).await? == 0 {
        return Ok(Err(NotLeaseHolder));
    }
    match &outcome.effect {
        WebhookEffect::Nothing => {}
        WebhookEffect::Works => drop(tx.run(WORKS, args![account, webhook]).await?),
        WebhookEffect::Fails => drop(tx.run(FAILS, args![*at, account, webhook]).await?),
        WebhookEffect::Disable(reason) => {
            tx.run(FAILS, args![*at, account, webhook]).await?;
            if change::disable(tx, (account, webhook), reason, *at).await?
                && let Some(disabled) = get(tx, account, webhook).await?
            {
                let event = WebhookEvent::of_disabled(&disabled, reason, *at);
                announce::announce(tx, account, &event, *at).await?;
                return Ok(Ok(WebhookNoted::Disabled));
            }
        }
    }
    Ok(Ok(WebhookNoted::Recorded))
}

pub(super) async fn prune(tx: &mut Tx<'_>, pruning: &WebhookPruning) -> Result<u64> {
    super::push::remove_stale(tx, &pruning.account, pruning.stale_pushes_before).await?;
    let args = args![&pruning.account, pruning.before, pruning.limit];
    tx.run(tx.own(PRUNE), args).await
}
