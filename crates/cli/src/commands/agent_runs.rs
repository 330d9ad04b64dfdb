//! `jurat run`.

pub(crate) mod args;
mod show;
mod worker;

use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use self::show::AgentRunProgress;
use super::{
    CommandContext, items,
    rounds::to_the_second,
    shared::{gate, input},
};
use crate::{
    args::{AgentRunNameArgs, AgentRunsCommand, ListAgentRunsArgs, SubmitAgentRunArgs},
    client::{ApiCall, ApiClient, ApiReply, path, query},
    output::{
        Output, OutputFormat, shortened,
        table::{cell, table, word},
    },
};

const ROUTE: &str = "/v1/runs";
/// The event that ends the stream: the run.
const LAST: &str = jurat_wire::api::agent_runs::RUN;
/// The longest that one stream is followed.
const LONGEST: Duration = Duration::from_hours(24);

pub(super) async fn run(context: &CommandContext, command: AgentRunsCommand) -> anyhow::Result<u8> {
    match command {
        AgentRunsCommand::Submit(args) => submit(context, &args).await,
        AgentRunsCommand::Kickoff { id, idempotency_key } => {
            let call = asked(&id, "kickoff", json!({}), idempotency_key.as_deref());
            change(context, call, &format!("kicked off {id}")).await
        }
        AgentRunsCommand::Retry { id, idempotency_key } => {
            let call = asked(&id, "retry", json!({}), idempotency_key.as_deref());
            change(context, call, &format!("requested retry of {id}")).await
        }
        AgentRunsCommand::Cancel { id, reason, idempotency_key } => {
            let body = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
            let call = asked(&id, "cancel", body, idempotency_key.as_deref());
            change(context, call, &format!("requested cancellation of {id}")).await
        }
        AgentRunsCommand::Watch(args) => watch(context, &args).await,
        AgentRunsCommand::Result(args) => result(context, &args).await,
        AgentRunsCommand::Events { id, limit } => events(context, &id, limit).await,
        AgentRunsCommand::List(args) => list(context, args).await,
        AgentRunsCommand::Show { id } => {
            let reply = context.send(ApiCall::get(path(ROUTE, &[&id]))).await?;
            context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
            Ok(0)
        }
        AgentRunsCommand::Init => {
            // Whoever opens the store brings its schema up to date.
            let reply =
                context.send(ApiCall::get(query(ROUTE, &[("limit", Some("1".to_owned()))])));
            reply.await?;
            match context.out.format {
                OutputFormat::Json => context.out.data(&json!({ "ok": true }).to_string())?,
                OutputFormat::Text => context.out.data("run queue schema initialized")?,
            }
            Ok(0)
        }
        AgentRunsCommand::Worker(args) => Box::pin(worker::run(context, args)).await,
    }
}

async fn submit(context: &CommandContext, args: &SubmitAgentRunArgs) -> anyhow::Result<u8> {
    let name = format!("`{}`", args.spec.display());
    let body = ordered(input::object(&name, &args.spec)?, args);
    let call = ApiCall::post(ROUTE, body).with("idempotency-key", args.idempotency_key.as_deref());
    let (reply, is_here) = context
        .with_client(async |client| {
            let reply = client.send(call).await?.success().with_context(|| name.clone())?;
            Ok((reply, client.is_in_process()))
        })
        .await?;
    let id = reply.value["run_id"].as_str().unwrap_or_default().to_owned();
    context.out.reply(&reply, |_| format!("submitted {id}"))?;
    let next = match (reply.value["kicked_off"] == true, is_here) {
        (false, _) => format!("start it with `jurat run kickoff {id}`"),
        (true, false) => format!("follow it with `jurat run watch {id}`"),
        (true, true) => {
            format!(
                "no server is running: start `jurat serve`, or work on the run with `jurat run watch {id}`"
            )
        }
    };
    context.out.note(&next);
    Ok(0)
}

/// The file as a request: a spec alone, or a request already, to which a flag only adds.
fn ordered(mut file: Map<String, Value>, args: &SubmitAgentRunArgs) -> Value {
    if !file.contains_key("spec") && !file.contains_key("run_spec") {
        return json!({ "kickoff": args.kickoff, "spec": file });
    }
    if args.kickoff {
        file.insert("kickoff".to_owned(), json!(true));
    }
    Value::Object(file)
}

