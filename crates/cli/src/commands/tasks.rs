//! `jurat task`.

pub(crate) mod args;
mod order;
mod show;
mod show_events;

use std::time::Duration;

use jurat_client::tasks::{self, LAST_EVENT};
use jurat_core::task::TaskPhase;
use jurat_wire::api::tasks::{DecisionBody, FeedbackDraft, TaskBody, TaskEventBody};

use self::show_events::TaskProgress;
use super::{CommandContext, shared::gate, to_the_second};
use crate::{
    args::{
        ComplainArgs, ListTasksArgs, RunTaskArgs, SubmitTaskArgs, TaskEventsArgs, TaskNameArgs,
        TasksCommand,
    },
    client::{ApiClient, Call, Reply, SseEvent},
    output::{
        Output, OutputFormat, shortened,
        table::{cell, said, table, word},
    },
};

/// Maximum time to follow a stream.
const LONGEST: Duration = Duration::from_hours(24);

pub(super) async fn run(context: &CommandContext, command: TasksCommand) -> anyhow::Result<u8> {
    match command {
        TasksCommand::Submit(args) => submit(context, &args).await,
        TasksCommand::Run(args) => {
            let decision = run_to_the_end(context, &args).await?;
            Ok(gated(args.gate, decision.state.0))
        }
        // Like `run`, but a task without a decision fails even without `--gate`.
        TasksCommand::RunReal(args) => {
            let state = run_to_the_end(context, &args).await?.state.0;
            let is_decided = state == TaskPhase::Finalized;
            Ok(if args.gate { gated(true, state) } else { u8::from(!is_decided) })
        }
        TasksCommand::Watch(args) => watch(context, &args).await,
        TasksCommand::Decision(args) => decision(context, &args).await,
        TasksCommand::List(args) => list(context, args).await,
        TasksCommand::Show { id } => {
            let reply = context.send(tasks::show(&id)).await?;
            context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
            Ok(0)
        }
        TasksCommand::Cancel { id, reason, idempotency_key } => {
            let call = tasks::cancel(&id, reason.as_deref());
            let call = call.idempotency_key(idempotency_key.as_deref());
            let reply = context.send(call).await?;
            context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
            Ok(0)
        }
        TasksCommand::NextEpoch { id, idempotency_key } => {
            next_epoch(context, &id, idempotency_key.as_deref()).await
        }
        TasksCommand::Complain(args) => complain(context, &args).await,
        TasksCommand::Events(args) => events(context, &args).await,
        TasksCommand::Sample { task_id } => {
            let reply = context.send(tasks::sample(task_id.as_deref())).await?;
            context.out.reply(&reply, |_| format!("{:#}", reply.value))?;
            Ok(0)
        }
    }
}

async fn submit(context: &CommandContext, args: &SubmitTaskArgs) -> anyhow::Result<u8> {
    let (reply, is_here) = context
        .with_client(async |client| {
            let call = order::of_submit(client, args).await?;
            Ok((client.send(call).await?, client.is_in_process()))
        })
        .await?;
    let id = &reply.value.task_id;
    context.out.reply(&reply, |_| format!("submitted {id}"))?;
    context.out.note(&how_to_follow(id, is_here));
    Ok(0)
}

fn how_to_follow(id: &str, is_here: bool) -> String {
    if is_here {
        format!(
            "no server is running: start `jurat serve`, or carry out the task with `jurat task watch {id}`"
        )
    } else {
        format!("follow it with `jurat task watch {id}`")
    }
}

/// Submits a task, follows it to its end, and returns its decision.
async fn run_to_the_end(
    context: &CommandContext,
    args: &RunTaskArgs,
) -> anyhow::Result<DecisionBody<'static>> {
    let reply = context
        .with_client(async |client| {
            let call = order::of_run(client, args).await?;
            let id = client.send(call).await?.value.task_id;
            context.out.note(&format!("submitted {id}"));
            followed(client, context.out, &id).await?;
            Ok(client.send(tasks::decision(&id)).await?)
        })
        .await?;
    context.out.reply(&reply, |out| show::decision(out, &reply.value))?;
    Ok(reply.value)
}

async fn watch(context: &CommandContext, args: &TaskNameArgs) -> anyhow::Result<u8> {
    let reply =
        context.with_client(async |client| followed(client, context.out, &args.id).await).await?;
    context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
    Ok(gated(args.gate, reply.value.state.0))
}

