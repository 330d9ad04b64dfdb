//! `jurat me`, `jurat teams`, `jurat shares` and `jurat invitations`.

pub(crate) mod args;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{CommandContext, account, items, rounds::to_the_second, shared::confirm};
use crate::{
    args::{
        InvitationsCommand, ListInvitationsArgs, ListSharesArgs, MeCommand, MembershipArgs,
        SharesCommand, TeamFilterArg, TeamsCommand,
    },
    client::{ApiCall, path, query},
    output::table::{cell, said, table, word},
};

const TEAMS: &str = "/v1/teams";
const SHARES: &str = "/v1/shares";
const INVITATIONS: &str = "/v1/invitations";

pub(super) async fn me(context: &CommandContext, command: MeCommand) -> anyhow::Result<u8> {
    let call = match command {
        MeCommand::Show => return account::whoami(context).await,
        MeCommand::ClaimHandle(args) => {
            ApiCall::patch("/v1/me".to_owned(), json!({ "handle": args.handle }))
        }
        MeCommand::RenameHandle(args) => {
            ApiCall::post("/v1/me/rename-handle", json!({ "handle": args.handle }))
        }
    };
    let reply = context.send(call).await?;
    let handle = said(&reply.value["handle"]);
    context.out.confirm(&reply, || format!("your handle is @{handle}"))?;
    Ok(0)
}

pub(super) async fn teams(context: &CommandContext, command: TeamsCommand) -> anyhow::Result<u8> {
    match command {
        TeamsCommand::Create(args) => {
            let reply =
                context.send(ApiCall::post(TEAMS, json!({ "handle": args.handle }))).await?;
            let id = said(&reply.value["team_id"]);
            context.out.confirm(&reply, || format!("created team @{} ({id})", args.handle))?;
        }
        TeamsCommand::List { filter } => list_teams(context, filter).await?,
        TeamsCommand::Members { team } => members(context, &team).await?,
        TeamsCommand::AddMember(args) => {
            let body = json!({ "user_identifier": args.user });
            offer(context, &args, "members", body).await?;
        }
        TeamsCommand::TransferOwnership(args) => {
            let body = json!({ "new_owner_user_identifier": args.user });
            offer(context, &args, "transfer-ownership", body).await?;
        }
        TeamsCommand::RemoveMember(args) => remove(context, &args).await?,
        TeamsCommand::Leave { team } => {
            let me = context.send(ApiCall::get("/v1/me".to_owned())).await?;
            let user = me.value["id"].as_str().unwrap_or_default().to_owned();
            remove(context, &MembershipArgs { team, user }).await?;
        }
        TeamsCommand::Delete { team, yes } => {
            if !confirm::is_wanted(yes, &format!("Delete the team {team}? This cannot be undone."))?
            {
                context.out.note("nothing was deleted");
                return Ok(0);
            }
            let reply = context.send(ApiCall::delete(path(TEAMS, &[&team]))).await?;
            context.out.confirm(&reply, || format!("deleted team {team}"))?;
        }
    }
    Ok(0)
}

/// The word of a choice.
fn chosen(choice: &impl ValueEnum) -> Option<String> {
    choice.to_possible_value().map(|value| value.get_name().to_owned())
}

async fn list_teams(context: &CommandContext, filter: TeamFilterArg) -> anyhow::Result<()> {
    let address = query(TEAMS, &[("filter", chosen(&filter))]);
    let reply = context.send(ApiCall::get(address)).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["handle"]),
            word(&item["role"]),
            cell(&item["team_id"]),
            cell(&item["owner_user_id"]),
            cell(&json!(to_the_second(&item["created_at"]))),
        ]
    });
    let header = ["handle", "role", "team", "owner", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no teams: create one with `jurat teams create`");
    Ok(())
}

async fn members(context: &CommandContext, team: &str) -> anyhow::Result<()> {
    let reply = context.send(ApiCall::get(path(TEAMS, &[team, "members"]))).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["handle"]),
            cell(&item["email"]),
            word(&item["role"]),
            cell(&item["user_id"]),
            cell(&json!(to_the_second(&item["since"]))),
        ]
    });
    let header = ["handle", "email", "role", "account", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    Ok(())
}

