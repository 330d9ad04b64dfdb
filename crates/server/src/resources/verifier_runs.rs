//! `/v1/verifier-runs`, and the runs of one verifier.

mod export;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, header},
};
use futures::FutureExt as _;
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    time::Timestamp,
    verifier::{
        VerifierRef, VerifierSelector,
        run::{VerifierRunFilter, VerifierRunPurpose},
    },
};
use jurat_engine::{Engine, RoundWatcher, VerifierRunOrder};
use jurat_wire::{
    api::{
        kit::{page::PageBody, time},
        rounds,
        verifier_runs::{self, RunVerifierRequest, VerifierRunBody, VerifierRunRequest},
        verifiers,
    },
    problem::Problem,
};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::verifiers::{VerifierPath, measured, version, wanted};
use crate::{
    mcp::{
        render, schema,
        watch::{WatchEnd, WatchedRound, begun, until_end},
    },
    operation::{
        Operation, TextAuthor, Tool, ToolCall, ToolFuture, example,
        parameters::{self, PathParameter},
    },
    request::{
        auth::VisitorCaller,
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters, wrong},
    },
    resources::{VERIFIERS, verifiers::VERIFIER},
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![run_operation(), of_verifier_operation(), list_operation(), show_operation()]
}

const VERIFIER_RUN: PathParameter =
    PathParameter::new("id", "The id of a run.", "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70");

/// The parameters that narrow a list of runs.
const FILTERS: [&str; 5] = ["version", "verdict", "purpose", "since", "until"];

fn run_operation() -> Operation {
    let text = "Has inputs judged. The status is 201 for every verdict, and also if no judge decides: then `status` is `error`, `passed` is null and `error_code` says why. Inputs that do not match the contract are refused without a run. A version pinned in the path, the query and the body must be the same. Without a key, only the versions of published templates and platform verifiers can be run, from a small credit of the network address; all others are not found. Another owner's verifier is named by its id or as `@owner/name`, with the slash unescaped or as `%2F`.";
    let about = "Has the judge of a verifier decide whether inputs pass, and returns `passed` with the reasoning. `passed` is null when no judge could decide, which is neither a pass nor a fail.";
    let which = "The id or name of a verifier, or `system:` and the name of a platform verifier; append `@` and a version to pin one.";
    Operation::post("/v1/verifiers/{ref}/runs", "verifier_run", run)
        .also("/v1/verifiers/{ref}/{slug}/runs")
        .for_visitors()
        .begins_rounds()
        .tag(VERIFIERS)
        .summary("Run a verifier")
        .text(text)
        .in_path([VERIFIER])
        .scope(Scope::VerifiersRun)
        .with([parameters::version("The version to run; defaults to the current one.")])
        .takes::<RunVerifierRequest>([(
            "plain",
            example(include_str!("verifier_runs/verifier_run_request.json")),
        )])
        .answers::<VerifierRunBody<'_>>(
            201,
            "The run.",
            example(include_str!("verifier_runs/run.json")),
        )
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::BudgetExhausted,
            ProblemCode::AnonymousDailyCap,
            ProblemCode::AccountSuspended,
            ProblemCode::SessionPoolTooSmall,
            ProblemCode::SessionsUnavailable,
            ProblemCode::ShuttingDown,
            ProblemCode::Conflict,
        ])
        .tool(
            Tool::asks("run_verifier", "Run a verifier", about)
                .path("verifier_id", which)
                .answers(run_output)
                .run(run_tool)
                .summary(render::judged)
                .author(TextAuthor::Judges),
        )
}

/// Runs a verifier. The status is 201 whatever the verdict is, and also without a verdict.
async fn run(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    idempotency: Idempotency,
    named: VerifierPath,
    Json(body): Json,
) -> HandlerResult {
    if visitor.caller().is_none() {
        return anonymous(&engine, visitor.payer(), (idempotency, named), &body).await;
    }
    let caller = visitor.payer();
    let order = verifier_runs::decode_verifier_run(&body)?;
    let reference = verifiers::pinned(named.wanted, order.version)?;
    let once = idempotency.key_for("verifier_run", &json!([reference.to_string(), body]));
    let request = verifier_run_request(reference, order);
    let view = engine.verifier_run(caller, request, RoundWatcher::nobody(), once).await?;
    let body = verifier_runs::whole(&view.run, &view.round, measured(&view.measured));
    let response = encode::created(&body);
    Ok(if view.is_repeated { idempotency::mark_replayed(response) } else { response })
}

