//! `/v1/rounds`.

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jurat_core::{account::caller::Caller, code::ProblemCode, id::RoundId, time::Timestamp};
use jurat_engine::{Engine, RoundQuery};
use jurat_wire::{
    api::{
        kit::{page::PageBody, time},
        rounds,
    },
    problem::Problem,
};

use serde_json::json;

use crate::request::page::{ListQuery, QueryFilters, wrong};
use crate::request::{
    decode::PathText,
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
    prefer::{LONGEST_WAIT, Prefer},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = round_query(&query)?;
    let mut found = engine.round_list(&caller, wanted).await?;
    let next = query.cut(&mut found, |round| round.open.id.to_string());
    Ok(encode::ok(&PageBody::new(found.iter().map(rounds::summary), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
    headers: HeaderMap,
) -> HandlerResult {
    let round_id = round_id(&id)?;
    let wait = wait(&query)?.or(Prefer::of(&headers).wait);
    let round = match wait {
        None => engine.round_show(&caller, &round_id).await?,
        Some(wait) => engine.round_wait(&caller, &round_id, wait).await?,
    };
    Ok(encode::ok(&rounds::body(&round)))
}

/// Calls a round off. It has ended when the status is 200, and is about to when it is 202.
pub(super) async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let round_id = round_id(&id)?;
    let round = engine.round_cancel(&caller, &round_id).await?;
    let body = rounds::body(&round);
    Ok(match round.closing {
        Some(_) => encode::ok(&body),
        None => encode::accepted(&body, &format!("/v1/rounds/{round_id}")),
    })
}

/// Erases what was asked and said in a round.
pub(super) async fn erase(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let round_id = round_id(&id)?;
    let (asked, body) = (json!(id), move |at: &Timestamp| json!(rounds::erased(&id, *at)));
    let keyed = idempotency.write_for("round_erase", &asked, StatusCode::OK, body.clone());
    let done = engine.round_erase(&caller, &round_id, keyed).await?;
    Ok(idempotency::reply(done, |at| encode::ok(&body(at))))
}

/// Text that is no identifier names no round either.
fn round_id(id: &str) -> Result<RoundId, Problem> {
    RoundId::parse(id).map_err(|_| {
        let id: String = id.chars().take(80).collect();
        Problem::new(ProblemCode::NotFound, format!("there is no round `{id}`"))
    })
}

/// How long the caller waits for the end of the round.
fn wait(query: &QueryFilters) -> Result<Option<Duration>, Problem> {
    query.only(&["wait"])?;
    let Some(text) = query.get("wait") else { return Ok(None) };
    match text.parse() {
        Ok(seconds) if seconds <= LONGEST_WAIT.as_secs() => Ok(Some(Duration::from_secs(seconds))),
        _ => {
            let longest = LONGEST_WAIT.as_secs();
            Err(wrong("wait", &format!("must be a whole number of seconds from 0 to {longest}")))
        }
    }
}

fn round_query(query: &ListQuery) -> Result<RoundQuery, Problem> {
    query.only(&["kind", "outcome", "state", "since", "until"])?;
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
    if let Some(text) = query.filters.get("state") {
        let state = text.parse();
        wanted.state =
            Some(state.map_err(|()| wrong("state", "must be open, closed, expired or cancelled"))?);
    }
    wanted.since = moment(&query.filters, "since")?;
    wanted.until = moment(&query.filters, "until")?;
    if let Some(cursor) = &query.cursor {
        let before = RoundId::parse(cursor);
        wanted.before = Some(before.map_err(|_| wrong("cursor", "was not returned by a list"))?);
    }
    Ok(wanted)
}

fn moment(filters: &QueryFilters, name: &str) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = filters.get(name) else { return Ok(None) };
    let moment = time::parse(text);
    moment.map(Some).ok_or_else(|| wrong(name, "must be a time such as 2026-11-15T09:30:00Z"))
}