async fn offer(
    context: &CommandContext,
    args: &MembershipArgs,
    what: &str,
    body: Value,
) -> anyhow::Result<()> {
    let reply = context.send(ApiCall::post(path(TEAMS, &[&args.team, what]), body)).await?;
    let id = said(&reply.value["invitation_id"]);
    context.out.confirm(&reply, || {
        format!("invited {}; they accept with `jurat invitations accept {id}`", args.user)
    })?;
    Ok(())
}

async fn remove(context: &CommandContext, args: &MembershipArgs) -> anyhow::Result<()> {
    let address = path(TEAMS, &[&args.team, "members", &args.user]);
    let reply = context.send(ApiCall::delete(address)).await?;
    context.out.confirm(&reply, || format!("removed {} from {}", args.user, args.team))?;
    Ok(())
}

pub(super) async fn shares(context: &CommandContext, command: SharesCommand) -> anyhow::Result<u8> {
    let (id, what) = match command {
        SharesCommand::List(args) => {
            list_shares(context, args).await?;
            return Ok(0);
        }
        SharesCommand::Accept { id } => (id, "accept"),
        SharesCommand::Decline { id } => (id, "decline"),
        SharesCommand::Block { id } => (id, "block"),
    };
    let reply = context.send(ApiCall::post(path(SHARES, &[&id, what]), json!({}))).await?;
    let body = &reply.value;
    context.out.confirm(&reply, || {
        let (name, owner) = (said(&body["reference"]), said(&body["owner"]));
        if body["blocked"] == json!(true) {
            return format!("blocked {owner}: all their shares are declined");
        }
        format!("{} {name}", said(&body["state"]))
    })?;
    Ok(0)
}

async fn list_shares(context: &CommandContext, args: ListSharesArgs) -> anyhow::Result<()> {
    let parameters = [
        ("state", args.state.as_ref().and_then(chosen)),
        ("limit", args.list.limit.map(|limit| limit.to_string())),
        ("cursor", args.list.cursor),
    ];
    let reply = context.send(ApiCall::get(query(SHARES, &parameters))).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["id"]),
            cell(&item["reference"]),
            cell(&item["name"]),
            word(&item["role"]),
            word(&item["state"]),
            cell(&item["via_team"]),
            cell(&json!(to_the_second(&item["granted_at"]))),
        ]
    });
    let header = ["share", "reference", "name", "role", "state", "team", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no workflows are shared with you");
    Ok(())
}

pub(super) async fn invitations(
    context: &CommandContext,
    command: InvitationsCommand,
) -> anyhow::Result<u8> {
    let (id, what) = match command {
        InvitationsCommand::List(args) => {
            list_invitations(context, args).await?;
            return Ok(0);
        }
        InvitationsCommand::Accept { id } => (id, "accept"),
        InvitationsCommand::Decline { id } => (id, "decline"),
        InvitationsCommand::Cancel { id } => (id, "cancel"),
    };
    let reply = context.send(ApiCall::post(path(INVITATIONS, &[&id, what]), json!({}))).await?;
    let body = &reply.value;
    context.out.confirm(&reply, || {
        let about = said(&body["target_label"]);
        format!("{} the invitation for {about}", said(&body["resolution"]))
    })?;
    Ok(0)
}

async fn list_invitations(
    context: &CommandContext,
    args: ListInvitationsArgs,
) -> anyhow::Result<()> {
    let filters = [("filter", chosen(&args.filter)), ("state", chosen(&args.state))];
    let reply = context.list(INVITATIONS, &filters, args.list).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["id"]),
            cell(&item["kind"]),
            cell(&item["target_label"]),
            cell(&item["proposed_by_handle"]),
            cell(&item["proposed_to_handle"]),
            word(&item["resolution"]),
            cell(&json!(to_the_second(&item["expires_at"]))),
        ]
    });
    let header = ["invitation", "kind", "target", "from", "to", "resolution", "expires"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no invitations");
    Ok(())
}
