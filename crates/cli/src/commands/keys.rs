//! `jurat keys`.

use jurat_core::{key::ApiKey, time::Timestamp};
use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::time;
use serde_json::{Map, Value, json};

use super::{Context, items, rounds::to_the_second};
use crate::{
    args::{CreateKey, Keys, ListKeys, NamedKey, RotateKey},
    client::{Call, Reply, path, query},
    output::table::{cell, said, table, word},
    state::State,
};

const ROUTE: &str = "/v1/api-keys";

pub(super) async fn run(context: &Context, command: Keys) -> anyhow::Result<u8> {
    match command {
        Keys::Create(args) => create(context, &args).await?,
        Keys::List(args) => list(context, args).await?,
        Keys::Revoke(args) => {
            let reply = context.send(Call::delete(address(&args, &[]))).await?;
            context.out.reply(&reply, |_| format!("revoked {}", args.key))?;
        }
        Keys::Rotate(args) => rotate(context, &args).await?,
    }
    Ok(0)
}

async fn create(context: &Context, args: &CreateKey) -> anyhow::Result<()> {
    let reply = context.send(Call::post(ROUTE, create_body(args))).await?;
    show_once(context, &reply)?;
    let key = &reply.value;
    context.out.note(&format!(
        "made the key {} of {} for {}; it is not shown again",
        said(&key["name"]),
        said(&key["account"]),
        said(&key["scopes"])
    ));
    Ok(())
}

fn create_body(args: &CreateKey) -> Value {
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

/// The key alone, so that a script can keep what is printed.
fn show_once(context: &Context, reply: &Reply) -> std::io::Result<()> {
    context.out.reply(reply, |_| reply.value["key"].as_str().unwrap_or_default().to_owned())
}

async fn rotate(context: &Context, args: &RotateKey) -> anyhow::Result<()> {
    let mut body = json!({});
    if let Some(seconds) = args.grace_seconds {
        body["grace_seconds"] = json!(seconds);
    }
    let reply = context.send(Call::post(address(&args.named, &["rotate"]), body)).await?;
    show_once(context, &reply)?;
    let key = &reply.value;
    context.out.note(&format!(
        "made the key {}, which takes the place of {}; it is not shown again",
        said(&key["name"]),
        said(&key["replaces"])
    ));
    keep_in_folder(context, key)
}

/// Replaces `admin.key` when it was that key whose place the new one takes.
fn keep_in_folder(context: &Context, key: &Value) -> anyhow::Result<()> {
    let state = State::existing(&context.config.state_dir);
    let kept = state.admin_key_text().and_then(|text| ApiKey::parse(&text));
    let (Some(kept), Some(text)) = (kept, key["key"].as_str()) else { return Ok(()) };
    if key["replaces"] == kept.id() {
        state.replace_admin_key(text)?;
        context.out.note("`admin.key` in the state folder holds the new key");
    }
    Ok(())
}

async fn list(context: &Context, args: ListKeys) -> anyhow::Result<()> {
    let parameters = [
        ("account", args.account),
        ("limit", args.list.limit.map(|limit| limit.to_string())),
        ("cursor", args.list.cursor),
    ];
    let reply = context.send(Call::get(query(ROUTE, &parameters))).await?;
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
    let header = ["name", "key", "account", "status", "scopes", "limits", "ends at", "last used"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no keys: make one with `jurat keys create NAME`");
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
    let rate = item["rate_per_minute"].as_u64().map(|rate| format!("{rate} a minute"));
    let rounds = item["concurrent_rounds"].as_u64().map(|rounds| format!("{rounds} rounds"));
    let both: Vec<String> = rate.into_iter().chain(rounds).collect();
    if both.is_empty() { None } else { Some(both.join(", ")) }
}

fn address(named: &NamedKey, rest: &[&str]) -> String {
    let parts = [&[named.key.as_str()], rest].concat();
    query(&path(ROUTE, &parts), &[("account", named.account.clone())])
}
