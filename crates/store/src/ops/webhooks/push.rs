//! Push notifications: webhooks about one subject, of which an account has many for a short time.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    time::Timestamp,
    webhook::{MOST_PER_ACCOUNT, MOST_PER_TASK, Push, Webhook},
};

use super::{
    PushAdd, TooManyPushes, WebhookKey, change,
    rows::{WEBHOOK_COLUMNS, read_push},
};
use crate::{
    Result,
    db::tx::{Tx, args},
};

const LIST: &str = concatcp!(
    "select ",
    WEBHOOK_COLUMNS,
    ", secret from webhooks where account_id = $1 and subject = $2 order by created_at, id"
);
const COUNT_OF_SUBJECT: &str = "\
    select $1 as id, count(*) as times from webhooks where account_id = $1 and subject = $2";
const COUNT: &str = "\
    select $1 as id, count(*) as times from webhooks \
    where account_id = $1 and subject is not null";
/// A notification that still waits to be delivered stays.
const IS_STALE: &str = "\
    created_at < $2 and not exists (select 1 from webhook_deliveries as waiting \
    where waiting.account_id = webhooks.account_id and waiting.webhook_id = webhooks.id \
    and waiting.state = 'pending')";
const REMOVE_STALE: &str =
    concatcp!("delete from webhooks where account_id = $1 and subject is not null and ", IS_STALE);
const COUNT_FRESH: &str = concatcp!(COUNT, " and not (", IS_STALE, ")");

pub(super) async fn list(tx: &mut Tx<'_>, account: &AccountId, subject: &str) -> Result<Vec<Push>> {
    tx.all(LIST, args![account, subject], read_push).await
}

pub(super) async fn count(
    tx: &mut Tx<'_>,
    account: &AccountId,
    stale_before: &Timestamp,
) -> Result<u32> {
    change::times(tx, COUNT_FRESH, args![account, *stale_before]).await
}

pub(super) async fn add(
    tx: &mut Tx<'_>,
    added: &PushAdd,
) -> Result<Result<Webhook, TooManyPushes>> {
    let PushAdd { webhook, secret, stale_before } = added;
    let (account, subject) = (&webhook.account, webhook.subject.as_deref());
    tx.lock(&format!("webhooks {account}")).await?;
    let replaced = WebhookKey { account: account.clone(), id: webhook.id.clone() };
    let _was_there = change::remove(tx, &replaced).await?;
    if MOST_PER_TASK <= change::times(tx, COUNT_OF_SUBJECT, args![account, subject]).await? {
        return Ok(Err(TooManyPushes::OfSubject));
    }
    if MOST_PER_ACCOUNT <= change::times(tx, COUNT, args![account]).await? {
        remove_stale(tx, account, *stale_before).await?;
        if MOST_PER_ACCOUNT <= change::times(tx, COUNT, args![account]).await? {
            return Ok(Err(TooManyPushes::OfAccount));
        }
    }
    change::insert(tx, webhook, secret).await?;
    Ok(Ok(webhook.clone()))
}

/// Removes the push notifications of an account that nothing can happen to any more.
pub(super) async fn remove_stale(
    tx: &mut Tx<'_>,
    account: &AccountId,
    before: Timestamp,
) -> Result<u64> {
    tx.run(REMOVE_STALE, args![account, before]).await
}
