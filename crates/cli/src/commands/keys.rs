//! `jurat keys`.

pub(crate) mod args;

use anyhow::anyhow;
use jurat_core::time::Timestamp;
use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::kit::time;
use serde_json::{Map, Value, json};

use super::{CommandContext, items, rounds::to_the_second};
use crate::{
    args::{CreateKeyArgs, KeyNameArgs, KeysCommand, ListKeysArgs, RotateKeyArgs},
    client::{ApiCall, ApiReply, path, query},
    output::{
        OutputFormat, counted,
        table::{cell, said, table, word},
    },
    state::StateFolder,
};

const ROUTE: &str = "/v1/api-keys";
const KEPT: &str = "the new key is stored in `admin.key` in the state folder";

pub(super) async fn run(context: &CommandContext, command: KeysCommand) -> anyhow::Result<u8> {
    match command {
        KeysCommand::Create(args) => create(context, &args).await?,
        KeysCommand::List(args) => list(context, args).await?,
        KeysCommand::Revoke(args) => {
            let reply = context.send(ApiCall::delete(address(&args, &[]))).await?;
            match context.out.format {
                OutputFormat::Json if reply.bytes.is_empty() => {
                    let body = json!({ "status": "revoked", "key": args.key });
                    context.out.data(&body.to_string())?;
                }
                OutputFormat::Json | OutputFormat::Text => {
                    context.out.confirm(&reply, || format!("revoked {}", args.key))?;
                }
            }
        }
        KeysCommand::Rotate(args) => rotate(context, &args).await?,
    }
    Ok(0)
}

async fn create(context: &CommandContext, args: &CreateKeyArgs) -> anyhow::Result<()> {
    let reply = context.send(ApiCall::post(ROUTE, create_body(args))).await?;
    show_once(context, &reply).map_err(|error| unseen(&reply, &error))?;
    let key = &reply.value;
    context.out.note(&format!(
        "created key {} of {} with scopes {}; it is not shown again",
        said(&key["name"]),
        said(&key["account"]),
        scopes(key)
    ));
    Ok(())
}

fn create_body(args: &CreateKeyArgs) -> Value {
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(args.name));
    if !args.scope.is_empty() {
        body.insert("scopes".to_owned(), json!(args.scope));
    }
    for (name, value) in [
        ("account", json!(args.account)),
        ("rate_per_minute", json!(args.rate_per_minute)),
        ("concurrent_rounds", json!(args.concurrent_rounds)),
        ("expires_at", json!(args.expires_at)),
    ] {
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    }
    Value::Object(body)
}

/// All of them, for a key that may do more than was thought is a danger.
pub(super) fn scopes(key: &Value) -> String {
    let scopes = key["scopes"].as_array().into_iter().flatten();
    scopes.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// The key alone, so that a script can keep what is printed.
fn show_once(context: &CommandContext, reply: &ApiReply) -> std::io::Result<()> {
    context.out.reply(reply, |_| reply.value["key"].as_str().unwrap_or_default().to_owned())
}

async fn rotate(context: &CommandContext, args: &RotateKeyArgs) -> anyhow::Result<()> {
    let mut body = json!({});
    if let Some(seconds) = args.grace_seconds {
        body["grace_seconds"] = json!(seconds);
    }
    let reply = context.send(ApiCall::post(address(&args.named, &["rotate"]), body)).await?;
    let key = &reply.value;
    // A key that is kept is not lost with what is printed.
    let is_kept = keep_in_folder(context, key)?;
    show_once(context, &reply).map_err(|error| {
        if is_kept {
            anyhow!("{KEPT}, but it could not be printed: {error}")
        } else {
            unseen(&reply, &error)
        }
    })?;
    context.out.note(&format!(
        "created key {}, which replaces {}; it is not shown again",
        said(&key["name"]),
        said(&key["replaces"])
    ));
    if is_kept {
        context.out.note(KEPT);
    }
    Ok(())
}

/// A key that nobody has seen is made all the same. This is not the error of a reader who has seen
/// enough, so it does not say which one it was.
fn unseen(reply: &ApiReply, error: &std::io::Error) -> anyhow::Error {
    let id = said(&reply.value["id"]);
    anyhow!(
        "the key {id} was created but could not be printed: {error}; revoke it with `jurat keys revoke {id}`, and create another"
    )
}

/// Replaces `admin.key` when it was that key whose place the new one takes, and says whether.
fn keep_in_folder(context: &CommandContext, key: &Value) -> anyhow::Result<bool> {
    let state = StateFolder::existing(&context.config.state_dir);
    // A file without a key does not hold the old one.
    let kept = state.existing_admin_key().ok().flatten();
    let (Some(kept), Some(text)) = (kept, key["key"].as_str()) else { return Ok(false) };
    let is_kept = key["replaces"] == kept.id();
    if is_kept {
        state.replace_admin_key(text)?;
    }
    Ok(is_kept)
}

async fn list(context: &CommandContext, args: ListKeysArgs) -> anyhow::Result<()> {
    let reply = context.list(ROUTE, &[("account", args.account)], args.list).await?;
    let now = SystemClock.now();
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["name"]),
            cell(&item["id"]),
            cell(&item["account"]),
            word(&json!(status(item, now))),
            cell(&item["scopes"]),
            cell(&json!(limits(item))),
            cell(&json!(to_the_second(&item["expires_at"]))),
            cell(&json!(to_the_second(&item["last_used_at"]))),
        ]
    });
    let header = ["name", "key", "account", "status", "scopes", "limits", "expires", "last used"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no keys: create one with `jurat keys create NAME`");
    Ok(())
}

/// One word: `live`, `revoked` or `expired`.
fn status(item: &Value, now: Timestamp) -> &'static str {
    if !item["revoked_at"].is_null() {
        return "revoked";
    }
    match item["expires_at"].as_str().and_then(time::parse) {
        Some(end) if end <= now => "expired",
        Some(_) | None => "live",
    }
}

fn limits(item: &Value) -> Option<String> {
    let rate = item["rate_per_minute"].as_u64().map(|rate| format!("{rate} per minute"));
    let rounds = item["concurrent_rounds"].as_u64().map(|rounds| counted(rounds, "round"));
    let both: Vec<String> = rate.into_iter().chain(rounds).collect();
    if both.is_empty() { None } else { Some(both.join(", ")) }
}

fn address(named: &KeyNameArgs, rest: &[&str]) -> String {
    let parts = [&[named.key.as_str()], rest].concat();
    query(&path(ROUTE, &parts), &[("account", named.account.clone())])
}
