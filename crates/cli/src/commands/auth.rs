//! `jurat auth`: logins, and access for programs.

use jurat_client::{
    keys as api_keys,
    logins::{self, Entrance},
};
use jurat_core::account::key::ApiKey;
use serde_json::json;

use super::{CommandContext, keys};
use crate::{
    args::{ApproveArgs, AuthCommand, KeysCommand, MailCodeArgs},
    config::CliConfig,
    output::table::said,
    state::{LoginKey, StateFolder},
};

pub(super) async fn run(context: &CommandContext, command: AuthCommand) -> anyhow::Result<u8> {
    match command {
        AuthCommand::Register(args) => ask(context, Entrance::Register, &args.email).await?,
        AuthCommand::Login(args) => ask(context, Entrance::Login, &args.email).await?,
        AuthCommand::RegisterVerify(args) => verify(context, Entrance::Register, &args).await?,
        AuthCommand::LoginVerify(args) => verify(context, Entrance::Login, &args).await?,
        AuthCommand::Logout => logout(context).await?,
        AuthCommand::CreateKey(args) => return keys::run(context, KeysCommand::Create(args)).await,
        AuthCommand::ListKeys(args) => return keys::run(context, KeysCommand::List(args)).await,
        AuthCommand::RevokeKey(args) => return keys::run(context, KeysCommand::Revoke(args)).await,
        AuthCommand::Approve(args) => approve(context, &args).await?,
    }
    Ok(0)
}

/// A context with a placeholder for the key, for routes that need none.
fn keyless(context: &CommandContext) -> CommandContext {
    let config = CliConfig { key: Some("none".to_owned()), ..context.config.clone() };
    CommandContext { config, out: context.out }
}

async fn ask(context: &CommandContext, entrance: Entrance, email: &str) -> anyhow::Result<()> {
    let reply = keyless(context).send(logins::request_code(entrance, email)).await?;
    context.out.confirm(&reply, || said(&reply.value.message))?;
    let kind = entrance.as_str();
    context.out.note(&format!("continue with `jurat auth {kind}-verify {email} CODE`"));
    Ok(())
}

async fn verify(
    context: &CommandContext,
    entrance: Entrance,
    args: &MailCodeArgs,
) -> anyhow::Result<()> {
    let call = logins::verify_code(entrance, &args.email, &args.code);
    let reply = keyless(context).send(call).await?;
    let key = &reply.value.api_key;
    if args.print {
        context.out.reply(&reply, |_| key.to_owned())?;
        return Ok(());
    }
    let server = context.config.server.clone().unwrap_or_default();
    let kept = LoginKey { server, key: key.to_owned() };
    StateFolder::open_saying(&context.config.state_dir, context.out)?.keep_login(&kept)?;
    let id = said(&reply.value.key_id);
    context.out.data_or(&json!({ "status": "ok", "key_id": id }), || {
        format!("logged in; the key {id} is stored in `login.key` in the state folder")
    })?;
    Ok(())
}

/// Revokes the login key on its server, and deletes the local copy even if that fails.
async fn logout(context: &CommandContext) -> anyhow::Result<()> {
    let state = StateFolder::existing(&context.config.state_dir);
    let Some(kept) = state.login() else {
        let body = json!({ "status": "ok", "was_logged_in": false, "revoked": false });
        context.out.data_or(&body, || "not logged in".to_owned())?;
        return Ok(());
    };
    let revoked = revoke(context, kept).await;
    state.forget_login()?;
    let body = json!({ "status": "ok", "was_logged_in": true, "revoked": revoked.is_ok() });
    context.out.data_or(&body, || match &revoked {
        Ok(()) => "logged out; the key is revoked".to_owned(),
        Err(_) => "logged out; the local key is deleted".to_owned(),
    })?;
    if let Err(error) = revoked {
        context.out.note(&format!(
            "the key was not revoked: {error:#}; revoke it with `jurat auth revoke-key` and another key"
        ));
    }
    Ok(())
}

/// Revokes a login key with that same key, which may revoke itself.
async fn revoke(context: &CommandContext, kept: LoginKey) -> anyhow::Result<()> {
    let Some(id) = ApiKey::parse(&kept.key).map(|key| key.id().to_owned()) else {
        anyhow::bail!("`login.key` does not contain a key");
    };
    let server = Some(kept.server).filter(|server| !server.is_empty());
    let config = CliConfig { key: Some(kept.key), server, ..context.config.clone() };
    let holder = CommandContext { config, out: context.out };
    holder.send(api_keys::revoke(&id, None)).await.map(drop)
}

async fn approve(context: &CommandContext, args: &ApproveArgs) -> anyhow::Result<()> {
    let reply = context.send(logins::answer_device(&args.user_code, !args.deny)).await?;
    context.out.confirm(&reply, || {
        let done = if args.deny { "denied" } else { "approved" };
        format!("{done} the program with code {}", args.user_code)
    })?;
    Ok(())
}
