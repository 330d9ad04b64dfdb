//! `/v1/verifiers`.

use axum::{
    Extension,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::Response,
};
use jurat_core::{
    account::caller::Caller,
    verifier::{
        VerifierRef,
        registry::{DeployedVersion, Measurement, ReachedVerifier},
    },
};
use jurat_engine::{Engine, VerifierListQuery};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        verifiers::{self, DeployedVerifier, ListedVerifier, MeasurementBody, NewestMeasurements},
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::request::page::{ListQuery, QueryFilters, wrong};
use crate::request::{
    decode::{Json, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn deploy(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let new = verifiers::decode_deploy(&body)?;
    let contract = new.contract;
    let warnings = engine.deploy_warnings(&new);
    let reply = move |it: &DeployedVersion| {
        json!(DeployedVerifier::new(&it.verifier, contract, &it.config_hash, &warnings))
    };
    let keyed = idempotency.write_for("verifier_deploy", &body, StatusCode::CREATED, reply.clone());
    let done = engine.verifier_deploy(&caller, new, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::created(&reply(it))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let wanted = listing(query.position()?.as_deref(), query.with_one_more());
    let mut found = engine.verifier_list(&caller, &wanted).await?;
    let next = query.cut_opaque(&mut found, cursor_position);
    Ok(encode::ok(&PageBody::new(found.iter().map(listed), next.as_deref())))
}

/// A page that begins behind a place: a name, and the id that tells those with one name apart.
pub(crate) fn listing(place: Option<&str>, limit: u32) -> VerifierListQuery {
    let after = place.map(|place| match place.split_once(':') {
        Some((name, id)) => (name.to_owned(), id.to_owned()),
        None => (place.to_owned(), String::new()),
    });
    VerifierListQuery { after, limit }
}

pub(crate) fn cursor_position(reached: &ReachedVerifier) -> String {
    format!("{}:{}", reached.verifier.name, reached.verifier.id)
}

pub(crate) fn listed(reached: &ReachedVerifier) -> ListedVerifier<'_> {
    let shared = reached.shared.as_ref().map(|it| (it.workflow.as_str(), &it.by));
    verifiers::listed(&reached.verifier, reached.role, shared)
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    VerifierPath { asked, wanted }: VerifierPath,
) -> HandlerResult {
    let view = engine.verifier_get(&caller, &wanted).await?;
    Ok(encode::ok(&verifiers::shown(&asked, &view.version, measured(&view.measured))))
}

pub(super) async fn versions(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let asked = verifiers::reference(&text)?;
    let before = query.cursor.as_deref().map(whole_version).transpose();
    let before = before.map_err(|()| wrong("cursor", "was not returned by a list"))?;
    let mut found =
        engine.verifier_versions(&caller, &asked, before, query.with_one_more()).await?;
    let next = query.cut(&mut found.versions, |version| version.version.to_string());
    let lines = found.versions.iter().map(|it| {
        let texts = (it.description.as_str(), it.config_hash.as_str());
        verifiers::version_line(&found.verifier, it.version, texts, it.deployed_at)
    });
    Ok(encode::ok(&PageBody::new(lines, next.as_deref())))
}

pub(super) async fn revoke(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
) -> HandlerResult {
    let asked = verifiers::reference(&text)?;
    let keyed =
        idempotency.write_for("verifier_revoke", &Value::Null, StatusCode::OK, |verifier| {
            json!(verifiers::revoked(verifier))
        });
    let done = engine.verifier_revoke(&caller, &asked, keyed).await?;
    Ok(idempotency::reply(done, |verifier| encode::ok(&verifiers::revoked(verifier))))
}

pub(super) async fn erase(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
) -> HandlerResult {
    let asked = verifiers::reference(&text)?;
    let keyed =
        idempotency.write_for("verifier_delete", &Value::Null, StatusCode::OK, |verifier| {
            json!(verifiers::deleted(verifier))
        });
    let done = engine.verifier_delete(&caller, &asked, keyed).await?;
    Ok(idempotency::reply(done, |verifier| encode::ok(&verifiers::deleted(verifier))))
}

/// A verifier as its address names it, and with the version that the query may add.
pub(super) struct VerifierPath {
    asked: VerifierRef,
    pub(super) wanted: VerifierRef,
}

impl<S: Send + Sync> FromRequestParts<S> for VerifierPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let PathText(text) = PathText::from_request_parts(parts, state).await?;
        let query = QueryFilters::from_request_parts(parts, state).await?;
        let read = || {
            query.only(&["version"])?;
            let asked = verifiers::reference(&text)?;
            let wanted = verifiers::pinned(asked.clone(), version(&query)?)?;
            Ok(Self { asked, wanted })
        };
        read().map_err(|problem: Problem| encode::problem(&problem))
    }
}

/// The newest measurements that speak for a version, as replies show them.
pub(crate) fn measured(found: &[Measurement]) -> Option<NewestMeasurements<'_>> {
    let found: Vec<_> = found
        .iter()
        .filter(|it| it.is_own())
        .map(|it| (it.purpose, MeasurementBody::new(&it.id, it.at, &it.data_digest, &it.document)))
        .collect();
    NewestMeasurements::of(&found)
}

/// The parameter `version`.
pub(super) fn version(query: &QueryFilters) -> Result<Option<u32>, Problem> {
    let version = query.get("version").map(whole_version).transpose();
    version.map_err(|()| wrong("version", "must be a whole number, 1 or more"))
}

/// A verifier with the version that the query asks for.
pub(super) fn wanted(text: &str, query: &QueryFilters) -> Result<VerifierRef, Problem> {
    verifiers::pinned(verifiers::reference(text)?, version(query)?)
}

fn whole_version(text: &str) -> Result<u32, ()> {
    text.parse().ok().filter(|version| 0 < *version).ok_or(())
}
