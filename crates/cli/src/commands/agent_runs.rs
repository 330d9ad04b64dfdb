//! `jurat run`.

pub(crate) mod args;
mod show;
mod worker;

use std::time::Duration;

use anyhow::Context as _;
use jurat_client::agent_runs::{self, LAST_EVENT};
use jurat_core::agent_run::AgentRunStatus;
use jurat_wire::api::agent_runs::{
    AgentRunBody, AgentRunCounts, AgentRunEventBody, AgentRunResultBody,
};
use serde_json::{Map, Value, json};

use self::show::AgentRunProgress;
use super::{
    CommandContext,
    shared::{gate, input},
    to_the_second,
};
use crate::{
    args::{AgentRunNameArgs, AgentRunsCommand, ListAgentRunsArgs, SubmitAgentRunArgs},
    client::{ApiClient, Call, Reply},
    output::{
        Output, OutputFormat, shortened,
        table::{cell, table, word},
    },
};

/// Maximum time to follow a stream.
const LONGEST: Duration = Duration::from_hours(24);

pub(super) async fn run(context: &CommandContext, command: AgentRunsCommand) -> anyhow::Result<u8> {
    match command {
        AgentRunsCommand::Submit(args) => submit(context, &args).await,
        AgentRunsCommand::Kickoff { id, idempotency_key } => {
            let call = agent_runs::kickoff(&id).idempotency_key(idempotency_key.as_deref());
            change(context, call, &format!("kicked off {id}")).await
        }
        AgentRunsCommand::Retry { id, idempotency_key } => {
            let call = agent_runs::retry(&id).idempotency_key(idempotency_key.as_deref());
            change(context, call, &format!("requested retry of {id}")).await
        }
        AgentRunsCommand::Cancel { id, reason, idempotency_key } => {
            let call = agent_runs::cancel(&id, reason.as_deref());
            let call = call.idempotency_key(idempotency_key.as_deref());
            change(context, call, &format!("requested cancellation of {id}")).await
        }
        AgentRunsCommand::Watch(args) => watch(context, &args).await,
        AgentRunsCommand::Result(args) => result(context, &args).await,
        AgentRunsCommand::Events { id, limit } => events(context, &id, limit).await,
        AgentRunsCommand::List(args) => list(context, args).await,
        AgentRunsCommand::Show { id } => {
            let reply = context.send(agent_runs::show(&id)).await?;
            context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
            Ok(0)
        }
        AgentRunsCommand::Init => {
            // Opening the store brings its schema up to date.
            context.send(agent_runs::list(None).page(Some(1), None)).await?;
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
    let call = agent_runs::submit(&body).idempotency_key(args.idempotency_key.as_deref());
    let (reply, is_here) = context
        .with_client(async |client| {
            let reply = client.send(call).await.with_context(|| name.clone())?;
            Ok((reply, client.is_in_process()))
        })
        .await?;
    let id = &reply.value.run_id;
    context.out.reply(&reply, |_| format!("submitted {id}"))?;
    let next = match (reply.value.kicked_off, is_here) {
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

/// The request from a file that holds a spec or a whole request: a user's document, to which the
/// flag only adds.
fn ordered(mut file: Map<String, Value>, args: &SubmitAgentRunArgs) -> Value {
    if !file.contains_key("spec") && !file.contains_key("run_spec") {
        return json!({ "kickoff": args.kickoff, "spec": file });
    }
    if args.kickoff {
        file.insert("kickoff".to_owned(), json!(true));
    }
    Value::Object(file)
}

async fn change(
    context: &CommandContext,
    call: Call<AgentRunBody<'static>>,
    said: &str,
) -> anyhow::Result<u8> {
    let reply = context.send(call).await?;
    context.out.reply(&reply, |_| said.to_owned())?;
    Ok(0)
}

async fn watch(context: &CommandContext, args: &AgentRunNameArgs) -> anyhow::Result<u8> {
    let (reply, result) = context
        .with_client(async |client| {
            client.work_on_agent_runs();
            let reply = followed(client, context.out, &args.id).await?;
            let result = client.send(agent_runs::result(&args.id)).await?;
            Ok((reply, result))
        })
        .await?;
    context.out.reply(&reply, |out| {
        format!("{}\n{}", show::shown(out, &reply.value), show::result(out, &result.value))
    })?;
    Ok(gated(args.gate, &result.value))
}

/// Follows a run to its end and returns it.
async fn followed(
    client: &ApiClient,
    out: Output,
    id: &str,
) -> anyhow::Result<Reply<AgentRunBody<'static>>> {
    let progress = AgentRunProgress::new(out);
    let call = agent_runs::follow(id).within(LONGEST);
    let reply = client.follow(call, LAST_EVENT, out, |event| progress.show(event)).await;
    progress.finish();
    Ok(reply?)
}

async fn result(context: &CommandContext, args: &AgentRunNameArgs) -> anyhow::Result<u8> {
    let reply = context.send_to_decide(agent_runs::result(&args.id)).await?;
    context.out.reply(&reply, |out| show::result(out, &reply.value))?;
    Ok(gated(args.gate, &reply.value))
}

/// The exit code for a pipeline. Only an answer or a decision passes.
fn gated(is_gate: bool, result: &AgentRunResultBody<'_>) -> u8 {
    let aggregation = result.aggregation();
    let has_value = !aggregation.final_answer.is_null() || !aggregation.final_decision.is_null();
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other status is an answer")]
    match result.status.0 {
        _ if !is_gate => 0,
        AgentRunStatus::Finalized if has_value => gate::PASSED,
        AgentRunStatus::Failed => gate::NEGATIVE,
        _ => gate::UNDECIDED,
    }
}

async fn events(context: &CommandContext, id: &str, limit: u32) -> anyhow::Result<u8> {
    let reply = context.send(agent_runs::events(id, Some(limit))).await?;
    let lines = || reply.value.items.iter().map(line).collect::<Vec<_>>();
    context.out.reply(&reply, |_| lines().join("\n"))?;
    Ok(0)
}

/// An event on one line: its number, time, name and payload.
fn line(event: &AgentRunEventBody<'_>) -> String {
    let (id, when) = (event.id, to_the_second(event.created_at));
    let name = event.event_type.0.as_str();
    let payload = shortened(&event.payload.to_string(), 200);
    format!("{id:>4}  {when}  {name:<28}  {payload}")
}

async fn list(context: &CommandContext, args: ListAgentRunsArgs) -> anyhow::Result<u8> {
    let is_filtered = args.status.is_some();
    let reply = context.list(agent_runs::list(args.status.as_deref()), args.list).await?;
    let rows = reply.value.items.iter().map(|run| {
        vec![
            cell(&run.run_id),
            cell(&run.task_type),
            word(&run.status),
            cell(&format!("{} of {}", run.counts.succeeded, all_steps(&run.counts))),
            cell(&to_the_second(run.created_at)),
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

const fn all_steps(counts: &AgentRunCounts) -> u32 {
    let waiting = counts.created + counts.queued + counts.retry_wait;
    let working = counts.leased + counts.remote_dispatched;
    waiting + working + counts.succeeded + counts.failed + counts.cancelled
}
