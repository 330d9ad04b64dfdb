//! `jurat whoami`, `jurat usage` and `jurat admin`: who one is, and credit.

pub(crate) mod args;

use jurat_core::account::ledger;
use serde_json::json;

use super::{CommandContext, items, keys::scopes, rounds::to_the_second};
use crate::{
    args::{AdminCommand, CreditGrantArgs, ListArgs, TransfersArgs},
    client::{ApiCall, path},
    failure::CliFailure,
    output::{
        counted,
        table::{cell, fields, said, table, whole_text, word},
    },
};

const ACCOUNTS: &str = "/v1/accounts";

pub(super) async fn whoami(context: &CommandContext) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::get("/v1/me".to_owned())).await?;
    let body = &reply.value;
    context.out.reply(&reply, |_| {
        let mut lines = vec![
            ("account", said(&body["id"])),
            ("email", said(&body["email"])),
            ("handle", body["handle"].as_str().map_or("none".to_owned(), |it| format!("@{it}"))),
            ("key", format!("{} ({})", said(&body["key"]["name"]), said(&body["key"]["id"]))),
            ("scopes", scopes(body)),
        ];
        if body["suspended"] == true {
            lines.push(("status", "suspended: paid work is refused".to_owned()));
        }
        fields(&lines)
    })?;
    Ok(0)
}

pub(super) async fn usage(context: &CommandContext) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::get("/v1/me/usage".to_owned())).await?;
    let body = &reply.value;
    context.out.reply(&reply, |_| {
        let dollars = |name: &str| dollars(&said(&body[name]));
        let rounds = counted(body["charged_rounds"].as_u64().unwrap_or(0), "round");
        let since = to_the_second(&body["period_start"]).unwrap_or_default();
        fields(&[
            ("tier", said(&body["tier"])),
            ("available", dollars("available_usd")),
            ("held", dollars("held_usd")),
            ("used", format!("{} in {rounds} since {since}", dollars("used_usd"))),
            ("spent", format!("{} in total", dollars("spent_usd"))),
        ])
    })?;
    Ok(0)
}

/// The sign stands before the currency.
fn dollars(amount: &str) -> String {
    match amount.strip_prefix('-') {
        Some(amount) => format!("-${amount}"),
        None => format!("${amount}"),
    }
}

pub(super) async fn admin(context: &CommandContext, command: AdminCommand) -> anyhow::Result<u8> {
    match command {
        AdminCommand::Grant(args) => grant(context, &args).await?,
        AdminCommand::Suspend { account } => standing(context, &account, "suspend").await?,
        AdminCommand::Resume { account } => standing(context, &account, "resume").await?,
        AdminCommand::Accounts(args) => accounts(context, args).await?,
        AdminCommand::Transfers(args) => transfers(context, args).await?,
    }
    Ok(0)
}

async fn grant(context: &CommandContext, args: &CreditGrantArgs) -> anyhow::Result<()> {
    let is_amount = ledger::micros(&args.amount).is_some_and(|micros| micros != 0);
    if !is_amount {
        let text = format!(
            "`{}` is not an amount; write US dollars with at most six decimal places, such as 25 or 0.50",
            whole_text(&json!(args.amount))
        );
        return Err(CliFailure::usage(text));
    }
    let mut body = json!({ "amount_usd": args.amount });
    if let Some(note) = &args.note {
        body["note"] = json!(note);
    }
    let call = ApiCall::post(path(ACCOUNTS, &[&args.account, "grants"]), body)
        .with("idempotency-key", args.idempotency_key.as_deref());
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || {
        let available = dollars(&said(&reply.value["available_usd"]));
        let done = match args.amount.strip_prefix('-') {
            Some(amount) => format!("took ${amount} back from"),
            None => format!("granted ${} to", args.amount),
        };
        format!("{done} {}; {available} available", args.account)
    })?;
    Ok(())
}

async fn standing(context: &CommandContext, account: &str, what: &str) -> anyhow::Result<()> {
    let reply = context.send(ApiCall::post(path(ACCOUNTS, &[account, what]), json!({}))).await?;
    let done = if what == "suspend" { "suspended" } else { "resumed" };
    context.out.confirm(&reply, || format!("{done} {account}"))?;
    Ok(())
}

async fn accounts(context: &CommandContext, args: ListArgs) -> anyhow::Result<()> {
    let reply = context.list(ACCOUNTS, &[], args).await?;
    let rows = items(&reply.value).iter().map(|item| {
        let standing = if item["suspended_at"].is_null() { "active" } else { "suspended" };
        vec![
            cell(&item["id"]),
            word(&json!(standing)),
            cell(&item["available_usd"]),
            cell(&item["held_usd"]),
            cell(&item["spent_usd"]),
            cell(&item["granted_usd"]),
            cell(&json!(to_the_second(&item["created_at"]))),
        ]
    });
    let header = ["account", "status", "available", "held", "spent", "granted", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no accounts");
    Ok(())
}

async fn transfers(context: &CommandContext, args: TransfersArgs) -> anyhow::Result<()> {
    let route = match &args.account {
        Some(account) => path(ACCOUNTS, &[account, "transfers"]),
        None => "/v1/me/transfers".to_owned(),
    };
    let reply = context.list(&route, &[], args.list).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&json!(to_the_second(&item["at"]))),
            cell(&item["movement"]),
            cell(&item["amount_usd"]),
            cell(&item["round_id"]),
            cell(&item["note"]),
        ]
    });
    let header = ["at", "movement", "amount", "round", "note"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no transfers yet");
    Ok(())
}
