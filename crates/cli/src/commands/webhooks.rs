//! `jurat webhooks`.

pub(crate) mod args;

use jurat_client::webhooks;
use jurat_wire::api::webhooks::{
    AddWebhookDraft, ChangeWebhookDraft, WebhookBody, WebhookDeliveryBody,
};
use serde_json::Value;

use super::{CommandContext, to_the_second};
use crate::{
    args::{AddWebhookArgs, ListArgs, WebhookDeliveriesArgs, WebhooksCommand},
    output::table::{cell, fields, said, table, word},
};

pub(super) async fn run(context: &CommandContext, command: WebhooksCommand) -> anyhow::Result<u8> {
    match command {
        WebhooksCommand::Add(args) => add(context, args).await,
        WebhooksCommand::List { list } => self::list(context, list).await,
        WebhooksCommand::Show { id } => {
            let reply = context.send(webhooks::show(&id)).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
            Ok(0)
        }
        WebhooksCommand::Enable { id } => switch(context, &id, true).await,
        WebhooksCommand::Disable { id } => switch(context, &id, false).await,
        WebhooksCommand::Rotate { id, grace_seconds } => {
            let reply = context.send(webhooks::rotate(&id, grace_seconds)).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
            context.out.note("the secret is not shown again");
            Ok(0)
        }
        WebhooksCommand::Remove { id } => {
            let reply = context.send(webhooks::remove(&id)).await?;
            context.out.confirm(&reply, || format!("removed {}", said(&id)))?;
            Ok(0)
        }
        WebhooksCommand::Test { id } => {
            let reply = context.send(webhooks::test(&id)).await?;
            let delivery = said(&reply.value.id);
            context.out.reply(&reply, |_| format!("sent {delivery}"))?;
            context
                .out
                .note(&format!("see the answer with `jurat webhooks deliveries {delivery}`"));
            Ok(0)
        }
        WebhooksCommand::Deliveries(args) => deliveries(context, args).await,
        WebhooksCommand::Replay { id } => {
            let reply = context.send(webhooks::replay(&id)).await?;
            context.out.reply(&reply, |_| format!("sent {} again", said(&reply.value.id)))?;
            Ok(0)
        }
    }
}

async fn add(context: &CommandContext, args: AddWebhookArgs) -> anyhow::Result<u8> {
    let events = Some(args.events).filter(|events| !events.is_empty());
    let webhook = AddWebhookDraft { url: args.url, events, description: args.description };
    let reply = context.send(webhooks::add(&webhook)).await?;
    context.out.reply(&reply, |_| shown(&reply.value))?;
    let id = said(&reply.value.id);
    context.out.note(&format!(
        "the secret is not shown again; send a test with `jurat webhooks test {id}`"
    ));
    Ok(0)
}

async fn list(context: &CommandContext, list: ListArgs) -> anyhow::Result<u8> {
    let reply = context.list(webhooks::list(), list).await?;
    let rows = reply.value.items.iter().map(|webhook| {
        vec![
            cell(&webhook.id),
            cell(&webhook.url),
            cell(&events_of(webhook)),
            word(&webhook.state),
            cell(&webhook.failing_since.map(to_the_second)),
        ]
    });
    let header = ["webhook", "url", "events", "state", "failing since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no webhooks yet: `jurat webhooks add` adds one");
    Ok(0)
}

async fn switch(context: &CommandContext, id: &str, is_enabled: bool) -> anyhow::Result<u8> {
    let change =
        ChangeWebhookDraft { is_enabled: Some(is_enabled), events: None, description: None };
    let reply = context.send(webhooks::change(id, &change)).await?;
    context.out.reply(&reply, |_| shown(&reply.value))?;
    Ok(0)
}

async fn deliveries(context: &CommandContext, args: WebhookDeliveriesArgs) -> anyhow::Result<u8> {
    if args.id.starts_with("dlv_") {
        let reply = context.send(webhooks::delivery(&args.id)).await?;
        context.out.reply(&reply, |_| delivered(&reply.value))?;
        return Ok(0);
    }
    let call = webhooks::deliveries(&args.id, args.state.as_deref());
    let reply = context.list(call, args.list).await?;
    let rows = reply.value.items.iter().map(|delivery| {
        vec![
            cell(&delivery.id),
            cell(&delivery.event_type),
            word(&delivery.state),
            cell(&delivery.attempts),
            cell(&delivery.status),
            cell(&to_the_second(delivery.created_at)),
        ]
    });
    let header = ["delivery", "event", "state", "attempts", "status", "created"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no deliveries yet");
    Ok(0)
}

fn events_of(webhook: &WebhookBody) -> String {
    let Some(events) = &webhook.events else { return "all".to_owned() };
    let names: Vec<&str> = events.iter().map(|it| it.0.as_str()).collect();
    names.join(", ")
}

fn shown(webhook: &WebhookBody) -> String {
    let mut lines = vec![
        ("webhook", said(&webhook.id)),
        ("url", said(&webhook.url)),
        ("description", said(&webhook.description)),
        ("events", said(&events_of(webhook))),
        ("state", said(&webhook.state)),
        ("disabled", said(&webhook.disabled_at)),
        ("reason", said(&webhook.disabled_reason)),
        ("failing since", said(&webhook.failing_since)),
        ("previous secret until", said(&webhook.previous_secret_until)),
        ("created", said(&webhook.created_at)),
    ];
    if let Some(secret) = &webhook.secret {
        lines.push(("secret", said(secret)));
    }
    fields(&lines)
}

fn delivered(delivery: &WebhookDeliveryBody<'_>) -> String {
    let head = fields(&[
        ("delivery", said(&delivery.id)),
        ("webhook", said(&delivery.webhook_id)),
        ("webhook-id", said(&delivery.event_id)),
        ("event", said(&delivery.event_type)),
        ("state", said(&delivery.state)),
        ("attempts", said(&delivery.attempts)),
        ("next attempt", said(&delivery.next_attempt_at)),
        ("status", said(&delivery.status)),
        ("answer", said(&delivery.reply)),
        ("last error", said(&delivery.last_error)),
        ("created", said(&delivery.created_at)),
    ]);
    let whole = delivery.event.as_ref().unwrap_or(&Value::Null);
    format!("{head}\n{whole:#}")
}
