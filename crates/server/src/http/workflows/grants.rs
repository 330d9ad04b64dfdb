//! Who may use a workflow.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{caller::Caller, workflow::Workflow};
use jurat_engine::{Engine, Granting, Left, NewWorkflowGrant, Offered, Revoking};
use jurat_wire::api::workflows::{self, WorkflowGrantList};
use serde_json::{Value, json};

use crate::{
    decode::{Json, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(crate) async fn grant(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(text): PathText,
    Json(body): Json,
) -> Answer {
    let asked = workflows::reference(&text)?;
    let (grantee, role, with_history) = workflows::decode_grant(&body)?;
    let new = NewWorkflowGrant { grantee, role, with_history };
    let reply = |it: &Granting| json!(workflows::granted(&it.workflow.id, it.role, it.floor));
    let keyed = repeatable.keyed("workflow_grant", &body, StatusCode::CREATED, reply);
    let done = engine.workflow_grant(&caller, &asked, new, keyed).await?;
    Ok(once::reply(done, |it| encode::created(&reply(it))))
}

pub(crate) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
) -> Answer {
    let found = engine.workflow_grants(&caller, &workflows::reference(&text)?).await?;
    let items = found.iter().map(workflows::grant_line).collect();
    Ok(encode::ok(&WorkflowGrantList { items }))
}

pub(crate) async fn revoke(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(text): PathText,
    Json(body): Json,
) -> Answer {
    let asked = workflows::reference(&text)?;
    let grantee = workflows::decode_revoke(&body)?;
    let reply = |it: &Revoking| json!(workflows::revoked(&it.workflow.id, it.was_there));
    let keyed = repeatable.keyed("workflow_revoke", &body, StatusCode::OK, reply);
    let done = engine.workflow_revoke(&caller, &asked, grantee, keyed).await?;
    Ok(once::reply(done, |it| encode::ok(&reply(it))))
}

pub(crate) async fn leave(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(text): PathText,
) -> Answer {
    let asked = workflows::reference(&text)?;
    let reply = |it: &Left| json!(workflows::left(&it.workflow.id, it.removed));
    let keyed = repeatable.keyed("workflow_leave", &Value::Null, StatusCode::OK, reply);
    let done = engine.workflow_leave(&caller, &asked, keyed).await?;
    Ok(once::reply(done, |it| encode::ok(&reply(it))))
}

pub(crate) async fn transfer(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(text): PathText,
    Json(body): Json,
) -> Answer {
    let asked = workflows::reference(&text)?;
    let to = workflows::decode_transfer(&body)?;
    let keyed = repeatable.keyed("workflow_transfer", &body, StatusCode::OK, offered);
    let done = engine.workflow_transfer(&caller, &asked, to, keyed).await?;
    Ok(once::reply(done, |it| encode::ok(&offered(it))))
}

pub(crate) fn offered(it: &Offered<Workflow>) -> Value {
    match it {
        Offered::Invitation(invitation) => json!(workflows::offered(invitation)),
        Offered::Own(workflow) => json!(workflows::kept(workflow)),
    }
}
