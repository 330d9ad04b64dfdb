//! `jurat me`, `jurat teams`, `jurat shares` and `jurat invitations`.

pub(crate) mod args;

use clap::ValueEnum;
use jurat_client::{
    Call,
    invitations::{self, InvitationReply},
    me,
    shares::{self, ShareReply},
    teams,
};
use jurat_wire::api::invitations::InvitationSent;

use super::{CommandContext, account, shared::confirm, to_the_second};
use crate::{
    args::{
        InvitationsCommand, ListInvitationsArgs, ListSharesArgs, MeCommand, MembershipArgs,
        SharesCommand, TeamFilterArg, TeamsCommand,
    },
    output::table::{cell, said, table, word},
};

pub(super) async fn run_me(context: &CommandContext, command: MeCommand) -> anyhow::Result<u8> {
    let call = match command {
        MeCommand::Show => return account::whoami(context).await,
        MeCommand::ClaimHandle(args) => me::claim_handle(&args.handle),
        MeCommand::RenameHandle(args) => me::rename_handle(&args.handle),
    };
    let reply = context.send(call).await?;
    let handle = said(&reply.value.handle);
    context.out.confirm(&reply, || format!("your handle is @{handle}"))?;
    Ok(0)
}

pub(super) async fn run_teams(
    context: &CommandContext,
    command: TeamsCommand,
) -> anyhow::Result<u8> {
    match command {
        TeamsCommand::Create(args) => {
            let reply = context.send(teams::create(&args.handle)).await?;
            let id = said(&reply.value.team_id);
            context.out.confirm(&reply, || format!("created team @{} ({id})", args.handle))?;
        }
        TeamsCommand::List { filter } => list_teams(context, filter).await?,
        TeamsCommand::Members { team } => members(context, &team).await?,
        TeamsCommand::AddMember(args) => {
            offer(context, teams::invite(&args.team, &args.user), &args.user).await?;
        }
        TeamsCommand::TransferOwnership(args) => {
            let call = teams::transfer_ownership(&args.team, &args.user);
            offer(context, call, &args.user).await?;
        }
        TeamsCommand::RemoveMember(args) => remove(context, &args).await?,
        TeamsCommand::Leave { team } => {
            let user = context.send(me::show()).await?.value.id.into_owned();
            remove(context, &MembershipArgs { team, user }).await?;
        }
        TeamsCommand::Delete { team, yes } => {
            if !confirm::is_wanted(yes, &format!("Delete the team {team}? This cannot be undone."))?
            {
                context.out.note("nothing was deleted");
                return Ok(0);
            }
            let reply = context.send(teams::delete(&team)).await?;
            context.out.confirm(&reply, || format!("deleted team {team}"))?;
        }
    }
    Ok(0)
}

/// The name of a choice on the command line.
fn chosen(choice: &impl ValueEnum) -> Option<String> {
    choice.to_possible_value().map(|value| value.get_name().to_owned())
}

