//! Who may use a workflow.

use serde_json::json;

use super::{CommandContext, ROUTE};
use crate::{
    args::{GrantWorkflowArgs, RevokeWorkflowGrantArgs, TransferWorkflowArgs, WorkflowNameArgs},
    client::{ApiCall, path},
    commands::{items, rounds::to_the_second},
    output::table::{cell, said, table},
};

pub(super) async fn grant(
    context: &CommandContext,
    args: &GrantWorkflowArgs,
) -> anyhow::Result<u8> {
    let body = json!({
        "grantee_email_or_at_team_handle": args.grantee,
        "role": args.role,
        "include_history": args.include_history,
    });
    let call = ApiCall::post(path(ROUTE, &[&args.named.workflow, "grants"]), body);
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || {
        format!("Granted {} to {}", said(&reply.value["role"]), args.grantee)
    })?;
    Ok(0)
}

pub(super) async fn revoke(
    context: &CommandContext,
    args: &RevokeWorkflowGrantArgs,
) -> anyhow::Result<u8> {
    let body = json!({ "grantee_email_or_at_team_handle": args.grantee });
    let address = path(ROUTE, &[&args.named.workflow, "grants"]);
    let reply = context.send(ApiCall::delete(address).sending(body)).await?;
    context.out.confirm(&reply, || {
        if reply.value["revoked"] == true {
            format!("Revoked the grant of {}", args.grantee)
        } else {
            format!("{} had no grant", args.grantee)
        }
    })?;
    Ok(0)
}

pub(super) async fn list(context: &CommandContext, args: &WorkflowNameArgs) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::get(path(ROUTE, &[&args.workflow, "grants"]))).await?;
    context.out.reply(&reply, |out| {
        let rows = items(&reply.value).iter().map(|item| {
            let from = &item["shared_from_version"];
            let from = if from.is_null() { json!("all") } else { from.clone() };
            vec![
                cell(&item["grantee_identifier"]),
                cell(&item["grantee_type"]),
                cell(&item["role"]),
                cell(&from),
                cell(&item["granted_by"]),
                cell(&json!(to_the_second(&item["granted_at"]))),
            ]
        });
        let header = ["grantee", "type", "role", "from version", "granted by", "granted"];
        table(out, &header, rows.collect())
    })?;
    context.note_page(&reply.value, "no one else has access");
    Ok(0)
}

pub(super) async fn leave(context: &CommandContext, args: &WorkflowNameArgs) -> anyhow::Result<u8> {
    let call = ApiCall::post(path(ROUTE, &[&args.workflow, "leave"]), json!({}));
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || {
        if reply.value["removed_direct_grants"] == 0 {
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
    let body = json!({ "new_owner_user_id_or_email": args.new_owner });
    let address = path(ROUTE, &[&args.named.workflow, "transfer-ownership"]);
    let reply = context.send(ApiCall::post(address, body)).await?;
    context.out.confirm(&reply, || match reply.value["invitation_id"].as_str() {
        Some(invitation) => format!("Asked {} (invitation {invitation})", args.new_owner),
        None => "It is already yours".to_owned(),
    })?;
    Ok(0)
}
