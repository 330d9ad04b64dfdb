//! `jurat executors`.

pub(crate) mod args;

use serde_json::{Map, Value, json};

use super::{CommandContext, items, sessions::session_body};
use crate::{
    args::{AddExecutorArgs, ExecutorsCommand, ListArgs},
    client::{ApiCall, path},
    failure::{CliFailure, ERROR},
    output::table::{cell, fields, said, table, word},
};

const ROUTE: &str = "/v1/executors";

pub(super) async fn run(context: &CommandContext, command: ExecutorsCommand) -> anyhow::Result<u8> {
    match command {
        ExecutorsCommand::Add(args) => add(context, &args).await,
        ExecutorsCommand::List(args) => list(context, args).await,
        ExecutorsCommand::Show { name } => {
            let reply = context.send(ApiCall::get(path(ROUTE, &[&name]))).await?;
            context.out.reply(&reply, |_| shown(&reply.value))?;
            Ok(0)
        }
        ExecutorsCommand::Check { name } => check(context, &name).await,
        ExecutorsCommand::Remove { name } => {
            let reply = context.send(ApiCall::delete(path(ROUTE, &[&name]))).await?;
            let sessions = said(&reply.value["sessions"]);
            context
                .out
                .confirm(&reply, || format!("removed {name} and its sessions: {sessions}"))?;
            Ok(0)
        }
    }
}

async fn add(context: &CommandContext, args: &AddExecutorArgs) -> anyhow::Result<u8> {
    let remote = &args.remote;
    let flags = [
        ("--remote", remote.remote),
        ("--target-node", remote.target_node.is_some()),
        ("--scope", remote.scope.is_some()),
    ];
    if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) {
        return Err(CliFailure::usage(format!(
            "`{flag}` is not supported: executors are called directly over HTTP, without remote dispatch; leave it out and pass a URL that the server can reach"
        )));
    }
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(args.name));
    body.insert("url".to_owned(), json!(args.url));
    if let Some(variable) = &args.token_env {
        body.insert("token_env".to_owned(), json!(variable));
    }
    if let Some(url) = &args.agent_events_url {
        body.insert("agent_events_url".to_owned(), json!(url));
    }
    let session = session_body(&args.session);
    if args.no_session {
        body.insert("session".to_owned(), json!(false));
    } else if !session.is_empty() {
        body.insert("session".to_owned(), Value::Object(session));
    }
    if !args.no_check {
        body.insert("must_answer".to_owned(), json!(true));
    }
    let reply = context.send(ApiCall::post(ROUTE, Value::Object(body))).await?;
    context.out.reply(&reply, |_| added(&reply.value))?;
    let name = &args.name;
    if reply.value["probe"]["ok"] != true {
        context.out.note(&format!(
            "{name} is registered but does not answer; start it, then run `jurat executors check {name}`"
        ));
    }
    if let Some(others) = reply.value["same_url"].as_array().filter(|it| !it.is_empty()) {
        let has = if others.len() == 1 { "has" } else { "have" };
        let others = said(&json!(others));
        context.out.warn(&format!(
            "{others} {has} the same URL as {name}: rounds treat them as different executors, but asking one twice is not a second opinion; remove one with `jurat executors remove NAME`"
        ));
    }
    Ok(0)
}

fn added(body: &Value) -> String {
    let session = match body["session"]["id"].as_str() {
        Some(id) => format!("with session {id}"),
        None => "without a session".to_owned(),
    };
    let name = said(&body["name"]);
    format!("registered {name} {session}\n{}", found(&body["probe"]))
}

/// What a check found.
fn found(probe: &Value) -> String {
    let well = |part: &Value, text: String| {
        if part["ok"] == true { text } else { format!("unhealthy: {}", said(&part["error"])) }
    };
    let (health, can) = (&probe["health"], &probe["capabilities"]);
    let mut lines = vec![("health", well(health, "ok".to_owned()))];
    lines.push(("capabilities", well(can, "ok".to_owned())));
    if can["ok"] == true {
        lines.push(("task types", said(&can["task_types"])));
        lines.push(("profiles", said(&can["profiles"])));
        lines.push(("model", model(can)));
        lines.push(("policies", said(&can["policies"])));
    }
    let events = &probe["agent_events"];
    if !events.is_null() {
        let url = said(&events["url"]);
        lines.push(("agent events", well(events, format!("{url} answers"))));
    }
    fields(&lines)
}

fn model(capabilities: &Value) -> String {
    if capabilities["ok"] != true {
        return "–".to_owned();
    }
    let family = said(&capabilities["provider_family"]);
    format!("{family}/{}", said(&capabilities["model_id"]))
}

async fn list(context: &CommandContext, args: ListArgs) -> anyhow::Result<u8> {
    let reply = context.list(ROUTE, &[], args).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["name"]),
            word(&item["status"]),
            cell(&item["url"]),
            cell(&json!(model(&item["probe"]["capabilities"]))),
            cell(&item["circuit"]["state"]),
        ]
    });
    let header = ["name", "status", "url", "model", "circuit"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context
        .note_page(&reply.value, "no executors yet: add one with `jurat executors add NAME URL`");
    Ok(0)
}

fn shown(body: &Value) -> String {
    let head = fields(&[
        ("name", said(&body["name"])),
        ("url", said(&body["url"])),
        ("status", said(&body["status"])),
        ("circuit", said(&body["circuit"]["state"])),
        ("token env", said(&body["token_env"])),
        ("events url", said(&body["agent_events_url"])),
        ("added", said(&body["created_at"])),
        ("checked", said(&body["probe"]["at"])),
    ]);
    if body["probe"].is_null() { head } else { format!("{head}\n{}", found(&body["probe"])) }
}

async fn check(context: &CommandContext, name: &str) -> anyhow::Result<u8> {
    let call = ApiCall::post(path(ROUTE, &[name, "check"]), json!({}));
    let reply = context.send(call).await?;
    context.out.reply(&reply, |_| found(&reply.value))?;
    Ok(if reply.value["ok"] == true { 0 } else { ERROR })
}
