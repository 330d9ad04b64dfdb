//! `jurat sessions`.

use std::collections::BTreeMap;

use jurat_client::sessions;
use jurat_wire::api::sessions::{AddSessionDraft, SessionBody, SessionTermsDraft};

use super::{CommandContext, shared::given};
use crate::{
    args::{ListArgs, SessionArgs, SessionsCommand},
    output::table::{cell, fields, said, table},
};

pub(super) async fn run(context: &CommandContext, command: SessionsCommand) -> anyhow::Result<u8> {
    match command {
        SessionsCommand::Add(args) => {
            let text = format!("added session {} to {}", args.id, args.executor);
            let terms = terms(&args.session);
            let draft = AddSessionDraft { id: args.id, executor: args.executor, terms };
            let reply = context.send(sessions::add(&draft)).await?;
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

/// The fields of a session that are given on the command line.
pub(super) fn terms(args: &SessionArgs) -> SessionTermsDraft {
    let task_types: BTreeMap<_, _> = args.task_type.iter().cloned().collect();
    SessionTermsDraft {
        profile: args.profile.clone(),
        tier: args.tier.clone(),
        labels: given(&args.label),
        task_types: (!task_types.is_empty()).then_some(task_types),
        reliability: args.reliability,
        price_micros: args.price_micros,
    }
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
