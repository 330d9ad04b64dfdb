//! `/v1/rounds`.

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    id::RoundId,
    round::{CancelledRound, RoundFilter},
    time::Timestamp,
};
use jurat_engine::Engine;
use jurat_wire::{
    api::{
        kit::{page::PageBody, time},
        rounds::{self, ErasedBody, RoundBody},
    },
    problem::Problem,
};
use serde_json::json;

use crate::{
    mcp::{render, watch::LONGEST_CALL_S},
    operation::{
        Operation, TextAuthor, Tool, example,
        parameters::{self, PathParameter},
    },
    request::{
        cursor,
        decode::PathText,
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters, wrong},
        prefer::{LONGEST_WAIT, Prefer},
    },
    resources::ROUNDS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![list_operation(), show_operation(), cancel_operation(), erase_operation()]
}

const ROUND: PathParameter =
    PathParameter::new("id", "The id of a round.", "rnd_01KHG5YN40MXBR5YWT0Q2YFEDS");

fn list_operation() -> Operation {
    let about = "Lists the rounds of the account, newest first, one page at a time: the request in one line, the state and the outcome.";
    Operation::get("/v1/rounds", "round_list", list)
        .tag(ROUNDS)
        .summary("List rounds")
        .text("The account's rounds, newest first. The round of a task's voter is shown as `open`, and matches no filter on how rounds end, until the votes are revealed.")
        .scope(Scope::RoundsRead)
        .with(parameters::of_list())
        .with(parameters::of_rounds())
        .answers::<PageBody<'_, RoundBody<'_>>>(
            200,
            "A page of rounds.",
            example(include_str!("rounds/round_list.json")),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_rounds", "List rounds", about)
                .query(&["kind", "outcome", "state", "limit", "cursor"])
                .answers_any_object()
                .summary(render::counted),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = round_query(&query)?;
    let mut found = engine.round_list(&caller, wanted).await?;
    let next = query.cut(&mut found, |round| [round.open.id.to_string()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(rounds::summary), next.as_deref())))
}

fn show_operation() -> Operation {
    let text = "A round and, once it has ended, the fields of its reply. A round of another account is not found. The round of a task has no `request`; the task has its contract. The round of a task's voter is shown as `open` until the votes are revealed. With `wait`, the reply comes when the round has ended, or after that many seconds with its current state.";
    let preference = "`wait=10` waits like the parameter `wait`, which takes precedence.";
    let about = "Returns a full round: the request, the state and, once it has ended, the decision and each replica's answer.";
    let waits = "Waits for a round to end, and returns it like `get_round`: open if it has not ended in time, so call again.";
    Operation::get("/v1/rounds/{id}", "round_show", show)
        .tag(ROUNDS)
        .summary("Show a round")
        .text(text)
        .in_path([ROUND])
        .scope(Scope::RoundsRead)
        .with([parameters::wait(), parameters::prefer(preference)])
        .answers::<RoundBody<'_>>(200, "The round.", example(include_str!("rounds/round.json")))
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("get_round", "Show a round", about)
                .path("round_id", "The id of a round.")
                .answers_any_object()
                .summary(render::round_state)
                .author(TextAuthor::Executors)
                .follows_rounds(),
        )
        .tool(
            Tool::reads("wait_round", "Wait for a round", waits)
                .path("round_id", "The id of a round.")
                .waits(Some(LONGEST_CALL_S))
                .answers_any_object()
                .summary(render::round_state)
                .author(TextAuthor::Executors)
                .follows_rounds(),
        )
}

async fn show(
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

fn cancel_operation() -> Operation {
    let text = "Cancels a round. Replicas that have not answered are cancelled, the answers of the others stay on record, and the round ends as `cancelled` without a verdict. Cancelling again has no effect; a round that ended otherwise is a conflict, and so is a round of a task, which ends with the task. Executors that were called may have done the work, so their price stays in the round. A key without `rounds:read` is shown the state of the round, without its request and its answers. For a run of a verifier, the scope `verifiers:run` is enough.";
    let about = "Cancels a round that has not ended: replicas that have not answered are cancelled, and it ends without a verdict.";
    Operation::post("/v1/rounds/{id}/cancel", "round_cancel", cancel)
        .tag(ROUNDS)
        .summary("Cancel a round")
        .text(text)
        .in_path([ROUND])
        .scope(Scope::RoundsCreate)
        .answers::<RoundBody<'_>>(
            200,
            "The round has ended.",
            example(include_str!("rounds/round_cancelled.json")),
        )
        .answers::<RoundBody<'_>>(
            202,
            "The round's node is about to end it.",
            example(include_str!("rounds/round_open.json")),
        )
        .and_header("Location", "URL of the round.")
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
        .tool(
            Tool::ends("cancel_round", "Cancel a round", about)
                .or_scope(Scope::VerifiersRun)
                .path("round_id", "The id of a round.")
                .answers_any_object()
                .summary(render::round_state)
                .author(TextAuthor::Executors)
                .follows_rounds(),
        )
}

/// Cancels a round. Status 200 means that it has ended, and 202 that it is about to end.
async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let round_id = round_id(&id)?;
    let (body, has_ended) = match engine.round_cancel(&caller, &round_id).await? {
        CancelledRound::Whole(round) => (rounds::body(&round), round.closing.is_some()),
        CancelledRound::State(state) => (json!(rounds::summary(&state)), state.closing.is_some()),
    };
    Ok(if has_ended {
        encode::ok(&body)
    } else {
        encode::accepted(&body, &format!("/v1/rounds/{round_id}"))
    })
}

fn erase_operation() -> Operation {
    let text = "Erases the content of a round that has ended: the request, the outputs, and the texts and evidence of its replicas. Its decision stays, with the digests of the erased content. Erasing again has no effect; a round that has not ended, or whose task has not ended, is a conflict.";
    let about = "Permanently erases the request and answers of a round that has ended. Its decision stays, with the digests of the erased content.";
    Operation::delete("/v1/rounds/{id}/payload", "round_erase", erase)
        .tag(ROUNDS)
        .summary("Erase the content of a round")
        .text(text)
        .in_path([ROUND])
        .scope(Scope::RoundsCreate)
        .answers::<ErasedBody<'_>>(
            200,
            "The content is erased.",
            example(include_str!("rounds/round_erase.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
        .tool(
            Tool::ends("erase_round", "Erase the content of a round", about)
                .path("round_id", "The id of a round.")
                .confirmed(),
        )
}

/// Erases the request and the answers of a round.
async fn erase(
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

/// The id of a round. Text that is not an id gets the same reply as an unknown round.
fn round_id(id: &str) -> Result<RoundId, Problem> {
    RoundId::parse(id).map_err(|_| {
        let id: String = id.chars().take(80).collect();
        Problem::new(ProblemCode::NotFound, format!("there is no round `{id}`"))
    })
}

/// The caller's maximum wait for the end of the round.
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

fn round_query(query: &ListQuery) -> Result<RoundFilter, Problem> {
    query.only(&["kind", "outcome", "state", "since", "until"])?;
    let mut wanted = RoundFilter { limit: query.with_one_more(), ..RoundFilter::default() };
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
    if let Some(id) = query.text_position()? {
        wanted.before = Some(RoundId::parse(&id).map_err(|_| cursor::refused())?);
    }
    Ok(wanted)
}

fn moment(filters: &QueryFilters, name: &str) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = filters.get(name) else { return Ok(None) };
    let moment = time::parse(text);
    moment.map(Some).ok_or_else(|| wrong(name, "must be a time such as 2026-11-15T09:30:00Z"))
}
