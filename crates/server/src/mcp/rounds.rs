//! The tools for rounds that were walked.

use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{code::Code, id::RoundId};
use jurat_engine::{EngineError, RoundQuery};
use jurat_wire::{
    api::{mcp::rounds as take, page::Page, rounds},
    problem::Problem,
};
use serde_json::{Value, json};

use super::{call::Call, people::cut, verifiers::now};
use crate::encode::engine_problem;

type Answer<'a> = BoxFuture<'a, Result<Value, Problem>>;

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn problem(error: EngineError) -> Problem {
    engine_problem(&error)
}

pub(super) fn list(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let order = take::rounds(arguments)?;
        let before = order.cursor.as_deref().map(RoundId::parse).transpose().map_err(|_| {
            let detail = "`cursor` was not returned by a list";
            Problem::new(Code::ValidationError, detail).at("cursor")
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
        Ok(json!(Page::new(found.iter().map(rounds::summary), next.as_deref())))
    }
    .boxed()
}

pub(super) fn get(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
    async move {
        let id = round_id(take::round(arguments)?)?;
        Ok(rounds::body(&engine.round_show(caller, &id).await.map_err(problem)?))
    }
    .boxed()
}

pub(super) fn erase(Call { engine, caller, arguments, .. }: Call<'_>) -> Answer<'_> {
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
        Problem::new(Code::NotFound, format!("there is no round `{id}`"))
    })
}
