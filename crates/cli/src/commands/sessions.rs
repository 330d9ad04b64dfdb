//! `jurat sessions`.

use serde_json::{Map, Value, json};

use super::{CommandContext, items};
use crate::{
    args::{AddSessionArgs, ListArgs, SessionArgs, SessionsCommand},
    client::{ApiCall, path},
    output::table::{cell, fields, said, table},
};

const ROUTE: &str = "/v1/sessions";

pub(super) async fn run(context: &CommandContext, command: SessionsCommand) -> anyhow::Result<u8> {
    match command {
        SessionsCommand::Add(args) => {
            let reply = context.send(ApiCall::post(ROUTE, add_body(&args))).await?;
            let text = format!("added session {} to {}", args.id, args.executor);
            context.out.confirm(&reply, || text)?;
        }
        SessionsCommand::List(args) => list(context, args).await?,
        SessionsCommand::Show { id } => {
            let reply = context.send(ApiCall::get(path(ROUTE, &[&id]))).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
        }
        SessionsCommand::Remove { id } => {
            let reply = context.send(ApiCall::delete(path(ROUTE, &[&id]))).await?;
            context.out.confirm(&reply, || format!("removed session {id}"))?;
        }
    }
    Ok(0)
}

fn add_body(args: &AddSessionArgs) -> Value {
    let mut body = session_body(&args.session);
    body.insert("id".to_owned(), json!(args.id));
    body.insert("executor".to_owned(), json!(args.executor));
    Value::Object(body)
}

/// The fields of a session that were given.
pub(super) fn session_body(args: &SessionArgs) -> Map<String, Value> {
    let mut body = Map::new();
    if let Some(profile) = &args.profile {
        body.insert("profile".to_owned(), json!(profile));
    }
    if let Some(tier) = &args.tier {
        body.insert("tier".to_owned(), json!(tier));
    }
    if !args.label.is_empty() {
        body.insert("labels".to_owned(), json!(args.label));
    }
    if !args.task_type.is_empty() {
        let pairs = args.task_type.iter().map(|(ours, theirs)| (ours.clone(), json!(theirs)));
        body.insert("task_types".to_owned(), Value::Object(pairs.collect()));
    }
    if let Some(price) = args.price_micros {
        body.insert("price_micros".to_owned(), json!(price));
    }
    if let Some(share) = args.reliability {
        body.insert("reliability".to_owned(), json!(share));
    }
    body
}

async fn list(context: &CommandContext, args: ListArgs) -> anyhow::Result<()> {
    let reply = context.list(ROUTE, &[], args).await?;
    let names = ["id", "executor", "profile", "tier", "labels", "price_micros", "reliability"];
    let row = |item: &Value| names.iter().map(|name| cell(&item[*name])).collect();
    let rows = items(&reply.value).iter().map(row).collect();
    let header = ["session", "executor", "profile", "tier", "labels", "price", "reliability"];
    context.out.reply(&reply, |out| table(out, &header, rows))?;
    let when_empty = "no sessions yet: add one with `jurat sessions add ID --executor NAME`";
    context.note_page(&reply.value, when_empty);
    Ok(())
}

fn shown(body: &Value) -> String {
    fields(&[
        ("session", said(&body["id"])),
        ("executor", said(&body["executor"])),
        ("profile", said(&body["profile"])),
        ("tier", said(&body["tier"])),
        ("labels", said(&body["labels"])),
        ("task types", said(&body["task_types"])),
        ("price", said(&body["price_micros"])),
        ("reliability", said(&body["reliability"])),
        ("added", said(&body["created_at"])),
    ])
}
