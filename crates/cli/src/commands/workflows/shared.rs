//! Grants access to a workflow, and transfers it to another owner.

use jurat_client::workflows;
use jurat_wire::api::workflows::WorkflowGrantDraft;

use super::CommandContext;
use crate::{
    args::{GrantWorkflowArgs, RevokeWorkflowGrantArgs, TransferWorkflowArgs, WorkflowNameArgs},
    commands::to_the_second,
    output::table::{cell, said, table},
};

pub(super) async fn grant(
    context: &CommandContext,
    args: &GrantWorkflowArgs,
) -> anyhow::Result<u8> {
    let GrantWorkflowArgs { named, grantee, role, include_history } = args;
    let draft = WorkflowGrantDraft {
        grantee_email_or_at_team_handle: grantee.clone(),
        role: role.clone(),
        include_history: Some(*include_history),
    };
    let reply = context.send(workflows::grant(&named.workflow, &draft)).await?;
    context.out.confirm(&reply, || format!("Granted {} to {grantee}", said(&reply.value.role)))?;
    Ok(0)
}

pub(super) async fn revoke(
    context: &CommandContext,
    args: &RevokeWorkflowGrantArgs,
) -> anyhow::Result<u8> {
    let call = workflows::revoke_grant(&args.named.workflow, &args.grantee);
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || {
        if reply.value.revoked {
            format!("Revoked the grant of {}", args.grantee)
        } else {
            format!("{} had no grant", args.grantee)
        }
    })?;
    Ok(0)
}

pub(super) async fn list(context: &CommandContext, args: &WorkflowNameArgs) -> anyhow::Result<u8> {
    let reply = context.send(workflows::grants(&args.workflow)).await?;
    context.out.reply(&reply, |out| {
        let rows = reply.value.items.iter().map(|grant| {
            let from = grant.shared_from_version;
            vec![
                cell(&grant.grantee_identifier),
                cell(&grant.grantee_type),
                cell(&grant.role),
                cell(&from.map_or_else(|| "all".to_owned(), |version| version.to_string())),
                cell(&grant.granted_by),
                cell(&to_the_second(grant.granted_at)),
            ]
        });
        let header = ["grantee", "type", "role", "from version", "granted by", "granted"];
        table(out, &header, rows.collect())
    })?;
    context.note_empty(reply.value.items.len(), "no one else has access");
    Ok(0)
}

pub(super) async fn leave(context: &CommandContext, args: &WorkflowNameArgs) -> anyhow::Result<u8> {
    let reply = context.send(workflows::leave(&args.workflow)).await?;
    context.out.confirm(&reply, || {
        if reply.value.removed_direct_grants == 0 {
            format!("You have access to {} only through a team; leave the team", args.workflow)
        } else {
            format!("Left {}", args.workflow)
        }
    })?;
    Ok(0)
}

pub(super) async fn transfer(
    context: &CommandContext,
    args: &TransferWorkflowArgs,
) -> anyhow::Result<u8> {
    let call = workflows::transfer_ownership(&args.named.workflow, &args.new_owner);
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || match &reply.value.invitation_id {
        Some(invitation) => format!("Asked {} (invitation {invitation})", args.new_owner),
        None => "It is already yours".to_owned(),
    })?;
    Ok(0)
}
