//! Rows of webhooks and deliveries.

use jurat_core::{
    id::AccountId,
    webhook::{
        DisabledWebhook, Push, Webhook, WebhookDelivery, WebhookEventType, WebhookEvents,
        WebhookSecret, WebhookSecrets,
    },
};

use crate::{
    Result,
    db::row::{DbRow, RowReader},
};

pub(super) const WEBHOOK_COLUMNS: &str = "\
    account_id, id, url, description, events, subject, scheme, state, disabled_at, \
    disabled_reason, failing_since, previous_until, created_at, updated_at";
pub(super) const DELIVERY_COLUMNS: &str = "\
    webhook_deliveries.account_id, webhook_deliveries.id, webhook_deliveries.webhook_id, \
    webhook_deliveries.event_id, webhook_deliveries.event_type, webhook_deliveries.subject, \
    webhook_deliveries.body, webhook_deliveries.state, webhook_deliveries.attempts, \
    webhook_deliveries.attempts_before, webhook_deliveries.next_at, webhook_deliveries.status, \
    webhook_deliveries.reply, webhook_deliveries.last_error, webhook_deliveries.created_at, \
    webhook_deliveries.updated_at";

/// Every type, including later ones.
const ALL: &str = "*";

/// The types with a comma before and after each, so that a statement finds one as a text.
pub(super) fn events_text(events: &WebhookEvents) -> String {
    match events {
        WebhookEvents::All => ALL.to_owned(),
        WebhookEvents::Only(types) => {
            let words: Vec<&str> = types.iter().map(|it| it.as_str()).collect();
            format!(",{},", words.join(",,"))
        }
    }
}

fn events_of(columns: &RowReader<'_>) -> Result<WebhookEvents> {
    let text = columns.text("events")?;
    if text == ALL {
        return Ok(WebhookEvents::All);
    }
    let words = text.split(',').filter(|word| !word.is_empty());
    // A later program may know more types.
    Ok(WebhookEvents::Only(words.filter_map(|word| word.parse().ok()).collect()))
}

pub(super) fn read_webhook(cells: &dyn DbRow) -> Result<Webhook> {
    webhook_of(&RowReader::new(cells, "webhooks", "id")?)
}

fn webhook_of(columns: &RowReader<'_>) -> Result<Webhook> {
    let disabled = columns.maybe_time("disabled_at")?.zip(columns.maybe_text("disabled_reason")?);
    Ok(Webhook {
        account: columns.id("account_id", AccountId::parse)?,
        id: columns.text("id")?,
        url: columns.text("url")?,
        description: columns.maybe_text("description")?,
        events: events_of(columns)?,
        subject: columns.maybe_text("subject")?,
        scheme: columns.word("scheme")?,
        state: columns.word("state")?,
        disabled: disabled.map(|(at, reason)| DisabledWebhook { at, reason }),
        failing_since: columns.maybe_time("failing_since")?,
        previous_secret_until: columns.maybe_time("previous_until")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}

pub(super) fn read_push(cells: &dyn DbRow) -> Result<Push> {
    let columns = RowReader::new(cells, "webhooks", "id")?;
    let secret = WebhookSecret::new(columns.text("secret")?);
    Ok(Push::of(webhook_of(&columns)?, &secret))
}

pub(super) fn read_with_secrets(cells: &dyn DbRow) -> Result<(Webhook, WebhookSecrets)> {
    let columns = RowReader::new(cells, "webhooks", "id")?;
    let previous = columns.maybe_text("previous_secret")?.map(WebhookSecret::new);
    let secrets = WebhookSecrets {
        current: WebhookSecret::new(columns.text("secret")?),
        previous: previous.zip(columns.maybe_time("previous_until")?),
    };
    Ok((webhook_of(&columns)?, secrets))
}

pub(super) fn read_delivery(cells: &dyn DbRow) -> Result<WebhookDelivery> {
    let columns = RowReader::new(cells, "webhook_deliveries", "id")?;
    let event_type: WebhookEventType = columns.word("event_type")?;
    Ok(WebhookDelivery {
        account: columns.id("account_id", AccountId::parse)?,
        id: columns.text("id")?,
        webhook: columns.text("webhook_id")?,
        event_id: columns.text("event_id")?,
        event_type,
        subject: columns.maybe_text("subject")?,
        body: columns.text("body")?,
        state: columns.word("state")?,
        attempts: columns.count("attempts")?,
        attempts_before: columns.count("attempts_before")?,
        next_at: columns.maybe_time("next_at")?,
        status: columns.maybe_count("status")?,
        reply: columns.maybe_text("reply")?,
        last_error: columns.maybe_text("last_error")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}
