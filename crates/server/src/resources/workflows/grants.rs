//! Access to workflows: grants, departures and transfers.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    workflow::{
        Workflow,
        operation::{
            GrantRevocationResult, OfferOutcome, WorkflowGrantResult, WorkflowLeaveResult,
        },
    },
};
use jurat_engine::{Engine, NewWorkflowGrant};
use jurat_wire::api::workflows::{
    self, GrantedWorkflow, LeftWorkflow, OfferedWorkflow, RevokeWorkflowGrantRequest,
    RevokedWorkflowGrant, TransferWorkflowRequest, WorkflowGrantList, WorkflowGrantRequest,
};
use serde_json::{Value, json};

use crate::{
    mcp::render,
    operation::{Operation, TextAuthor, Tool},
    request::{
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
    },
    resources::{
        WORKFLOWS,
        workflows::{WORKFLOW, WORKFLOW_NAMES, examples},
    },
};

pub(super) fn grant_operation() -> Operation {
    let text = "Grants a user, or all members of a team, access to a workflow and the verifiers that it names: `view` can read and run, `edit` can also save versions and tune its verifiers, `admin` can also share. Versions before the current one are shared only with `include_history`. A second grant to the same user or team changes the role and removes no versions. Callers cannot grant a higher role, or earlier versions, than they have. The caller must be a member of the team.";
    let about = "Grants a user or team access to a workflow and the verifiers that it names.";
    Operation::post("/v1/workflows/{ref}/grants", "workflow_grant", grant)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Grant a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .takes::<WorkflowGrantRequest>([(
            "plain",
            json!({
                "grantee_email_or_at_team_handle": "@crew", "role": "view",
                "include_history": false,
            }),
        )])
        .answers::<GrantedWorkflow<'_>>(
            201,
            "The grant.",
            json!({
                "workflow_id": examples::ID, "skill_id": examples::ID, "role": "view",
                "includes_full_history": false, "shared_from_version": 1,
            }),
        )
        .idempotent()
        .refuses([ProblemCode::UserNotFound, ProblemCode::Conflict, ProblemCode::QuotaExceeded])
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::adds("grant_skill", "Grant a workflow", about)
                .also("grant_workflow")
                .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow."),
        )
}

async fn grant(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
    Json(body): Json,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let (grantee, role, with_history) = workflows::decode_grant(&body)?;
    let new = NewWorkflowGrant { grantee, role, with_history };
    let reply =
        |it: &WorkflowGrantResult| json!(workflows::granted(&it.workflow.id, it.role, it.floor));
    let keyed = idempotency.write_for("workflow_grant", &body, StatusCode::CREATED, reply);
    let done = engine.workflow_grant(&caller, &asked, new, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::created(&reply(it))))
}

pub(super) fn list_operation() -> Operation {
    let text = "The grants of a workflow. Callers who may not share it see only their own grants.";
    Operation::get("/v1/workflows/{ref}/grants", "workflow_grants", list)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("List the grants of a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsRead)
        .answers::<WorkflowGrantList<'_>>(
            200,
            "The grants.",
            json!({ "items": [{
                "grantee_type": "team", "grantee_identifier": "@crew", "role": "view",
                "granted_by": "acct_admin", "granted_at": examples::AT, "is_via_team": true,
                "includes_full_history": false, "shared_from_version": 1,
            }] }),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads(
                "list_skill_grants",
                "List grants",
                "Lists the users and teams with access to a workflow.",
            )
            .also("list_workflow_grants")
            .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
            .ignores_unknown()
            .summary(render::counted_pages)
            .author(TextAuthor::Others),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
) -> HandlerResult {
    let found = engine.workflow_grants(&caller, &workflows::reference(&text)?).await?;
    let items = found.iter().map(workflows::grant_line).collect();
    Ok(encode::ok(&WorkflowGrantList { items }))
}

pub(super) fn revoke_operation() -> Operation {
    let text = "Revokes a grant and access to the verifiers. The body names the user or team. If there is no such grant, nothing happens and `revoked` is false.";
    Operation::delete("/v1/workflows/{ref}/grants", "workflow_revoke", revoke)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Revoke a grant of a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .takes::<RevokeWorkflowGrantRequest>([(
            "plain",
            json!({ "grantee_email_or_at_team_handle": "@crew" }),
        )])
        .answers::<RevokedWorkflowGrant<'_>>(
            200,
            "The revoked grant.",
            json!({ "workflow_id": examples::ID, "skill_id": examples::ID, "revoked": true }),
        )
        .idempotent()
        .refuses([ProblemCode::UserNotFound])
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::changes(
                "revoke_skill_grant",
                "Revoke a grant",
                "Revokes a grant of a workflow and access to its verifiers.",
            )
            .also("revoke_workflow_grant")
            .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow."),
        )
}

