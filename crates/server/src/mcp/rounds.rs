//! The tools for rounds that were walked.

use futures::FutureExt as _;
use jurat_core::{code::ProblemCode, id::RoundId};
use jurat_engine::{EngineError, RoundQuery};
use jurat_wire::{
    api::{kit::page::PageBody, mcp::rounds as take, rounds},
    problem::Problem,
};
use serde_json::json;

use super::{
    call::{ToolCall, ToolFuture},
    people::cut,
    verifiers::now,
};
use crate::request::encode::engine_problem;

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn problem(error: EngineError) -> Problem {
    engine_problem(&error)
}

pub(super) fn list(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let order = take::rounds(arguments)?;
        let before = order.cursor.as_deref().map(RoundId::parse).transpose().map_err(|_| {
            let detail = "`cursor` was not returned by a list";
            Problem::new(ProblemCode::ValidationError, detail).at("cursor")
        })?;
        let query = RoundQuery {
            kind: order.kind,
            outcome: order.outcome,
            state: order.state,
            before,
            limit: order.limit + 1,
            ..RoundQuery::default()
        };
        let mut found = engine.round_list(caller, query).await.map_err(problem)?;
        let next = cut(&mut found, order.limit, |round| round.open.id.to_string());
        Ok(json!(PageBody::new(found.iter().map(rounds::summary), next.as_deref())))
    }
    .boxed()
}

pub(super) fn get(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let id = round_id(take::round(arguments)?)?;
        Ok(rounds::body(&engine.round_show(caller, &id).await.map_err(problem)?))
    }
    .boxed()
}

pub(super) fn erase(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let id = round_id(take::round(arguments)?)?;
        let at = now(engine.round_erase(caller, &id, None).await)?;
        Ok(json!(rounds::erased(id.as_str(), at)))
    }
    .boxed()
}

/// Text that is no identifier names no round either.
fn round_id(id: &str) -> Result<RoundId, Problem> {
    RoundId::parse(id).map_err(|_| {
        let id: String = id.chars().take(80).collect();
        Problem::new(ProblemCode::NotFound, format!("there is no round `{id}`"))
    })
}
