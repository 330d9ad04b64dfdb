//! `/v1/verifiers`.

use axum::{
    Extension,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::Response,
};
use jurat_core::{caller::Caller, verifier::VerifierRef};
use jurat_engine::{Deployment, Engine, Measurement, ReachedVerifier, VerifierPage};
use jurat_wire::{
    api::{
        page::Page,
        verifiers::{self, DeployedVerifier, ListedVerifier, Measured, MeasurementBody},
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::page::{Filters, ListQuery, wrong};
use crate::{
    decode::{Json, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn deploy(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let new = verifiers::decode_deploy(&body)?;
    let contract = new.contract;
    let warnings = engine.deploy_warnings(&new);
    let reply = move |it: &Deployment| {
        json!(DeployedVerifier::new(&it.verifier, contract, &it.config_hash, &warnings))
    };
    let keyed = repeatable.keyed("verifier_deploy", &body, StatusCode::CREATED, reply.clone());
    let done = engine.verifier_deploy(&caller, new, keyed).await?;
    Ok(once::reply(done, |it| encode::created(&reply(it))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&[])?;
    let wanted = listing(query.place()?.as_deref(), query.with_one_more());
    let mut found = engine.verifier_list(&caller, &wanted).await?;
    let next = query.cut_sealed(&mut found, place_of);
    Ok(encode::ok(&Page::new(found.iter().map(listed), next.as_deref())))
}

/// A page that begins behind a place: a name, and the id that tells those with one name apart.
pub(crate) fn listing(place: Option<&str>, limit: u32) -> VerifierPage {
    let after = place.map(|place| match place.split_once(':') {
        Some((name, id)) => (name.to_owned(), id.to_owned()),
        None => (place.to_owned(), String::new()),
    });
    VerifierPage { after, limit }
}

pub(crate) fn place_of(reached: &ReachedVerifier) -> String {
    format!("{}:{}", reached.verifier.name, reached.verifier.id)
}

pub(crate) fn listed(reached: &ReachedVerifier) -> ListedVerifier<'_> {
    let shared = reached.shared.as_ref().map(|it| (it.workflow.as_str(), &it.by));
    verifiers::listed(&reached.verifier, reached.role, shared)
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Named { asked, wanted }: Named,
) -> Answer {
    let view = engine.verifier_get(&caller, &wanted).await?;
    Ok(encode::ok(&verifiers::shown(&asked, &view.version, measured(&view.measured))))
}

pub(super) async fn versions(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: ListQuery,
) -> Answer {
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
    Ok(encode::ok(&Page::new(lines, next.as_deref())))
}

pub(super) async fn revoke(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(text): PathText,
) -> Answer {
    let asked = verifiers::reference(&text)?;
    let keyed = repeatable.keyed("verifier_revoke", &Value::Null, StatusCode::OK, |verifier| {
        json!(verifiers::revoked(verifier))
    });
    let done = engine.verifier_revoke(&caller, &asked, keyed).await?;
    Ok(once::reply(done, |verifier| encode::ok(&verifiers::revoked(verifier))))
}

pub(super) async fn erase(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(text): PathText,
) -> Answer {
    let asked = verifiers::reference(&text)?;
    let keyed = repeatable.keyed("verifier_delete", &Value::Null, StatusCode::OK, |verifier| {
        json!(verifiers::deleted(verifier))
    });
    let done = engine.verifier_delete(&caller, &asked, keyed).await?;
    Ok(once::reply(done, |verifier| encode::ok(&verifiers::deleted(verifier))))
}

/// A verifier as its address names it, and with the version that the query may add.
pub(super) struct Named {
    asked: VerifierRef,
    pub(super) wanted: VerifierRef,
}

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let PathText(text) = PathText::from_request_parts(parts, state).await?;
        let query = Filters::from_request_parts(parts, state).await?;
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
pub(crate) fn measured(found: &[Measurement]) -> Option<Measured<'_>> {
    let found: Vec<_> = found
        .iter()
        .filter(|it| it.is_own())
        .map(|it| (it.purpose, MeasurementBody::new(&it.id, it.at, &it.data_digest, &it.document)))
        .collect();
    Measured::of(&found)
}

/// The parameter `version`.
pub(super) fn version(query: &Filters) -> Result<Option<u32>, Problem> {
    let version = query.get("version").map(whole_version).transpose();
    version.map_err(|()| wrong("version", "must be a whole number, 1 or more"))
}

/// A verifier with the version that the query asks for.
pub(super) fn wanted(text: &str, query: &Filters) -> Result<VerifierRef, Problem> {
    verifiers::pinned(verifiers::reference(text)?, version(query)?)
}

fn whole_version(text: &str) -> Result<u32, ()> {
    text.parse().ok().filter(|version| 0 < *version).ok_or(())
}
