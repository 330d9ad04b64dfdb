//! Announces a fact in its own transaction: adds a delivery for each webhook that wants the event.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    time::Timestamp,
    webhook::{MOST_PENDING, WebhookEvent},
};

use crate::{
    Result,
    db::tx::{Tx, args},
};

/// Adds the deliveries of an event. The parameters are texts, because PostgreSQL announces a round
/// within the statement that closes it; there they have other numbers. Without an event nothing is
/// added. Beyond the limit of waiting deliveries, a delivery is recorded as failed, and can be
/// replayed.
macro_rules! announcement {
    ($id:literal, $kind:literal, $subject:literal, $body:literal, $at:literal, $account:literal) => {
        const_format::concatcp!(
            "insert into webhook_deliveries (account_id, id, webhook_id, event_id, event_type, \
             subject, body, state, attempts, attempts_before, next_at, last_error, created_at, \
             updated_at) \
             select wanted.account_id, replace(cast(",
            $id,
            " as text), 'evt_', 'dlv_') || '_' || substr(wanted.id, 5), wanted.id, ",
            $id,
            ", ",
            $kind,
            ", ",
            $subject,
            ", ",
            $body,
            ", case when wanted.pending < ",
            jurat_core::webhook::MOST_PENDING,
            " then 'pending' else 'failed' end, 0, 0, case when wanted.pending < ",
            jurat_core::webhook::MOST_PENDING,
            " then cast(",
            $at,
            " as bigint) end, case when wanted.pending < ",
            jurat_core::webhook::MOST_PENDING,
            " then null else '",
            $crate::ops::webhooks::announce::CROWDED,
            "' end, ",
            $at,
            ", ",
            $at,
            " from (select webhooks.account_id, webhooks.id, (select count(*) from (\
             select 1 from webhook_deliveries as waiting \
             where waiting.account_id = webhooks.account_id \
             and waiting.webhook_id = webhooks.id and waiting.state = 'pending' limit ",
            jurat_core::webhook::MOST_PENDING,
            ") as counted) as pending from webhooks where webhooks.account_id = ",
            $account,
            " and webhooks.state = 'enabled' and cast(",
            $id,
            " as text) is not null and (webhooks.events = '*' or replace(webhooks.events, ',' || \
             cast(",
            $kind,
            " as text) || ',', '') <> webhooks.events) and (webhooks.subject is null \
             or webhooks.subject = ",
            $subject,
            ")) as wanted where true on conflict do nothing"
        )
    };
}
pub(crate) use announcement;

/// Why a delivery is not sent at all.
pub(crate) const CROWDED: &str = concatcp!(
    MOST_PENDING,
    " deliveries were waiting for the webhook, which is the limit; replay this one later"
);

pub(super) const ANNOUNCE: &str = announcement!("$1", "$2", "$3", "$4", "$5", "$6");

/// Announces an event to the webhooks of its account.
pub(crate) async fn announce(
    tx: &mut Tx<'_>,
    account: &AccountId,
    event: &WebhookEvent,
    at: Timestamp,
) -> Result<()> {
    let args = args![
        &event.id,
        event.event_type.as_str(),
        event.subject.as_deref(),
        &event.body,
        at,
        account
    ];
    tx.run(ANNOUNCE, args).await.map(drop)
}