/// A run without a key: exactly the published verifier, decided by its own judge, and paid from the
/// credit of the network address.
async fn anonymous(
    engine: &Engine,
    caller: &Caller,
    (idempotency, named): (Idempotency, VerifierPath),
    body: &Value,
) -> HandlerResult {
    if let VerifierSelector::Name(_) | VerifierSelector::Of { .. } = named.wanted.which {
        // A name has a meaning only within its account, so this reveals nothing.
        let detail =
            "verifier names belong to accounts; without a key, use an id or `system:` and a name";
        return Err(Problem::new(ProblemCode::AuthRequired, detail).into());
    }
    let order = verifier_runs::decode_verifier_run(body)?;
    if idempotency.key_for("verifier_run", body).is_some() {
        let detail = "the header `Idempotency-Key` needs an API key: callers who share a network address would share it";
        return Err(Problem::new(ProblemCode::ValidationError, detail)
            .at("Idempotency-Key")
            .into());
    }
    if !order.judges.is_empty() {
        return Err(wrong("judges", "cannot be chosen without a key").into());
    }
    let reference = verifiers::pinned(named.wanted, order.version)?;
    let request = verifier_run_request(reference, order);
    let view = engine.verifier_run(caller, request, RoundWatcher::nobody(), None).await?;
    Ok(encode::created(&verifier_runs::anonymous(&view.run, &view.round)))
}

fn list_operation() -> Operation {
    let text = "The account's runs of all verifiers, newest first. With `Accept: application/x-ndjson` all runs are sent, one per line, `limit` is ignored, and `cursor` says where to start; if the list cannot be sent completely, the connection breaks off.";
    Operation::get("/v1/verifier-runs", "run_list", list)
        .tag(VERIFIERS)
        .summary("List or export verifier runs")
        .text(text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with([parameters::of_verifier()])
        .with(parameters::of_verifier_runs())
        .answers::<PageBody<'_, VerifierRunBody<'_>>>(
            200,
            "A page of runs.",
            example(include_str!("verifier_runs/run_list.json")),
        )
        .or_as("application/x-ndjson", "One run per line.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[&FILTERS[..], &["verifier"]].concat())?;
    let mut filter = verifier_run_filter(&query)?;
    let verifier = query.filters.get("verifier");
    let verifier = verifier.map(|text| wanted(text, &query.filters)).transpose()?;
    if let Some(reference) = &verifier {
        filter.version = reference.version;
    }
    if export::is_wanted(headers.get(header::ACCEPT)) {
        return export::reply(engine, caller, verifier, filter).await;
    }
    let mut found = engine.verifier_run_list(&caller, verifier.as_ref(), filter).await?;
    let next = query.cut(&mut found, |run| [run.ticket.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(verifier_runs::line), next.as_deref())))
}

fn of_verifier_operation() -> Operation {
    let text = "The account's runs of one verifier or platform verifier, newest first. A verifier that the account cannot run is not found.";
    Operation::get("/v1/verifiers/{ref}/runs", "verifier_runs", of_verifier)
        .tag(VERIFIERS)
        .summary("List the runs of a verifier")
        .text(text)
        .in_path([VERIFIER])
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .with(parameters::of_verifier_runs())
        .answers::<PageBody<'_, VerifierRunBody<'_>>>(
            200,
            "A page of runs.",
            example(include_str!("verifier_runs/run_list.json")),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

async fn of_verifier(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: ListQuery,
) -> HandlerResult {
    query.only(&FILTERS)?;
    let reference = wanted(&text, &query.filters)?;
    let filter = VerifierRunFilter { version: reference.version, ..verifier_run_filter(&query)? };
    let mut found = engine.verifier_runs(&caller, &reference, filter).await?;
    let next = query.cut(&mut found, |run| [run.ticket.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(verifier_runs::line), next.as_deref())))
}

fn show_operation() -> Operation {
    let text = "A run, with each judge's answer. A run of another account is not found.";
    let about = "Returns a verifier run with each judge's answer. `passed` is null while it runs, and if no judge could decide.";
    Operation::get("/v1/verifier-runs/{id}", "run_get", show)
        .tag(VERIFIERS)
        .summary("Show a run")
        .text(text)
        .in_path([VERIFIER_RUN])
        .scope(Scope::VerifiersRead)
        .answers::<VerifierRunBody<'_>>(
            200,
            "The run.",
            example(include_str!("verifier_runs/run.json")),
        )
        .refuses([ProblemCode::NotFound])
        .tool(
            Tool::reads("get_verifier_run", "Show a verifier run", about)
                .path("verifier_run_id", "The id of a verifier run.")
                .answers_any_object()
                .summary(render::judged)
                .author(TextAuthor::Judges),
        )
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let found = engine.verifier_run_get(&caller, &id).await?;
    Ok(encode::ok(&verifier_runs::whole(&found.run, &found.round, measured(&found.measured))))
}

/// The order for the engine.
pub(crate) fn verifier_run_request(
    reference: VerifierRef,
    order: VerifierRunRequest,
) -> VerifierRunOrder {
    VerifierRunOrder {
        reference,
        inputs: order.inputs,
        media_url: order.media_url,
        replicas: order.replicas,
        judges: order.judges,
        is_fresh: order.is_fresh,
        commit_first: order.commit_first,
        timeout_ms: order.timeout_ms,
        provenance: order.provenance,
        request_digest: order.request_digest,
        notes: order.notes,
        purpose: VerifierRunPurpose::Run,
        leave_out: None,
    }
}

fn verifier_run_filter(query: &ListQuery) -> Result<VerifierRunFilter, Problem> {
    let filters = &query.filters;
    Ok(VerifierRunFilter {
        verifier_id: None,
        version: version(filters)?,
        verdict: word(filters, "verdict", "must be passed, failed, error or running")?,
        purpose: word(filters, "purpose", "must be run, test or attack")?,
        since: moment(filters, "since")?,
        until: moment(filters, "until")?,
        before: query.text_position()?,
        limit: query.with_one_more(),
    })
}

fn word<T: std::str::FromStr>(
    filters: &QueryFilters,
    name: &str,
    reason: &str,
) -> Result<Option<T>, Problem> {
    filters.get(name).map(|text| text.parse().map_err(|_| wrong(name, reason))).transpose()
}

fn moment(filters: &QueryFilters, name: &str) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = filters.get(name) else { return Ok(None) };
    let moment = time::parse(text);
    moment.map(Some).ok_or_else(|| wrong(name, "must be a time such as 2026-11-15T09:30:00Z"))
}

