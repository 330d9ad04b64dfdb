//! `jurat auth`: coming in, and letting programs in.

use jurat_core::account::key::ApiKey;
use serde_json::json;

use super::{CommandContext, keys};
use crate::{
    args::{ApproveArgs, AuthCommand, KeysCommand, MailCodeArgs},
    client::{ApiCall, path},
    config::CliConfig,
    output::table::said,
    state::{LoginKey, StateFolder},
};

pub(super) async fn run(context: &CommandContext, command: AuthCommand) -> anyhow::Result<u8> {
    match command {
        AuthCommand::Register(args) => ask(context, "register", &args.email).await?,
        AuthCommand::Login(args) => ask(context, "login", &args.email).await?,
        AuthCommand::RegisterVerify(args) => verify(context, "register", &args).await?,
        AuthCommand::LoginVerify(args) => verify(context, "login", &args).await?,
        AuthCommand::Logout => logout(context).await?,
        AuthCommand::CreateKey(args) => return keys::run(context, KeysCommand::Create(args)).await,
        AuthCommand::ListKeys(args) => return keys::run(context, KeysCommand::List(args)).await,
        AuthCommand::RevokeKey(args) => return keys::run(context, KeysCommand::Revoke(args)).await,
        AuthCommand::Approve(args) => approve(context, &args).await?,
    }
    Ok(0)
}

/// Without a key: these routes take none, and there may be none.
fn keyless(context: &CommandContext) -> CommandContext {
    let config = CliConfig { key: Some("none".to_owned()), ..context.config.clone() };
    CommandContext { config, out: context.out }
}

async fn ask(context: &CommandContext, kind: &str, email: &str) -> anyhow::Result<()> {
    let call = ApiCall::post(format!("/v1/{kind}"), json!({ "email": email }));
    let reply = keyless(context).send(call).await?;
    context.out.confirm(&reply, || said(&reply.value["message"]))?;
    context.out.note(&format!("continue with `jurat auth {kind}-verify {email} CODE`"));
    Ok(())
}

async fn verify(context: &CommandContext, kind: &str, args: &MailCodeArgs) -> anyhow::Result<()> {
    let body = json!({ "email": args.email, "code": args.code });
    let reply = keyless(context).send(ApiCall::post(format!("/v1/{kind}/verify"), body)).await?;
    let key = reply.value["api_key"].as_str().unwrap_or_default();
    if args.print {
        context.out.reply(&reply, |_| key.to_owned())?;
        return Ok(());
    }
    let server = context.config.server.clone().unwrap_or_default();
    let kept = LoginKey { server, key: key.to_owned() };
    StateFolder::open_saying(&context.config.state_dir, context.out)?.keep_login(&kept)?;
    let id = said(&reply.value["key_id"]);
    context.out.data_or(&json!({ "status": "ok", "key_id": id }), || {
        format!("logged in; the key {id} is stored in `login.key` in the state folder")
    })?;
    Ok(())
}

/// Revokes the key of the login where it is from, and forgets it whatever comes of that.
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

/// The key of a login may revoke itself.
async fn revoke(context: &CommandContext, kept: LoginKey) -> anyhow::Result<()> {
    let Some(id) = ApiKey::parse(&kept.key).map(|key| key.id().to_owned()) else {
        anyhow::bail!("`login.key` does not contain a key");
    };
    let server = Some(kept.server).filter(|server| !server.is_empty());
    let config = CliConfig { key: Some(kept.key), server, ..context.config.clone() };
    let holder = CommandContext { config, out: context.out };
    holder.send(ApiCall::delete(path("/v1/api-keys", &[&id]))).await.map(drop)
}

async fn approve(context: &CommandContext, args: &ApproveArgs) -> anyhow::Result<()> {
    let body = json!({ "user_code": args.user_code, "approve": !args.deny });
    let reply = context.send(ApiCall::post("/v1/auth/approve", body)).await?;
    context.out.confirm(&reply, || {
        let done = if args.deny { "denied" } else { "approved" };
        format!("{done} the program with code {}", args.user_code)
    })?;
    Ok(())
}
