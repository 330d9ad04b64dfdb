//! Takes due deliveries, and records the outcome of each attempt.

use const_format::concatcp;
use jurat_core::{time::Timestamp, webhook::WebhookEvent};

use super::{
    NotLeaseHolder, TakenWebhookDelivery, WebhookEffect, WebhookKey, WebhookNoted, WebhookOutcome,
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
/// The attempts before a replay are part of the fence, because a replay alone is no attempt, and so
/// is the time, because a push notification that is replaced begins again under the same ids. A
/// delivery that was given up while it was sent may still turn out to be delivered.
pub(super) const NOTE: &str = "\
    update webhook_deliveries set state = $1, next_at = $2, status = $3, reply = $4, \
    last_error = $5, updated_at = $6 where account_id = $7 and id = $8 and attempts = $9 \
    and attempts_before = $10 and created_at = $11 and (state = 'pending' or $1 = 'delivered')";
const WORKS: &str = "\
    update webhooks set failing_since = null \
    where account_id = $1 and id = $2 and failing_since is not null";
/// Attempts that failed since a time. The last one of a delivery counts only if it is the first,
/// because it may still be in progress.
pub(super) const FAILURES: &str = "\
    select id, case when attempts > 1 then attempts - 1 else 1 end as attempts \
    from webhook_deliveries \
    where account_id = $1 and webhook_id = $2 and state in ('pending', 'failed') \
    and attempts > 0 and last_error is not null and updated_at >= $3 limit $4";
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
        outcome.attempt,
        outcome.attempts_before,
        outcome.created_at
    ];
    if tx.run(NOTE, args).await? == 0 {
        return Ok(Err(NotLeaseHolder));
    }
    match &outcome.effect {
        WebhookEffect::Nothing => {}
        WebhookEffect::Works => drop(tx.run(WORKS, args![account, webhook]).await?),
        WebhookEffect::Fails => drop(tx.run(FAILS, args![*at, account, webhook]).await?),
        WebhookEffect::Disable { reason, after_failures } => {
            tx.run(FAILS, args![*at, account, webhook]).await?;
            if *after_failures <= failures(tx, outcome, *after_failures).await?
                && change::disable(tx, (account, webhook), reason, *at).await?
                && let Some(disabled) = get(tx, account, webhook).await?
            {
                let event = WebhookEvent::of_disabled(&disabled, reason, *at);
                announce::announce(tx, account, &event, *at).await?;
                return Ok(Ok(WebhookNoted::Disabled));
            }
        }
        WebhookEffect::Remove => {
            let removed = WebhookKey { account: account.clone(), id: webhook.clone() };
            let _was_there = change::remove(tx, &removed).await?;
        }
    }
    Ok(Ok(WebhookNoted::Recorded))
}

/// How many attempts have failed since the webhook began to fail, counted up to `most`.
async fn failures(tx: &mut Tx<'_>, outcome: &WebhookOutcome, most: u32) -> Result<u32> {
    let WebhookOutcome { account, webhook, .. } = outcome;
    let since = get(tx, account, webhook).await?.and_then(|it| it.failing_since);
    let Some(since) = since else { return Ok(0) };
    let read =
        |cells: &dyn DbRow| RowReader::new(cells, "webhook_deliveries", "id")?.count("attempts");
    let found = tx.all(FAILURES, args![account, webhook, since, most], read).await?;
    Ok(found.into_iter().fold(0, u32::saturating_add))
}

pub(super) async fn prune(tx: &mut Tx<'_>, pruning: &WebhookPruning) -> Result<u64> {
    super::push::remove_stale(tx, &pruning.account, pruning.stale_pushes_before).await?;
    let args = args![&pruning.account, pruning.before, pruning.limit];
    tx.run(tx.own(PRUNE), args).await
}
