//! `jurat keys`.

pub(crate) mod args;

use anyhow::anyhow;
use jurat_client::keys;
use jurat_core::time::Timestamp;
use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::{
    keys::{CreateKeyDraft, CreatedKey, ListedKey},
    kit::words,
};
use serde_json::json;

use super::{CommandContext, shared::given, to_the_second};
use crate::{
    args::{CreateKeyArgs, KeysCommand, ListKeysArgs, RotateKeyArgs},
    client::Reply,
    output::{
        OutputFormat, counted,
        table::{cell, said, table, word},
    },
    state::StateFolder,
};

const KEPT: &str = "the new key is stored in `admin.key` in the state folder";

pub(super) async fn run(context: &CommandContext, command: KeysCommand) -> anyhow::Result<u8> {
    match command {
        KeysCommand::Create(args) => create(context, &args).await?,
        KeysCommand::List(args) => list(context, args).await?,
        KeysCommand::Revoke(args) => {
            let reply = context.send(keys::revoke(&args.key, args.account.as_deref())).await?;
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
    let draft = CreateKeyDraft {
        name: args.name.clone(),
        scopes: given(&args.scope),
        account: args.account.clone(),
        rate_per_minute: args.rate_per_minute.map(u64::from),
        concurrent_rounds: args.concurrent_rounds.map(u64::from),
        expires_at: args.expires_at.clone(),
    };
    let reply = context.send(keys::create(&draft)).await?;
    show_once(context, &reply).map_err(|error| unseen(&reply.value, &error))?;
    let key = &reply.value;
    context.out.note(&format!(
        "created key {} of {} with scopes {}; it is not shown again",
        said(&key.name),
        said(&key.account),
        scopes(&key.scopes)
    ));
    Ok(())
}

/// All scopes, never shortened: a hidden scope is dangerous.
pub(super) fn scopes(scopes: &[words::Scope]) -> String {
    scopes.iter().map(|scope| scope.0.as_str()).collect::<Vec<_>>().join(", ")
}

/// The key alone, for scripts.
fn show_once(context: &CommandContext, reply: &Reply<CreatedKey>) -> std::io::Result<()> {
    context.out.reply(reply, |_| reply.value.key.clone().unwrap_or_default())
}

async fn rotate(context: &CommandContext, args: &RotateKeyArgs) -> anyhow::Result<()> {
    let account = args.named.account.as_deref();
    let reply = context.send(keys::rotate(&args.named.key, account, args.grace_seconds)).await?;
    let key = &reply.value;
    // Stored before it is printed, so a failure to print does not lose the key.
    let is_kept = keep_in_folder(context, key)?;
    show_once(context, &reply).map_err(|error| {
        if is_kept {
            anyhow!("{KEPT}, but it could not be printed: {error}")
        } else {
            unseen(key, &error)
        }
    })?;
    context.out.note(&format!(
        "created key {}, which replaces {}; it is not shown again",
        said(&key.name),
        said(&key.replaces)
    ));
    if is_kept {
        context.out.note(KEPT);
    }
    Ok(())
}

/// The error for a key that was created but not printed. It hides its source, because a closed pipe
/// would count as success.
fn unseen(key: &CreatedKey, error: &std::io::Error) -> anyhow::Error {
    let id = said(&key.id);
    anyhow!(
        "the key {id} was created but could not be printed: {error}; revoke it with `jurat keys revoke {id}`, and create another"
    )
}

/// Stores the new key in `admin.key` if it replaces that key, and returns whether it does.
fn keep_in_folder(context: &CommandContext, key: &CreatedKey) -> anyhow::Result<bool> {
    let state = StateFolder::existing(&context.config.state_dir);
    // A file without a valid key cannot hold the old key.
    let kept = state.existing_admin_key().ok().flatten();
    let (Some(kept), Some(text)) = (kept, &key.key) else { return Ok(false) };
    let is_kept = key.replaces.as_deref() == Some(kept.id());
    if is_kept {
        state.replace_admin_key(text)?;
    }
    Ok(is_kept)
}

async fn list(context: &CommandContext, args: ListKeysArgs) -> anyhow::Result<()> {
    let reply = context.list(keys::list(args.account.as_deref()), args.list).await?;
    let now = SystemClock.now();
    let rows = reply.value.items.iter().map(|key| {
        vec![
            cell(&key.name),
            cell(&key.id),
            cell(&key.account),
            word(status(key, now)),
            cell(&key.scopes),
            cell(&limits(key)),
            cell(&key.expires_at.map(to_the_second)),
            cell(&key.last_used_at.map(to_the_second)),
        ]
    });
    let header = ["name", "key", "account", "status", "scopes", "limits", "expires", "last used"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no keys: create one with `jurat keys create NAME`");
    Ok(())
}

/// One word: `live`, `revoked` or `expired`.
fn status(key: &ListedKey, now: Timestamp) -> &'static str {
    if key.revoked_at.is_some() {
        return "revoked";
    }
    match key.expires_at {
        Some(end) if end.0 <= now => "expired",
        Some(_) | None => "live",
    }
}

fn limits(key: &ListedKey) -> Option<String> {
    let rate = key.rate_per_minute.map(|rate| format!("{rate} per minute"));
    let rounds = key.concurrent_rounds.map(|rounds| counted(rounds, "round"));
    let both: Vec<String> = rate.into_iter().chain(rounds).collect();
    if both.is_empty() { None } else { Some(both.join(", ")) }
}
