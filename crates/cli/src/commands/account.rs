//! `jurat whoami`, `jurat usage` and `jurat admin`: accounts and their credit.

pub(crate) mod args;

use jurat_client::{accounts, me};
use jurat_core::account::ledger;
use jurat_wire::api::credits::GrantDraft;

use super::{CommandContext, keys::scopes, to_the_second};
use crate::{
    args::{AdminCommand, CreditGrantArgs, ListArgs, TransfersArgs},
    failure::CliFailure,
    output::{
        counted,
        table::{cell, fields, said, table, whole_text, word},
    },
};

pub(super) async fn whoami(context: &CommandContext) -> anyhow::Result<u8> {
    let reply = context.send(me::show()).await?;
    let me = &reply.value;
    context.out.reply(&reply, |_| {
        let mut lines = vec![
            ("account", said(&me.id)),
            ("email", said(&me.email)),
            ("handle", me.handle.as_ref().map_or("none".to_owned(), |it| format!("@{it}"))),
            ("key", format!("{} ({})", said(&me.key.name), said(&me.key.id))),
            ("scopes", scopes(&me.scopes)),
        ];
        if me.suspended {
            lines.push(("status", "suspended: paid work is refused".to_owned()));
        }
        fields(&lines)
    })?;
    Ok(0)
}

pub(super) async fn usage(context: &CommandContext) -> anyhow::Result<u8> {
    let reply = context.send(me::usage()).await?;
    let usage = &reply.value;
    context.out.reply(&reply, |_| {
        let rounds = counted(usage.charged_rounds, "round");
        let since = to_the_second(usage.period_start);
        fields(&[
            ("tier", said(&usage.tier)),
            ("available", dollars(&usage.available_usd)),
            ("held", dollars(&usage.held_usd)),
            ("used", format!("{} in {rounds} since {since}", dollars(&usage.used_usd))),
            ("spent", format!("{} in total", dollars(&usage.spent_usd))),
        ])
    })?;
    Ok(0)
}

/// An amount in dollars, with its sign before the currency.
fn dollars(amount: &str) -> String {
    match amount.strip_prefix('-') {
        Some(amount) => format!("-${amount}"),
        None => format!("${amount}"),
    }
}

pub(super) async fn admin(context: &CommandContext, command: AdminCommand) -> anyhow::Result<u8> {
    match command {
        AdminCommand::Grant(args) => grant(context, &args).await?,
        AdminCommand::Suspend { account } => {
            let reply = context.send(accounts::suspend(&account)).await?;
            context.out.confirm(&reply, || format!("suspended {account}"))?;
        }
        AdminCommand::Resume { account } => {
            let reply = context.send(accounts::resume(&account)).await?;
            context.out.confirm(&reply, || format!("resumed {account}"))?;
        }
        AdminCommand::Accounts(args) => list(context, args).await?,
        AdminCommand::Transfers(args) => transfers(context, args).await?,
    }
    Ok(0)
}

async fn grant(context: &CommandContext, args: &CreditGrantArgs) -> anyhow::Result<()> {
    let is_amount = ledger::micros(&args.amount).is_some_and(|micros| micros != 0);
    if !is_amount {
        let text = format!(
            "`{}` is not an amount; write US dollars with at most six decimal places, such as 25 or 0.50",
            whole_text(&args.amount)
        );
        return Err(CliFailure::usage(text));
    }
    let draft = GrantDraft { amount_usd: args.amount.clone(), note: args.note.clone() };
    let call =
        accounts::grant(&args.account, &draft).idempotency_key(args.idempotency_key.as_deref());
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || {
        let available = dollars(&reply.value.available_usd);
        let done = match args.amount.strip_prefix('-') {
            Some(amount) => format!("took ${amount} back from"),
            None => format!("granted ${} to", args.amount),
        };
        format!("{done} {}; {available} available", args.account)
    })?;
    Ok(())
}

async fn list(context: &CommandContext, args: ListArgs) -> anyhow::Result<()> {
    let reply = context.list(accounts::list(), args).await?;
    let rows = reply.value.items.iter().map(|account| {
        let standing = if account.suspended_at.is_none() { "active" } else { "suspended" };
        vec![
            cell(&account.id),
            word(standing),
            cell(&account.available_usd),
            cell(&account.held_usd),
            cell(&account.spent_usd),
            cell(&account.granted_usd),
            cell(&to_the_second(account.created_at)),
        ]
    });
    let header = ["account", "status", "available", "held", "spent", "granted", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no accounts");
    Ok(())
}

async fn transfers(context: &CommandContext, args: TransfersArgs) -> anyhow::Result<()> {
    let call = args.account.as_deref().map_or_else(me::transfers, accounts::transfers);
    let reply = context.list(call, args.list).await?;
    let rows = reply.value.items.iter().map(|transfer| {
        vec![
            cell(&to_the_second(transfer.at)),
            cell(&transfer.movement),
            cell(&transfer.amount_usd),
            cell(&transfer.round_id),
            cell(&transfer.note),
        ]
    });
    let header = ["at", "movement", "amount", "round", "note"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no transfers yet");
    Ok(())
}
