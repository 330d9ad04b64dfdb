//! `jurat executors`.

pub(crate) mod args;

use jurat_client::executors;
use jurat_wire::api::{
    executors::{AddExecutorDraft, CapabilitiesBody, ExecutorBody, ProbeBody, SessionChoiceDraft},
    sessions::SessionOfExecutorDraft,
};

use super::{CommandContext, sessions::terms};
use crate::{
    args::{AddExecutorArgs, ExecutorsCommand, ListArgs},
    failure::ERROR,
    output::table::{cell, fields, said, table, word},
};

pub(super) async fn run(context: &CommandContext, command: ExecutorsCommand) -> anyhow::Result<u8> {
    match command {
        ExecutorsCommand::Add(args) => add(context, &args).await,
        ExecutorsCommand::List(args) => list(context, args).await,
        ExecutorsCommand::Show { name } => {
            let reply = context.send(executors::show(&name)).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
            Ok(0)
        }
        ExecutorsCommand::Check { name } => check(context, &name).await,
        ExecutorsCommand::Remove { name } => {
            let reply = context.send(executors::remove(&name)).await?;
            let sessions = said(&reply.value.sessions);
            context
                .out
                .confirm(&reply, || format!("removed {name} and its sessions: {sessions}"))?;
            Ok(0)
        }
    }
}

async fn add(context: &CommandContext, args: &AddExecutorArgs) -> anyhow::Result<u8> {
    let session = if args.no_session {
        SessionChoiceDraft::Wanted(false)
    } else {
        let terms = terms(&args.session);
        SessionChoiceDraft::Session(SessionOfExecutorDraft { terms, ..Default::default() })
    };
    let draft = AddExecutorDraft {
        name: args.name.clone(),
        url: args.url.clone(),
        token_env: args.token_env.clone(),
        agent_events_url: args.agent_events_url.clone(),
        remote: args.remote.remote.then_some(true),
        target_node: args.remote.target_node.clone(),
        scope: args.remote.scope.clone(),
        session: Some(session),
        must_answer: (!args.no_check).then_some(true),
        ..AddExecutorDraft::default()
    };
    let reply = context.send(executors::add(&draft)).await?;
    context.out.reply(&reply, |_| added(&reply.value))?;
    let name = &args.name;
    if !reply.value.probe.as_ref().is_some_and(|probe| probe.ok) {
        context.out.note(&format!(
            "{name} is registered but does not answer; start it, then run `jurat executors check {name}`"
        ));
    }
    let others = &reply.value.same_url;
    if !others.is_empty() {
        let has = if others.len() == 1 { "has" } else { "have" };
        let others = said(others);
        context.out.warn(&format!(
            "{others} {has} the same URL as {name}: rounds treat them as different executors, but asking one twice is not a second opinion; remove one with `jurat executors remove NAME`"
        ));
    }
    Ok(0)
}

fn added(executor: &ExecutorBody<'_>) -> String {
    let session = match executor.session.value() {
        Some(session) => format!("with session {}", session.id),
        None => "without a session".to_owned(),
    };
    let probe = executor.probe.as_ref().map_or_else(unchecked, found);
    format!("registered {} {session}\n{probe}", said(&executor.name))
}

/// The lines for an executor that was not probed.
fn unchecked() -> String {
    let unknown = || "unhealthy: –".to_owned();
    fields(&[("health", unknown()), ("capabilities", unknown())])
}

/// The result of a probe.
fn found(probe: &ProbeBody<'_>) -> String {
    let healthy = |error: Option<&str>, is_ok: bool, text: String| {
        if is_ok { text } else { format!("unhealthy: {}", said(&error)) }
    };
    let (health, can) = (&probe.health, &probe.capabilities);
    let ok = || "ok".to_owned();
    let mut lines = vec![
        ("health", healthy(health.error.as_deref(), health.ok, ok())),
        ("capabilities", healthy(can.error.as_deref(), can.ok, ok())),
    ];
    if can.ok {
        lines.push(("task types", said(&can.task_types)));
        lines.push(("profiles", said(&can.profiles)));
        lines.push(("model", model(can)));
        lines.push(("policies", said(&can.policies)));
    }
    if let Some(events) = &probe.agent_events {
        let answers = format!("{} answers", said(&events.url));
        lines.push(("agent events", healthy(events.error.as_deref(), events.ok, answers)));
    }
    fields(&lines)
}

fn model(capabilities: &CapabilitiesBody<'_>) -> String {
    if !capabilities.ok {
        return "–".to_owned();
    }
    let family = said(&capabilities.provider_family);
    format!("{family}/{}", said(&capabilities.model_id))
}

async fn list(context: &CommandContext, args: ListArgs) -> anyhow::Result<u8> {
    let reply = context.list(executors::list(), args).await?;
    let rows = reply.value.items.iter().map(|executor| {
        vec![
            cell(&executor.name),
            word(&executor.status),
            cell(&executor.url),
            cell(&executor.probe.as_ref().map(|probe| model(&probe.capabilities))),
            cell(&executor.circuit.state),
        ]
    });
    let header = ["name", "status", "url", "model", "circuit"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context
        .note_page(&reply.value, "no executors yet: add one with `jurat executors add NAME URL`");
    Ok(0)
}

fn shown(executor: &ExecutorBody<'_>) -> String {
    let probe = executor.probe.as_ref();
    let mut lines = vec![("name", said(&executor.name)), ("url", said(&executor.url))];
    if executor.remote {
        lines.push(("node", said(&executor.target_node)));
        lines.push(("scope", said(&executor.scope)));
    }
    lines.extend([
        ("status", said(&executor.status)),
        ("circuit", said(&executor.circuit.state)),
        ("token env", said(&executor.token_env)),
        ("events url", said(&executor.agent_events_url)),
        ("added", said(&executor.created_at)),
        ("checked", said(&probe.map(|probe| probe.at))),
    ]);
    let head = fields(&lines);
    probe.map_or_else(|| head.clone(), |probe| format!("{head}\n{}", found(probe)))
}

async fn check(context: &CommandContext, name: &str) -> anyhow::Result<u8> {
    let reply = context.send(executors::check(name)).await?;
    context.out.reply(&reply, |_| found(&reply.value))?;
    Ok(if reply.value.ok { 0 } else { ERROR })
}
