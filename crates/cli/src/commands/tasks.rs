//! `jurat task`.

pub(crate) mod args;
mod order;
mod show;
mod show_events;

use std::time::Duration;

use serde_json::{Value, json};

use self::show_events::TaskProgress;
use super::{CommandContext, items, rounds::to_the_second, shared::gate};
use crate::{
    args::{
        ComplainArgs, ListTasksArgs, RunTaskArgs, SubmitTaskArgs, TaskEventsArgs, TaskNameArgs,
        TasksCommand,
    },
    client::{ApiCall, ApiClient, ApiReply, path, query},
    output::{
        Output, OutputFormat,
        table::{cell, table, word},
    },
};

const ROUTE: &str = "/v1/tasks";
/// The event that ends the stream: the task.
const LAST: &str = jurat_wire::api::tasks::TASK;
/// The longest that one stream is followed.
const LONGEST: Duration = Duration::from_hours(24);

pub(super) async fn run(context: &CommandContext, command: TasksCommand) -> anyhow::Result<u8> {
    match command {
        TasksCommand::Submit(args) => submit(context, &args).await,
        TasksCommand::Run(args) => Ok(gated(args.gate, &run_to_the_end(context, &args).await?)),
        TasksCommand::RunReal(args) => {
            let decision = run_to_the_end(context, &args).await?;
            let is_decided = decision["state"] == "finalized";
            Ok(if args.gate { gated(true, &decision) } else { u8::from(!is_decided) })
        }
        TasksCommand::Watch(args) => watch(context, &args).await,
        TasksCommand::Decision(args) => decision(context, &args).await,
        TasksCommand::List(args) => list(context, args).await,
        TasksCommand::Show { id } => {
            let reply = context.send(ApiCall::get(path(ROUTE, &[&id]))).await?;
            context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
            Ok(0)
        }
        TasksCommand::Cancel { id, reason, idempotency_key } => {
            let body = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
            let call = ApiCall::post(path(ROUTE, &[&id, "cancel"]), body);
            let reply = context.send(call.with("idempotency-key", idempotency_key.as_deref()));
            let reply = reply.await?;
            context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
            Ok(0)
        }
        TasksCommand::NextEpoch { id, idempotency_key } => {
            next_epoch(context, &id, idempotency_key.as_deref()).await
        }
        TasksCommand::Complain(args) => complain(context, &args).await,
        TasksCommand::Events(args) => events(context, &args).await,
        TasksCommand::Sample { task_id } => {
            let reply = context.send(order::sample(task_id.as_deref())).await?;
            let text = |_: Output| format!("{:#}", reply.value);
            context.out.reply(&reply, text)?;
            Ok(0)
        }
    }
}

async fn submit(context: &CommandContext, args: &SubmitTaskArgs) -> anyhow::Result<u8> {
    let (reply, is_here) = context
        .with_client(async |client| {
            let call = order::of_submit(client, args).await?;
            Ok((client.send(call).await?.success()?, client.is_in_process()))
        })
        .await?;
    let id = reply.value["task_id"].as_str().unwrap_or_default().to_owned();
    context.out.reply(&reply, |_| format!("submitted {id}"))?;
    context.out.note(&if is_here {
        format!("no server is running: start `jurat serve`, or carry out the task with `jurat task watch {id}`")
    } else {
        format!("follow it with `jurat task watch {id}`")
    });
    Ok(0)
}

/// Submits a task, follows it to its end, and returns its decision.
async fn run_to_the_end(context: &CommandContext, args: &RunTaskArgs) -> anyhow::Result<Value> {
    let reply = context
        .with_client(async |client| {
            let call = order::of_run(client, args).await?;
            let submitted = client.send(call).await?.success()?;
            let id = submitted.value["task_id"].as_str().unwrap_or_default().to_owned();
            context.out.note(&format!("submitted {id}"));
            followed(client, context.out, &id).await?;
            Ok(client.send(ApiCall::get(path(ROUTE, &[&id, "decision"]))).await?.success()?)
        })
        .await?;
    context.out.reply(&reply, |out| show::decision(out, &reply.value))?;
    Ok(reply.value)
}

async fn watch(context: &CommandContext, args: &TaskNameArgs) -> anyhow::Result<u8> {
    let reply =
        context.with_client(async |client| followed(client, context.out, &args.id).await).await?;
    context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
    Ok(gated(args.gate, &reply.value))
}

async fn decision(context: &CommandContext, args: &TaskNameArgs) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::get(path(ROUTE, &[&args.id, "decision"]))).await?;
    context.out.reply(&reply, |out| show::decision(out, &reply.value))?;
    Ok(gated(args.gate, &reply.value))
}

