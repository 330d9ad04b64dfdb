//! `/v1/rounds`.

use axum::{
    Extension,
    extract::{Path, State},
    response::Response,
};
use jurat_core::{caller::Caller, code::Code, id::RoundId};
use jurat_engine::{Engine, RoundQuery};
use jurat_wire::{api::rounds, problem::Problem};
use serde_json::Value;

use super::page::{ListQuery, wrong};
use crate::encode;

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Response {
    let wanted = match round_query(&query) {
        Ok(wanted) => wanted,
        Err(problem) => return encode::problem(&problem),
    };
    match engine.round_list(&caller, wanted).await {
        Ok(mut found) => {
            let next = query.cut(&mut found, |round| round.open.id.to_string());
            let items: Vec<Value> = found.iter().map(rounds::summary).collect();
            encode::ok(&rounds::page(&items, next.as_deref()))
        }
        Err(error) => encode::engine_error(&error),
    }
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    // Text that is no identifier names no round either.
    let Ok(round_id) = RoundId::parse(&id) else {
        let id: String = id.chars().take(80).collect();
        return encode::problem(&Problem::new(Code::NotFound, format!("there is no round `{id}`")));
    };
    match engine.round_show(&caller, &round_id).await {
        Ok(round) => encode::ok(&rounds::body(&round)),
        Err(error) => encode::engine_error(&error),
    }
}

fn round_query(query: &ListQuery) -> Result<RoundQuery, Problem> {
    query.only(&["kind", "outcome"])?;
    let mut wanted = RoundQuery { limit: query.with_one_more(), ..RoundQuery::default() };
    if let Some(text) = query.filters.get("kind") {
        let kind = text.parse();
        wanted.kind =
            Some(kind.map_err(|()| wrong("kind", "must be delegate, validate or factcheck"))?);
    }
    if let Some(text) = query.filters.get("outcome") {
        let outcome = text.parse();
        wanted.outcome = Some(
            outcome.map_err(|()| wrong("outcome", "must be agreed, split, abstained or failed"))?,
        );
    }
    if let Some(cursor) = &query.cursor {
        let before = RoundId::parse(cursor);
        wanted.before =
            Some(before.map_err(|_| wrong("cursor", "is not one that a list returned"))?);
    }
    Ok(wanted)
}
