//! `/v1/rounds`.

use axum::{
    Extension,
    extract::{Path, State},
};
use jurat_core::{caller::Caller, code::Code, id::RoundId};
use jurat_engine::{Engine, RoundQuery};
use jurat_wire::{
    api::{page::Page, rounds},
    problem::Problem,
};

use super::page::{ListQuery, wrong};
use crate::encode::{self, Answer};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    let wanted = round_query(&query)?;
    let mut found = engine.round_list(&caller, wanted).await?;
    let next = query.cut(&mut found, |round| round.open.id.to_string());
    Ok(encode::ok(&Page::new(found.iter().map(rounds::summary), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Answer {
    // Text that is no identifier names no round either.
    let Ok(round_id) = RoundId::parse(&id) else {
        let id: String = id.chars().take(80).collect();
        return Err(Problem::new(Code::NotFound, format!("there is no round `{id}`")).into());
    };
    let round = engine.round_show(&caller, &round_id).await?;
    Ok(encode::ok(&rounds::body(&round)))
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