/// The member of a run that only callers without a key get.
const ANONYMOUS: &str = "anonymous_verifier_run_id";

fn run_tool(call: ToolCall<'_>) -> ToolFuture<'_> {
    watched(call).boxed()
}

/// Runs a verifier and reports its progress to the caller of the tool.
async fn watched(mut call: ToolCall<'_>) -> Result<Value, Problem> {
    let (text, body) = (call.request.path.pop().unwrap_or_default(), call.request.body.take());
    let order = verifier_runs::decode_verifier_run(&body.unwrap_or_default())?;
    let reference = verifiers::pinned(verifiers::reference(&text)?, order.version)?;
    let (watcher, progress) = RoundWatcher::new();
    let request = verifier_run_request(reference, order);
    let beginning = call.engine.verifier_run_begin(call.caller, request, watcher, None);
    let begun = Box::pin(begun(&call, beginning)).await?;
    let open = &begun.begun.round.open;
    let round = WatchedRound { id: open.id.clone(), progress, replicas: open.seats.len() };
    let view = match Box::pin(until_end(&mut call, round, begun.wait())).await? {
        WatchEnd::Ended(view) => view.map_err(|error| encode::engine_problem(&error))?,
        WatchEnd::StillOpen(round) => return Ok(rounds::body(&round)),
    };
    let mut body = json!(verifier_runs::whole(&view.run, &view.round, measured(&view.measured)));
    if let Some(members) = body.as_object_mut() {
        members.remove(ANONYMOUS);
    }
    Ok(body)
}

fn run_output() -> JsonObject {
    let mut schema = schema::output::<VerifierRunBody<'_>>();
    let run = schema.get_mut("$defs").and_then(|defs| defs.get_mut("VerifierRun"));
    if let Some(run) = run {
        if let Some(properties) = run["properties"].as_object_mut() {
            properties.remove(ANONYMOUS);
        }
        if let Some(required) = run["required"].as_array_mut() {
            required.retain(|name| name != ANONYMOUS);
        }
    }
    schema
}