/// Follows a task and returns it as it ended.
async fn followed(client: &ApiClient, out: Output, id: &str) -> anyhow::Result<ApiReply> {
    client.drive_tasks();
    let mut progress = TaskProgress::new(out);
    let call = ApiCall::get(path(ROUTE, &[id, "events"])).within(LONGEST);
    let reply = client.follow(call, LAST, out, |event| progress.show(&event.value())).await;
    progress.finish();
    Ok(reply?.success()?)
}

/// The exit code for a pipeline. Only a decision passes.
fn gated(is_gate: bool, body: &Value) -> u8 {
    match body["state"].as_str() {
        _ if !is_gate => 0,
        Some("finalized") => gate::PASSED,
        Some("failed") => gate::NEGATIVE,
        Some(_) | None => gate::UNDECIDED,
    }
}

async fn next_epoch(context: &CommandContext, id: &str, key: Option<&str>) -> anyhow::Result<u8> {
    let call = ApiCall::post(path(ROUTE, &[id, "epochs"]), json!({})).with("idempotency-key", key);
    let (reply, is_here) = context
        .with_client(async |client| {
            Ok((client.send(call).await?.success()?, client.is_in_process()))
        })
        .await?;
    context.out.reply(&reply, |_| format!("started epoch {} of {id}", reply.value["epoch"]))?;
    context.out.note(&if is_here {
        format!("no server is running: start `jurat serve`, or carry out the task with `jurat task watch {id}`")
    } else {
        format!("follow it with `jurat task watch {id}`")
    });
    Ok(0)
}

async fn complain(context: &CommandContext, args: &ComplainArgs) -> anyhow::Result<u8> {
    let mut body = json!({ "reason": args.reason });
    let signed = [("timestamp", json!(args.timestamp)), ("signature", json!(args.signature))];
    for (name, value) in [("epoch", json!(args.epoch))].into_iter().chain(signed) {
        if !value.is_null() {
            body[name] = value;
        }
    }
    let call = ApiCall::post(path(ROUTE, &[&args.id, "feedback"]), body)
        .with("idempotency-key", args.idempotency_key.as_deref());
    let reply = context.send(call).await?;
    context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
    Ok(0)
}

async fn list(context: &CommandContext, args: ListTasksArgs) -> anyhow::Result<u8> {
    let filters = [("state", args.state), ("task_type", args.task_type)];
    let is_filtered = filters.iter().any(|(_, value)| value.is_some());
    let reply = context.list(ROUTE, &filters, args.list).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["task_id"]),
            cell(&item["task_type"]),
            word(&item["state"]),
            cell(&json!(to_the_second(&item["created_at"]))),
            cell(&item["reason"]),
        ]
    });
    let header = ["task", "type", "state", "started", "reason"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    let when_empty = if is_filtered {
        "no tasks match"
    } else {
        "no tasks yet: try `jurat task run --executor NAME`"
    };
    context.note_page(&reply.value, when_empty);
    Ok(0)
}

async fn events(context: &CommandContext, args: &TaskEventsArgs) -> anyhow::Result<u8> {
    let parameters = [
        ("after", args.after.map(|after| after.to_string())),
        ("limit", args.limit.map(|limit| limit.to_string())),
    ];
    let call = ApiCall::get(query(&path(ROUTE, &[&args.id, "events"]), &parameters));
    if args.follow {
        return follow(context, call).await;
    }
    let reply = context.send(call).await?;
    context
        .out
        .reply(&reply, |_| items(&reply.value).iter().map(line).collect::<Vec<_>>().join("\n"))?;
    let last = items(&reply.value).last().and_then(|event| event["seq"].as_u64());
    if let (Some(last), true) = (last, reply.value["next_cursor"].is_string()) {
        context.out.note(&format!("there are more: continue with `--after {last}`"));
    }
    Ok(0)
}

/// Prints each event as it happens.
async fn follow(context: &CommandContext, call: ApiCall) -> anyhow::Result<u8> {
    let out = context.out;
    let mut printed = Ok(());
    let reply = context
        .with_client(async |client| {
            let call = call.within(LONGEST);
            let show = |event: &crate::client::SseEvent| {
                if printed.is_ok() {
                    printed = match out.format {
                        OutputFormat::Json => out.data(&event.data),
                        OutputFormat::Text => out.text(&line(&event.value())),
                    };
                }
            };
            Ok(client.follow(call, LAST, out, show).await?.success()?)
        })
        .await?;
    printed?;
    out.note(&format!("the task is {}", crate::output::table::said(&reply.value["state"])));
    Ok(0)
}

/// An event in a line: its number, when, what, and what it says.
fn line(event: &Value) -> String {
    let when = to_the_second(&event["at"]).unwrap_or_default();
    let name = event["type"].as_str().unwrap_or_default();
    let seq = event["seq"].as_u64().unwrap_or_default();
    let data = crate::output::shortened(&event["data"].to_string(), 200);
    format!("{seq:>4}  {when}  {name:<22}  {data}")
}
