//! The tools for workflows, each under the names of two eras.

mod table;

use futures::FutureExt as _;
use jurat_core::workflow::WorkflowRef;
use jurat_engine::{EngineError, NewWorkflowGrant, WorkflowFilter};
use jurat_wire::{
    api::{
        kit::page::{self, PageBody},
        mcp::workflows as tool,
        workflows::{self, InlineRoom, WorkflowGrantList, WorkflowVersionView},
    },
    problem::Problem,
};
use serde_json::{Value, json};

pub(super) use self::table::ENTRIES;
use super::{
    call::{ToolCall, ToolFuture},
    verifiers::now,
};
use crate::{
    request::encode::engine_problem,
    resources::{
        envelopes, hit_list, lineage_of, offered, saved as saved_body, single, wanted_hits,
    },
};

#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
fn problem(error: EngineError) -> Problem {
    engine_problem(&error)
}

/// The workflow of a call, with the version where one is asked for.
fn wanted(arguments: &Value, others: &[&str]) -> Result<(WorkflowRef, Value), Problem> {
    let (text, version, rest) = tool::named(arguments, others)?;
    Ok((workflows::pinned(workflows::reference(text)?, version)?, rest))
}

fn save(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let draft = workflows::decode_save(arguments)?;
        Ok(saved_body(&now(engine.workflow_save(caller, draft, None).await)?))
    }
    .boxed()
}

fn list(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let order = tool::list(arguments)?;
        let filter = WorkflowFilter {
            whose: order.filter,
            with_archived: order.with_archived,
            tag: order.tag,
            search: order.search,
            before: order.cursor,
            // One more than asked for tells whether there are more.
            limit: order.limit + 1,
        };
        let mut found = engine.workflow_list(caller, filter).await.map_err(problem)?;
        let limit = usize::try_from(order.limit).unwrap_or(usize::MAX);
        let has_more = limit < found.len();
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|last| page::cursor(&last.workflow.id));
        Ok(json!(PageBody::new(found.iter().map(workflows::listed), next.as_deref())))
    }
    .boxed()
}

fn search(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let order = workflows::decode_search(arguments)?;
        let hits = engine.workflow_search(caller, &wanted_hits(&order)).await.map_err(problem)?;
        Ok(json!(hit_list(&order, &hits)))
    }
    .boxed()
}

fn get(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &["version"])?;
        let view = engine.workflow_get(caller, &wanted).await.map_err(problem)?;
        Ok(json!(workflows::shown(WorkflowVersionView {
            reached: &view.reached,
            version: &view.version
        })))
    }
    .boxed()
}

fn file(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (text, version, path) = tool::file(arguments)?;
        let wanted = workflows::pinned(workflows::reference(text)?, version)?;
        let file = single(engine, caller, &wanted, path).await.map_err(problem)?;
        Ok(json!(workflows::envelope(&file.entry, &file.content, InlineRoom::Fits)))
    }
    .boxed()
}

fn files(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (text, version, paths) = tool::files(arguments)?;
        let wanted = workflows::pinned(workflows::reference(text)?, version)?;
        envelopes(engine, caller, &wanted, paths).await.map_err(problem)
    }
    .boxed()
}

fn archive(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &[])?;
        let workflow = now(engine.workflow_archive(caller, &wanted, None).await)?;
        Ok(json!(workflows::archived(&workflow)))
    }
    .boxed()
}

fn unarchive(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &[])?;
        let workflow = now(engine.workflow_unarchive(caller, &wanted, None).await)?;
        Ok(json!(workflows::unarchived(&workflow)))
    }
    .boxed()
}

fn delete(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &[])?;
        let workflow = now(engine.workflow_delete(caller, &wanted, None).await)?;
        Ok(json!(workflows::deleted(&workflow)))
    }
    .boxed()
}

fn delete_version(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &["version"])?;
        let Some(version) = wanted.version else {
            let code = jurat_core::code::ProblemCode::ValidationError;
            return Err(Problem::new(code, "`version` is required").at("version"));
        };
        let workflow = now(engine.workflow_version_delete(caller, &wanted, None).await)?;
        Ok(json!(workflows::version_deleted(&workflow, version)))
    }
    .boxed()
}

fn grant(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let others = ["grantee_email_or_at_team_handle", "role", "include_history"];
        let (wanted, rest) = wanted(arguments, &others)?;
        let (grantee, role, with_history) = workflows::decode_grant(&rest)?;
        let new = NewWorkflowGrant { grantee, role, with_history };
        let it = now(engine.workflow_grant(caller, &wanted, new, None).await)?;
        Ok(json!(workflows::granted(&it.workflow.id, it.role, it.floor)))
    }
    .boxed()
}

fn revoke(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, rest) = wanted(arguments, &["grantee_email_or_at_team_handle"])?;
        let grantee = workflows::decode_revoke(&rest)?;
        let it = now(engine.workflow_revoke(caller, &wanted, grantee, None).await)?;
        Ok(json!(workflows::revoked(&it.workflow.id, it.was_there)))
    }
    .boxed()
}

fn grants(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &[])?;
        let found = engine.workflow_grants(caller, &wanted).await.map_err(problem)?;
        let items = found.iter().map(workflows::grant_line).collect();
        Ok(json!(WorkflowGrantList { items }))
    }
    .boxed()
}

fn leave(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &[])?;
        let it = now(engine.workflow_leave(caller, &wanted, None).await)?;
        Ok(json!(workflows::left(&it.workflow.id, it.removed)))
    }
    .boxed()
}

fn transfer(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, rest) = wanted(arguments, &["new_owner_user_id_or_email"])?;
        let to = workflows::decode_transfer(&rest)?;
        Ok(offered(&now(engine.workflow_transfer(caller, &wanted, to, None).await)?))
    }
    .boxed()
}

fn lineage(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, _) = wanted(arguments, &[])?;
        let found = engine.workflow_lineage(caller, &wanted).await.map_err(problem)?;
        Ok(json!(lineage_of(&found)))
    }
    .boxed()
}
