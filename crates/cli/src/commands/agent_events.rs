//! `jurat agent-events`.

pub(crate) mod args;

use jurat_client::agent_events;
use jurat_wire::{
    api::agent_events::{AgentEventEntry, SendAgentEventDraft},
    strict_json,
};
use serde_json::Value;

use super::{CommandContext, shared::input, to_the_second};
use crate::{
    args::{AgentEventsCommand, ListAgentEventsArgs, SendAgentEventArgs},
    failure::CliFailure,
    output::table::{cell, fields, said, table, word},
};

pub(super) async fn run(
    context: &CommandContext,
    command: AgentEventsCommand,
) -> anyhow::Result<u8> {
    match command {
        AgentEventsCommand::List(args) => list(context, args).await,
        AgentEventsCommand::Show { id } => {
            let reply = context.send(agent_events::show(&id)).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
            Ok(0)
        }
        AgentEventsCommand::Send(args) => send(context, args).await,
    }
}

async fn list(context: &CommandContext, args: ListAgentEventsArgs) -> anyhow::Result<u8> {
    let is_filtered = args.state.is_some() || args.executor.is_some() || args.needs_review;
    let call = agent_events::list(
        args.state.as_deref(),
        args.executor.as_deref(),
        args.needs_review.then_some(true),
    );
    let reply = context.list(call, args.list).await?;
    let rows = reply.value.items.iter().map(|event| {
        vec![
            cell(&event.event_id),
            cell(&event.target_executor),
            cell(&event.event_type),
            word(&event.state),
            cell(&event.attempts),
            cell(&event.decision().map(|decision| decision.action)),
            cell(&to_the_second(event.created_at)),
        ]
    });
    let header = ["event", "executor", "type", "state", "attempts", "decision", "created"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    let when_empty = if is_filtered {
        "no events match"
    } else {
        "no events yet: executors with `--agent-events-url` receive task events"
    };
    context.note_page(&reply.value, when_empty);
    Ok(0)
}

async fn send(context: &CommandContext, args: SendAgentEventArgs) -> anyhow::Result<u8> {
    let draft = SendAgentEventDraft {
        payload: payload(&args)?,
        event_type: args.event_type,
        target_executor: args.executor,
        source_node_id: args.source_node,
        target_agent_id: args.target_agent,
        agent_envelope: None,
        requires_commit: Some(args.requires_decision),
        correlation_id: args.correlation_id,
        dedupe_key: args.dedupe_key,
    };
    let reply = context.send(agent_events::send(&draft)).await?;
    let id = said(&reply.value.event_id);
    context.out.reply(&reply, |_| format!("sent {id}"))?;
    context.out.note(&format!("check its delivery with `jurat agent-events show {id}`"));
    Ok(0)
}

fn payload(args: &SendAgentEventArgs) -> anyhow::Result<Value> {
    let (name, bytes) = match (&args.payload, &args.payload_file) {
        (Some(text), _) => ("`--payload`".to_owned(), text.clone().into_bytes()),
        (None, Some(file)) => {
            let name = format!("`{}`", file.display());
            let bytes = input::whole(&name, file, input::LARGEST)?;
            (name, bytes)
        }
        (None, None) => {
            return Err(CliFailure::usage("an event needs a `--payload` or a `--payload-file`"));
        }
    };
    strict_json::parse(&bytes)
        .map_err(|error| CliFailure::usage(format!("{name} is not JSON: {error}")))
}

fn shown(event: &AgentEventEntry<'_>) -> String {
    let decision = event.decision().map_or_else(
        || "–".to_owned(),
        |it| format!("{} by {}: {}", said(&it.action), said(&it.route), said(&it.reason)),
    );
    let head = fields(&[
        ("event", said(&event.event_id)),
        ("type", said(&event.event_type)),
        ("executor", said(&event.target_executor)),
        ("state", said(&event.state)),
        ("attempts", said(&event.attempts)),
        ("next attempt", said(&event.next_attempt_at)),
        ("decision", decision),
        ("needs review", said(&event.needs_review)),
        ("last error", said(&event.last_error)),
        ("created", said(&event.created_at)),
    ]);
    let whole = event.event.as_deref().unwrap_or(&Value::Null);
    format!("{head}\n{whole:#}")
}