async fn revoke(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
    Json(body): Json,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let grantee = workflows::decode_revoke(&body)?;
    let reply =
        |it: &GrantRevocationResult| json!(workflows::revoked(&it.workflow.id, it.was_there));
    let keyed = idempotency.write_for("workflow_revoke", &body, StatusCode::OK, reply);
    let done = engine.workflow_revoke(&caller, &asked, grantee, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&reply(it))))
}

pub(super) fn leave_operation() -> Operation {
    let text = "Ends the caller's own grant; team grants stay. The owner cannot leave.";
    Operation::post("/v1/workflows/{ref}/leave", "workflow_leave", leave).aliased("/v1/workflows", "/v1/skills", "_of_skill").tag(WORKFLOWS).summary("Leave a workflow").text(text).in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .answers::<LeftWorkflow<'_>>(
            200,
            "The caller's own grant has ended.",
            json!({ "workflow_id": examples::ID, "skill_id": examples::ID, "removed_direct_grants": 1 }),
        )
        .idempotent()
        .refuses([ProblemCode::WorkflowOwnershipMustTransfer]).refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(Tool::changes("leave_shared_skill", "Leave a workflow", "Ends the account's own grant; team grants stay.").also("leave_shared_workflow").path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.").ignores_unknown())
}

async fn leave(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let reply = |it: &WorkflowLeaveResult| json!(workflows::left(&it.workflow.id, it.removed));
    let keyed = idempotency.write_for("workflow_leave", &Value::Null, StatusCode::OK, reply);
    let done = engine.workflow_leave(&caller, &asked, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&reply(it))))
}

pub(super) fn transfer_operation() -> Operation {
    let text = "Offers a workflow to a new owner: its versions, files, grants and verifiers are transferred when the invitation is accepted. Accepting is refused if another workflow of the owner also names one of the verifiers, or if the new owner already has a workflow or verifier of the same name.";
    let about = "Offers a workflow with its verifiers to a new owner; ownership changes when the invitation is accepted.";
    Operation::post("/v1/workflows/{ref}/transfer-ownership", "workflow_transfer", transfer).aliased("/v1/workflows", "/v1/skills", "_of_skill").tag(WORKFLOWS).summary("Transfer a workflow").text(text).in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .takes::<TransferWorkflowRequest>([(
            "plain",
            json!({ "new_owner_user_id_or_email": "ann@example.com" }),
        )])
        .answers::<OfferedWorkflow<'_>>(
            200,
            "The invitation.",
            json!({
                "workflow_id": examples::ID, "skill_id": examples::ID, "invitation_id": examples::ID,
                "kind": "workflow_ownership_transfer", "expires_at": examples::AT,
                "owner_user_id": "acct_admin", "transferred": false,
            }),
        )
        .idempotent()
        .refuses([
            ProblemCode::UserNotFound,
            ProblemCode::Conflict,
            ProblemCode::InvitationAlreadyPending,
            ProblemCode::QuotaExceeded,
        ]).refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(Tool::adds("transfer_skill_ownership", "Transfer a workflow", about).also("transfer_workflow_ownership").path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow."))
}

async fn transfer(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
    Json(body): Json,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let to = workflows::decode_transfer(&body)?;
    let keyed = idempotency.write_for("workflow_transfer", &body, StatusCode::OK, offered);
    let done = engine.workflow_transfer(&caller, &asked, to, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&offered(it))))
}

pub(crate) fn offered(it: &OfferOutcome<Workflow>) -> Value {
    match it {
        OfferOutcome::Invitation(invitation) => json!(workflows::offered(invitation)),
        OfferOutcome::Own(workflow) => json!(workflows::already_owned(workflow)),
    }
}