async fn list_teams(context: &CommandContext, filter: TeamFilterArg) -> anyhow::Result<()> {
    let reply = context.send(teams::list(chosen(&filter).as_deref())).await?;
    let rows = reply.value.items.iter().map(|team| {
        vec![
            cell(&team.handle),
            word(&team.role),
            cell(&team.team_id),
            cell(&team.owner_user_id),
            cell(&to_the_second(team.created_at)),
        ]
    });
    let header = ["handle", "role", "team", "owner", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no teams: create one with `jurat teams create`");
    Ok(())
}

async fn members(context: &CommandContext, team: &str) -> anyhow::Result<()> {
    let reply = context.send(teams::members(team)).await?;
    let rows = reply.value.items.iter().map(|member| {
        vec![
            cell(&member.handle),
            cell(&member.email),
            word(&member.role),
            cell(&member.user_id),
            cell(&to_the_second(member.since)),
        ]
    });
    let header = ["handle", "email", "role", "account", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    Ok(())
}

async fn offer(
    context: &CommandContext,
    call: Call<InvitationSent<'static>>,
    user: &str,
) -> anyhow::Result<()> {
    let reply = context.send(call).await?;
    let id = said(&reply.value.invitation_id);
    context.out.confirm(&reply, || {
        format!("invited {user}; they accept with `jurat invitations accept {id}`")
    })?;
    Ok(())
}

async fn remove(context: &CommandContext, args: &MembershipArgs) -> anyhow::Result<()> {
    let reply = context.send(teams::remove_member(&args.team, &args.user)).await?;
    context.out.confirm(&reply, || format!("removed {} from {}", args.user, args.team))?;
    Ok(())
}

pub(super) async fn run_shares(
    context: &CommandContext,
    command: SharesCommand,
) -> anyhow::Result<u8> {
    let (id, answer) = match command {
        SharesCommand::List(args) => {
            list_shares(context, args).await?;
            return Ok(0);
        }
        SharesCommand::Accept { id } => (id, ShareReply::Accept),
        SharesCommand::Decline { id } => (id, ShareReply::Decline),
        SharesCommand::Block { id } => (id, ShareReply::Block),
    };
    let reply = context.send(shares::answer(&id, answer)).await?;
    let share = &reply.value;
    context.out.confirm(&reply, || {
        let (name, owner) = (said(&share.reference), said(&share.owner));
        if share.blocked {
            return format!("blocked {owner}: all their shares are declined");
        }
        format!("{} {name}", said(&share.state))
    })?;
    Ok(0)
}

async fn list_shares(context: &CommandContext, args: ListSharesArgs) -> anyhow::Result<()> {
    let state = args.state.as_ref().and_then(chosen);
    let call = shares::list(state.as_deref());
    let reply = context.send(call.page(args.list.limit, args.list.cursor.as_deref())).await?;
    let rows = reply.value.items.iter().map(|share| {
        vec![
            cell(&share.id),
            cell(&share.reference),
            cell(&share.name),
            word(&share.role),
            word(&share.state),
            cell(&share.via_team),
            cell(&to_the_second(share.granted_at)),
        ]
    });
    let header = ["share", "reference", "name", "role", "state", "team", "since"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no workflows are shared with you");
    Ok(())
}

pub(super) async fn run_invitations(
    context: &CommandContext,
    command: InvitationsCommand,
) -> anyhow::Result<u8> {
    let (id, answer) = match command {
        InvitationsCommand::List(args) => {
            list_invitations(context, args).await?;
            return Ok(0);
        }
        InvitationsCommand::Accept { id } => (id, InvitationReply::Accept),
        InvitationsCommand::Decline { id } => (id, InvitationReply::Decline),
        InvitationsCommand::Cancel { id } => (id, InvitationReply::Cancel),
    };
    let reply = context.send(invitations::answer(&id, answer)).await?;
    let ended = &reply.value;
    context.out.confirm(&reply, || {
        let about = said(&ended.target_label);
        format!("{} the invitation for {about}", said(&ended.resolution))
    })?;
    Ok(0)
}

async fn list_invitations(
    context: &CommandContext,
    args: ListInvitationsArgs,
) -> anyhow::Result<()> {
    let (filter, state) = (chosen(&args.filter), chosen(&args.state));
    let call = invitations::list(filter.as_deref(), state.as_deref());
    let reply = context.list(call, args.list).await?;
    let rows = reply.value.items.iter().map(|invitation| {
        vec![
            cell(&invitation.id),
            cell(&invitation.kind),
            cell(&invitation.target_label),
            cell(&invitation.proposed_by_handle),
            cell(&invitation.proposed_to_handle),
            word(&invitation.resolution),
            cell(&to_the_second(invitation.expires_at)),
        ]
    });
    let header = ["invitation", "kind", "target", "from", "to", "resolution", "expires"];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no invitations");
    Ok(())
}
