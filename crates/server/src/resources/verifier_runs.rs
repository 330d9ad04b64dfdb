//! `/v1/verifier-runs`, and the runs of one verifier.

mod export;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, header},
};
use jurat_core::{
    account::caller::Caller,
    code::ProblemCode,
    time::Timestamp,
    verifier::{VerifierRef, VerifierSelector, run::VerifierRunPurpose},
};
use jurat_engine::{Engine, RoundWatcher, VerifierRunOrder, VerifierRunQuery};
use jurat_wire::{
    api::{
        kit::{page::PageBody, time},
        verifier_runs::{self, VerifierRunRequest},
        verifiers,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::verifiers::{VerifierPath, measured, version, wanted};
use crate::request::page::{ListQuery, QueryFilters, wrong};
use crate::request::{
    auth::VisitorCaller,
    decode::{Json, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

/// The parameters that narrow a list of runs.
const FILTERS: [&str; 5] = ["version", "verdict", "purpose", "since", "until"];

/// Has inputs judged. The status is 201 whatever the judge says, or does not say.
pub(super) async fn run(
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

/// A run without a key: of exactly what is published, by its own judge, paid from the credit of the
/// network address.
async fn anonymous(
    engine: &Engine,
    caller: &Caller,
    (idempotency, named): (Idempotency, VerifierPath),
    body: &Value,
) -> HandlerResult {
    if let VerifierSelector::Name(_) | VerifierSelector::Of { .. } = named.wanted.which {
        // A name means something only to its account, so that this tells nothing.
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

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[&FILTERS[..], &["verifier"]].concat())?;
    let mut asked = verifier_run_query(&query)?;
    if let Some(text) = query.filters.get("verifier") {
        let reference = wanted(text, &query.filters)?;
        asked.version = reference.version;
        asked.verifier = Some(reference);
    }
    if export::is_wanted(headers.get(header::ACCEPT)) {
        return export::reply(engine, caller, asked).await;
    }
    let mut found = engine.verifier_run_list(&caller, asked).await?;
    let next = query.cut(&mut found, |run| run.ticket.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(verifier_runs::line), next.as_deref())))
}

pub(super) async fn of_verifier(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: ListQuery,
) -> HandlerResult {
    query.only(&FILTERS)?;
    let reference = wanted(&text, &query.filters)?;
    let asked = VerifierRunQuery { version: reference.version, ..verifier_run_query(&query)? };
    let mut found = engine.verifier_runs(&caller, &reference, asked).await?;
    let next = query.cut(&mut found, |run| run.ticket.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(verifier_runs::line), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let found = engine.verifier_run_get(&caller, &id).await?;
    Ok(encode::ok(&verifier_runs::whole(&found.run, &found.round, measured(&found.measured))))
}

/// What the engine is asked for.
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
        purpose: VerifierRunPurpose::Run,
        leave_out: None,
    }
}

fn verifier_run_query(query: &ListQuery) -> Result<VerifierRunQuery, Problem> {
    let filters = &query.filters;
    Ok(VerifierRunQuery {
        verifier: None,
        version: version(filters)?,
        verdict: word(filters, "verdict", "must be passed, failed, error or running")?,
        purpose: word(filters, "purpose", "must be run, test or attack")?,
        since: moment(filters, "since")?,
        until: moment(filters, "until")?,
        before: query.cursor.as_deref().map(cursor_run_id).transpose()?,
        limit: query.with_one_more(),
    })
}

/// A cursor is the id of the last run that was shown.
fn cursor_run_id(cursor: &str) -> Result<String, Problem> {
    match VerifierRef::parse(cursor) {
        Ok(VerifierRef { which: VerifierSelector::Id(id), version: None }) => Ok(id),
        _ => Err(wrong("cursor", "was not returned by a list")),
    }
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
