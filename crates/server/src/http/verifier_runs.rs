//! `/v1/verifier-runs`, and the runs of one verifier.

mod export;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, header},
};
use jurat_core::{
    caller::Caller,
    code::Code,
    run::Purpose,
    time::Timestamp,
    verifier::{VerifierRef, Which},
};
use jurat_engine::{Engine, RunQuery, RunRequest, Watcher};
use jurat_wire::{
    api::{
        page::Page,
        time,
        verifier_runs::{self, RunOrder},
        verifiers,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::{
    page::{Filters, ListQuery, wrong},
    verifiers::{Named, measured, version, wanted},
};
use crate::{
    auth::Visitor,
    decode::{Json, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

/// The parameters that narrow a list of runs.
const FILTERS: [&str; 5] = ["version", "verdict", "purpose", "since", "until"];

/// Has inputs judged. The status is 201 whatever the judge says, or does not say.
pub(super) async fn run(
    State(engine): State<Engine>,
    Extension(visitor): Extension<Visitor>,
    repeatable: Repeatable,
    named: Named,
    Json(body): Json,
) -> Answer {
    if visitor.caller().is_none() {
        return anonymous(&engine, visitor.payer(), (repeatable, named), &body).await;
    }
    let caller = visitor.payer();
    let order = verifier_runs::decode_run(&body)?;
    let reference = verifiers::pinned(named.wanted, order.version)?;
    let once = repeatable.once("verifier_run", &json!([reference.to_string(), body]));
    let request = run_request(reference, order);
    let view = engine.verifier_run(caller, request, Watcher::nobody(), once).await?;
    let body = verifier_runs::whole(&view.run, &view.round, measured(&view.measured));
    let response = encode::created(&body);
    Ok(if view.is_repeated { once::mark_replayed(response) } else { response })
}

/// A run without a key: of exactly what is published, by its own judge, paid from the credit of the
/// network address.
async fn anonymous(
    engine: &Engine,
    caller: &Caller,
    (repeatable, named): (Repeatable, Named),
    body: &Value,
) -> Answer {
    if let Which::Name(_) | Which::Of { .. } = named.wanted.which {
        // A name means something only to its account, so that this tells nothing.
        let detail =
            "verifier names belong to accounts; without a key, use an id or `system:` and a name";
        return Err(Problem::new(Code::AuthRequired, detail).into());
    }
    let order = verifier_runs::decode_run(body)?;
    if repeatable.once("verifier_run", body).is_some() {
        let detail = "the header `Idempotency-Key` needs an API key: callers who share a network address would share it";
        return Err(Problem::new(Code::ValidationError, detail).at("Idempotency-Key").into());
    }
    if !order.judges.is_empty() {
        return Err(wrong("judges", "cannot be chosen without a key").into());
    }
    let reference = verifiers::pinned(named.wanted, order.version)?;
    let request = run_request(reference, order);
    let view = engine.verifier_run(caller, request, Watcher::nobody(), None).await?;
    Ok(encode::created(&verifier_runs::anonymous(&view.run, &view.round)))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    query: ListQuery,
) -> Answer {
    query.only(&[&FILTERS[..], &["verifier"]].concat())?;
    let mut asked = run_query(&query)?;
    if let Some(text) = query.filters.get("verifier") {
        let reference = wanted(text, &query.filters)?;
        asked.version = reference.version;
        asked.verifier = Some(reference);
    }
    if export::is_wanted(headers.get(header::ACCEPT)) {
        return export::reply(engine, caller, asked).await;
    }
    let mut found = engine.run_list(&caller, asked).await?;
    let next = query.cut(&mut found, |run| run.ticket.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(verifier_runs::line), next.as_deref())))
}

pub(super) async fn of_verifier(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: ListQuery,
) -> Answer {
    query.only(&FILTERS)?;
    let reference = wanted(&text, &query.filters)?;
    let asked = RunQuery { version: reference.version, ..run_query(&query)? };
    let mut found = engine.verifier_runs(&caller, &reference, asked).await?;
    let next = query.cut(&mut found, |run| run.ticket.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(verifier_runs::line), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> Answer {
    let found = engine.run_get(&caller, &id).await?;
    Ok(encode::ok(&verifier_runs::whole(&found.run, &found.round, measured(&found.measured))))
}

/// What the engine is asked for.
pub(crate) fn run_request(reference: VerifierRef, order: RunOrder) -> RunRequest {
    RunRequest {
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
        purpose: Purpose::Run,
        leave_out: None,
    }
}

fn run_query(query: &ListQuery) -> Result<RunQuery, Problem> {
    let filters = &query.filters;
    Ok(RunQuery {
        verifier: None,
        version: version(filters)?,
        verdict: word(filters, "verdict", "must be passed, failed, error or running")?,
        purpose: word(filters, "purpose", "must be run, test or attack")?,
        since: moment(filters, "since")?,
        until: moment(filters, "until")?,
        before: query.cursor.as_deref().map(run_id).transpose()?,
        limit: query.with_one_more(),
    })
}

/// A cursor is the id of the last run that was shown.
fn run_id(cursor: &str) -> Result<String, Problem> {
    match VerifierRef::parse(cursor) {
        Ok(VerifierRef { which: Which::Id(id), version: None }) => Ok(id),
        _ => Err(wrong("cursor", "was not returned by a list")),
    }
}

fn word<T: std::str::FromStr>(
    filters: &Filters,
    name: &str,
    reason: &str,
) -> Result<Option<T>, Problem> {
    filters.get(name).map(|text| text.parse().map_err(|_| wrong(name, reason))).transpose()
}

fn moment(filters: &Filters, name: &str) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = filters.get(name) else { return Ok(None) };
    let moment = time::parse(text);
    moment.map(Some).ok_or_else(|| wrong(name, "must be a time such as 2026-11-15T09:30:00Z"))
}