async fn decision(context: &CommandContext, args: &TaskNameArgs) -> anyhow::Result<u8> {
    let reply = context.send_to_decide(tasks::decision(&args.id)).await?;
    context.out.reply(&reply, |out| show::decision(out, &reply.value))?;
    Ok(gated(args.gate, reply.value.state.0))
}

/// Follows a task to its end and returns it.
async fn followed(
    client: &ApiClient,
    out: Output,
    id: &str,
) -> anyhow::Result<Reply<TaskBody<'static>>> {
    client.drive_tasks();
    let mut progress = TaskProgress::new(out);
    let call = tasks::follow(id, None, None).within(LONGEST);
    let reply = client.follow(call, LAST_EVENT, out, |event| progress.show(event)).await;
    progress.finish();
    Ok(reply?)
}

/// The exit code for a pipeline. Only a decision passes.
fn gated(is_gate: bool, state: TaskPhase) -> u8 {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other state is an answer")]
    match state {
        _ if !is_gate => 0,
        TaskPhase::Finalized => gate::PASSED,
        TaskPhase::Failed => gate::NEGATIVE,
        _ => gate::UNDECIDED,
    }
}

async fn next_epoch(context: &CommandContext, id: &str, key: Option<&str>) -> anyhow::Result<u8> {
    let call = tasks::next_epoch(id).idempotency_key(key);
    let (reply, is_here) = context
        .with_client(async |client| Ok((client.send(call).await?, client.is_in_process())))
        .await?;
    context.out.reply(&reply, |_| format!("started epoch {} of {id}", reply.value.epoch))?;
    context.out.note(&how_to_follow(id, is_here));
    Ok(0)
}

async fn complain(context: &CommandContext, args: &ComplainArgs) -> anyhow::Result<u8> {
    let complaint = FeedbackDraft {
        reason: args.reason.clone(),
        epoch: args.epoch,
        outcome: None,
        timestamp: args.timestamp,
        signature: args.signature.clone(),
    };
    let call = tasks::complain(&args.id, &complaint);
    let reply = context.send(call.idempotency_key(args.idempotency_key.as_deref())).await?;
    context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
    Ok(0)
}

async fn list(context: &CommandContext, args: ListTasksArgs) -> anyhow::Result<u8> {
    let (state, task_type) = (args.state.as_deref(), args.task_type.as_deref());
    let is_filtered = state.is_some() || task_type.is_some();
    let reply = context.list(tasks::list(state, task_type), args.list).await?;
    let rows = reply.value.items.iter().map(|task| {
        vec![
            cell(&task.task_id),
            cell(&task.task_type),
            word(&task.state),
            cell(&to_the_second(task.created_at)),
            cell(&task.reason),
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
    if args.follow {
        return follow(context, tasks::follow(&args.id, args.after, args.limit)).await;
    }
    let reply = context.send(tasks::events(&args.id, args.after, args.limit)).await?;
    let lines = || reply.value.items.iter().map(line).collect::<Vec<_>>();
    context.out.reply(&reply, |_| lines().join("\n"))?;
    let last = reply.value.items.last().map(|event| event.seq);
    if let (Some(last), Some(_)) = (last, &reply.value.next_cursor) {
        context.out.note(&format!("there are more: continue with `--after {last}`"));
    }
    Ok(0)
}

/// Prints each event as it happens.
async fn follow(context: &CommandContext, call: Call<TaskBody<'static>>) -> anyhow::Result<u8> {
    let out = context.out;
    let mut printed = Ok(());
    let reply = context
        .with_client(async |client| {
            let call = call.within(LONGEST);
            let show = |event: &SseEvent| {
                if printed.is_err() {
                    return;
                }
                printed = match (out.format, event.read()) {
                    (OutputFormat::Json, _) => out.data(&event.data),
                    (OutputFormat::Text, Some(event)) => out.text(&line(&event)),
                    (OutputFormat::Text, None) => Ok(()),
                };
            };
            Ok(client.follow(call, LAST_EVENT, out, show).await?)
        })
        .await?;
    printed?;
    out.note(&format!("the task is {}", said(&reply.value.state)));
    Ok(0)
}

/// An event on one line: its number, time, name and data.
fn line(event: &TaskEventBody<'_>) -> String {
    let (seq, when, name) = (event.seq, to_the_second(event.at), &event.r#type.0);
    let data = shortened(&event.data.to_string(), 200);
    format!("{seq:>4}  {when}  {name:<22}  {data}")
}
