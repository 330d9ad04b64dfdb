//! `jurat sessions`.

use jurat_client::sessions;
use jurat_wire::api::sessions::SessionBody;
use serde_json::{Map, Value, json};

use super::CommandContext;
use crate::{
    args::{AddSessionArgs, ListArgs, SessionArgs, SessionsCommand},
    output::table::{cell, fields, said, table},
};

pub(super) async fn run(context: &CommandContext, command: SessionsCommand) -> anyhow::Result<u8> {
    match command {
        SessionsCommand::Add(args) => {
            let reply = context.send(sessions::add(&add_body(&args))).await?;
            let text = format!("added session {} to {}", args.id, args.executor);
            context.out.confirm(&reply, || text)?;
        }
        SessionsCommand::List(args) => list(context, args).await?,
        SessionsCommand::Show { id } => {
            let reply = context.send(sessions::show(&id)).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
        }
        SessionsCommand::Remove { id } => {
            let reply = context.send(sessions::remove(&id)).await?;
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

/// The fields of a session that are given on the command line.
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
    let reply = context.list(sessions::list(), args).await?;
    let rows = reply.value.items.iter().map(|session| {
        vec![
            cell(&session.id),
            cell(&session.executor),
            cell(&session.profile),
            cell(&session.tier),
            cell(&session.labels),
            cell(&session.price_micros),
            cell(&session.reliability),
        ]
    });
    let header = ["session", "executor", "profile", "tier", "labels", "price", "reliability"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    let when_empty = "no sessions yet: add one with `jurat sessions add ID --executor NAME`";
    context.note_page(&reply.value, when_empty);
    Ok(())
}

fn shown(session: &SessionBody<'_>) -> String {
    fields(&[
        ("session", said(&session.id)),
        ("executor", said(&session.executor)),
        ("profile", said(&session.profile)),
        ("tier", said(&session.tier)),
        ("labels", said(&session.labels)),
        ("task types", said(&session.task_types)),
        ("price", said(&session.price_micros)),
        ("reliability", said(&session.reliability)),
        ("added", said(&session.created_at)),
    ])
}
