//! Who may use a workflow.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::Caller,
    workflow::{
        Workflow,
        operation::{
            GrantRevocationResult, OfferOutcome, WorkflowGrantResult, WorkflowLeaveResult,
        },
    },
};
use jurat_engine::{Engine, NewWorkflowGrant};
use jurat_wire::api::workflows::{self, WorkflowGrantList};
use serde_json::{Value, json};

use crate::request::{
    decode::{Json, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(crate) async fn grant(
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

pub(crate) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
) -> HandlerResult {
    let found = engine.workflow_grants(&caller, &workflows::reference(&text)?).await?;
    let items = found.iter().map(workflows::grant_line).collect();
    Ok(encode::ok(&WorkflowGrantList { items }))
}

pub(crate) async fn revoke(
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

pub(crate) async fn leave(
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

pub(crate) async fn transfer(
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