fn asked(id: &str, verb: &str, body: Value, key: Option<&str>) -> ApiCall {
    ApiCall::post(path(ROUTE, &[id, verb]), body).with("idempotency-key", key)
}

async fn change(context: &CommandContext, call: ApiCall, said: &str) -> anyhow::Result<u8> {
    let reply = context.send(call).await?;
    context.out.reply(&reply, |_| said.to_owned())?;
    Ok(0)
}

async fn watch(context: &CommandContext, args: &AgentRunNameArgs) -> anyhow::Result<u8> {
    let (reply, result) = context
        .with_client(async |client| {
            client.work_on_agent_runs();
            let reply = followed(client, context.out, &args.id).await?;
            let result =
                client.send(ApiCall::get(path(ROUTE, &[&args.id, "result"]))).await?.success()?;
            Ok((reply, result))
        })
        .await?;
    context.out.reply(&reply, |out| {
        format!("{}\n{}", show::shown(out, &reply.value), show::result(out, &result.value))
    })?;
    Ok(gated(args.gate, &result.value))
}

/// Follows a run and returns it as it ended.
async fn followed(client: &ApiClient, out: Output, id: &str) -> anyhow::Result<ApiReply> {
    let progress = AgentRunProgress::new(out);
    let call = ApiCall::get(path(ROUTE, &[id, "events"])).within(LONGEST);
    let reply = client.follow(call, LAST, out, |event| progress.show(&event.value())).await;
    progress.finish();
    Ok(reply?.success()?)
}

async fn result(context: &CommandContext, args: &AgentRunNameArgs) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::get(path(ROUTE, &[&args.id, "result"]))).await?;
    context.out.reply(&reply, |out| show::result(out, &reply.value))?;
    Ok(gated(args.gate, &reply.value))
}

/// The exit code for a pipeline. Only an answer or a decision passes.
fn gated(is_gate: bool, body: &Value) -> u8 {
    let aggregation = &body["result"]["aggregation"];
    let has_value =
        !aggregation["final_answer"].is_null() || !aggregation["final_decision"].is_null();
    match body["status"].as_str() {
        _ if !is_gate => 0,
        Some("FINALIZED") if has_value => gate::PASSED,
        Some("FAILED") => gate::NEGATIVE,
        Some(_) | None => gate::UNDECIDED,
    }
}

async fn events(context: &CommandContext, id: &str, limit: u32) -> anyhow::Result<u8> {
    let parameters = [("limit", Some(limit.to_string()))];
    let call = ApiCall::get(query(&path(ROUTE, &[id, "events"]), &parameters));
    let reply = context.send(call).await?;
    let text = |_: Output| items(&reply.value).iter().map(line).collect::<Vec<_>>().join("\n");
    context.out.reply(&reply, text)?;
    Ok(0)
}

/// An event in a line: its number, when, what, and what it says.
fn line(event: &Value) -> String {
    let when = to_the_second(&event["created_at"]).unwrap_or_default();
    let name = event["event_type"].as_str().unwrap_or_default();
    let id = event["id"].as_u64().unwrap_or_default();
    let payload = shortened(&event["payload"].to_string(), 200);
    format!("{id:>4}  {when}  {name:<28}  {payload}")
}

async fn list(context: &CommandContext, args: ListAgentRunsArgs) -> anyhow::Result<u8> {
    let is_filtered = args.status.is_some();
    let reply = context.list(ROUTE, &[("status", args.status)], args.list).await?;
    let rows = items(&reply.value).iter().map(|item| {
        let counts = &item["counts"];
        let all: u64 =
            counts.as_object().into_iter().flatten().filter_map(|(_, it)| it.as_u64()).sum();
        vec![
            cell(&item["run_id"]),
            cell(&item["task_type"]),
            word(&item["status"]),
            cell(&json!(format!("{} of {all}", counts["succeeded"]))),
            cell(&json!(to_the_second(&item["created_at"]))),
        ]
    });
    let header = ["run", "type", "status", "succeeded", "started"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    let when_empty = if is_filtered {
        "no runs match"
    } else {
        "no runs yet: try `jurat run submit FILE --kickoff`"
    };
    context.note_page(&reply.value, when_empty);
    Ok(0)
}
