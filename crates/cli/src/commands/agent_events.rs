//! `jurat agent-events`.

pub(crate) mod args;

use jurat_wire::strict_json;
use serde_json::{Map, Value, json};

use super::{CommandContext, items, rounds::to_the_second, shared::input};
use crate::{
    args::{AgentEventsCommand, ListAgentEventsArgs, SendAgentEventArgs},
    client::{ApiCall, path},
    failure::CliFailure,
    output::table::{cell, fields, said, table, word},
};

const ROUTE: &str = "/v1/agent-events";

pub(super) async fn run(
    context: &CommandContext,
    command: AgentEventsCommand,
) -> anyhow::Result<u8> {
    match command {
        AgentEventsCommand::List(args) => list(context, args).await,
        AgentEventsCommand::Show { id } => {
            let reply = context.send(ApiCall::get(path(ROUTE, &[&id]))).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
            Ok(0)
        }
        AgentEventsCommand::Send(args) => send(context, args).await,
    }
}

async fn list(context: &CommandContext, args: ListAgentEventsArgs) -> anyhow::Result<u8> {
    let is_filtered = args.state.is_some() || args.executor.is_some() || args.needs_review;
    let filters = [
        ("state", args.state),
        ("executor", args.executor),
        ("needs_review", args.needs_review.then(|| "true".to_owned())),
    ];
    let reply = context.list(ROUTE, &filters, args.list).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["event_id"]),
            cell(&item["target_executor"]),
            cell(&item["event_type"]),
            word(&item["state"]),
            cell(&item["attempts"]),
            cell(&item["decision"]["action"]),
            cell(&json!(to_the_second(&item["created_at"]))),
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
    let mut body = Map::from_iter([
        ("event_type".to_owned(), json!(args.event_type)),
        ("target_executor".to_owned(), json!(args.executor)),
        ("payload".to_owned(), payload(&args)?),
        ("requires_commit".to_owned(), json!(args.requires_decision)),
    ]);
    for (name, value) in [
        ("dedupe_key", args.dedupe_key),
        ("correlation_id", args.correlation_id),
        ("source_node_id", args.source_node),
        ("target_agent_id", args.target_agent),
    ] {
        if let Some(value) = value {
            body.insert(name.to_owned(), json!(value));
        }
    }
    let reply = context.send(ApiCall::post(ROUTE, Value::Object(body))).await?;
    let id = said(&reply.value["event_id"]);
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

fn shown(body: &Value) -> String {
    let decision = &body["decision"];
    let decision = if decision.is_null() {
        "–".to_owned()
    } else {
        let (action, route) = (said(&decision["action"]), said(&decision["route"]));
        format!("{action} by {route}: {}", said(&decision["reason"]))
    };
    let head = fields(&[
        ("event", said(&body["event_id"])),
        ("type", said(&body["event_type"])),
        ("executor", said(&body["target_executor"])),
        ("state", said(&body["state"])),
        ("attempts", said(&body["attempts"])),
        ("next attempt", said(&body["next_attempt_at"])),
        ("decision", decision),
        ("needs review", said(&body["needs_review"])),
        ("last error", said(&body["last_error"])),
        ("created", said(&body["created_at"])),
    ]);
    format!("{head}\n{:#}", body["event"])
}
