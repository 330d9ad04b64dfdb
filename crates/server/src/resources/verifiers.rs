//! `/v1/verifiers`.

use axum::{
    Extension,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::Response,
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    verifier::{
        VerifierRef,
        registry::{DeployedVersion, Measurement, ReachedVerifier},
    },
};
use jurat_engine::{Engine, VerifierListQuery};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        verifiers::{
            self, DeletedVerifier, DeployVerifierRequest, DeployedVerifier, ListedVerifier,
            MeasurementBody, NewestMeasurements, RevokedVerifier, VerifierBody, VersionBody,
        },
    },
    problem::Problem,
};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    mcp::render,
    operation::{
        Operation, TextAuthor, Tool, example,
        parameters::{self, PathParameter},
    },
    request::{
        cursor,
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters, wrong},
    },
    resources::VERIFIERS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        deploy_operation(),
        list_operation(),
        show_operation(),
        versions_operation(),
        revoke_operation(),
        erase_operation(),
    ]
}

pub(super) const VERIFIER: PathParameter = PathParameter::new(
    "ref",
    "The id or name of a verifier, or `@owner/name` for another owner's; append `@` and a version to pin one. `system:` and a name refers to a platform verifier.",
    "claims-cite-source",
);

fn deploy_operation() -> Operation {
    let text = "Creates a verifier, or adds a version to the one with this name. A version never changes. Leave out `expected_version_token` for the first deploy of a name, and send the current token for every later one; otherwise the reply is 409 with the current token in `current_version_token`. The names of platform verifiers are reserved.";
    let about = "Stores a version of a verifier: a criterion that a judge decides, with labelled examples. A new name creates a verifier; the next version of a name needs its `version_token` as `expected_version_token`.";
    Operation::post("/v1/verifiers", "verifier_deploy", deploy)
        .tag(VERIFIERS)
        .summary("Deploy a version of a verifier")
        .text(text)
        .scope(Scope::VerifiersWrite)
        .takes::<DeployVerifierRequest>([(
            "plain",
            example(include_str!("verifiers/verifier_deploy_request.json")),
        )])
        .answers::<DeployedVerifier<'_>>(
            201,
            "The added version.",
            example(include_str!("verifiers/verifier_deploy.json")),
        )
        .idempotent()
        .refuses_when(
            ProblemCode::Conflict,
            "the token is missing, stale, or came with a new name; or the name belongs to a revoked or platform verifier",
        )
        .tool(
            Tool::adds("deploy_verifier", "Deploy a verifier", about)
                .body_within::<DeployVerifierArguments>("payload")
                .ignores_unknown()
                .summary(render::deployed),
        )
}

async fn deploy(
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

fn list_operation() -> Operation {
    let text = "The active verifiers that the caller can use, its own and those of shared workflows, by name, without platform verifiers.";
    let about = "Lists the active verifiers that the account owns or can use through shared workflows, by name, one page at a time.";
    Operation::get("/v1/verifiers", "verifier_list", list)
        .tag(VERIFIERS)
        .summary("List verifiers")
        .text(text)
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .answers::<PageBody<'_, ListedVerifier<'_>>>(
            200,
            "A page of verifiers.",
            example(include_str!("verifiers/verifier_list.json")),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_verifiers", "List verifiers", about)
                .query(&["limit", "cursor"])
                .ignores_unknown()
                .summary(render::listed)
                .author(TextAuthor::Others),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let after = query.position()?.map(|[name, id]| (name, id));
    let wanted = VerifierListQuery { after, limit: query.with_one_more() };
    let mut found = engine.verifier_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, position_of);
    Ok(encode::ok(&PageBody::new(found.iter().map(listed), next.as_deref())))
}

/// The sort key of the list: the name, and the id that tells verifiers with the same name apart.
fn position_of(reached: &ReachedVerifier) -> [String; 2] {
    [reached.verifier.name.clone(), reached.verifier.id.clone()]
}

fn listed(reached: &ReachedVerifier) -> ListedVerifier<'_> {
    let shared = reached.shared.as_ref().map(|it| (it.workflow.as_str(), &it.by));
    verifiers::listed(&reached.verifier, reached.role, shared)
}

fn show_operation() -> Operation {
    let text = "One full version with its criterion and examples: the pinned one, or the current one. Verifiers that the account neither owns nor can use, revoked ones, platform verifiers and unknown ones are not found, all with the same text. A bare name refers to a verifier of the account; if only other owners have it, `hint` has the full names of those shared with the caller. The slash of `@owner/name` may be sent as `%2F` or unescaped. A version in the path and in the query must be the same.";
    let about = "Returns a full version of a verifier: criterion, input contract, examples, judge and version token.";
    let which = "The id or name of a verifier, or `@owner/name` for another owner's; append `@` and a version to pin one.";
    Operation::get("/v1/verifiers/{ref}", "verifier_get", show)
        .also("/v1/verifiers/{ref}/{slug}")
        .tag(VERIFIERS)
        .summary("Show a verifier")
        .text(text)
        .in_path([VERIFIER])
        .scope(Scope::VerifiersRead)
        .with([parameters::version("The version to show; defaults to the current one.")])
        .answers::<VerifierBody<'_>>(
            200,
            "The version.",
            example(include_str!("verifiers/verifier.json")),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("get_verifier", "Show a verifier", about)
                .path("verifier_id", which)
                .query(&["version"])
                .ignores_unknown()
                .summary(render::shown)
                .author(TextAuthor::Others),
        )
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    VerifierPath { asked, wanted }: VerifierPath,
) -> HandlerResult {
    let view = engine.verifier_get(&caller, &wanted).await?;
    Ok(encode::ok(&verifiers::shown(&asked, &view.version, measured(&view.measured))))
}

fn versions_operation() -> Operation {
    Operation::get("/v1/verifiers/{ref}/versions", "verifier_versions", versions)
        .tag(VERIFIERS)
        .summary("List the versions of a verifier")
        .text("All versions, newest first.")
        .in_path([VERIFIER])
        .scope(Scope::VerifiersRead)
        .with(parameters::of_list())
        .answers::<PageBody<'_, VersionBody<'_>>>(
            200,
            "A page of versions.",
            example(include_str!("verifiers/verifier_versions.json")),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

async fn versions(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let asked = verifiers::reference(&text)?;
    let before = query.text_position()?.as_deref().map(whole_version).transpose();
    let before = before.map_err(|()| cursor::refused())?;
    let mut found =
        engine.verifier_versions(&caller, &asked, before, query.with_one_more()).await?;
    let next = query.cut(&mut found.versions, |it| [it.version.to_string()]);
    let lines = found.versions.iter().map(|it| {
        let texts = (it.description.as_str(), it.config_hash.as_str());
        verifiers::version_line(&found.verifier, it.version, texts, it.deployed_at)
    });
    Ok(encode::ok(&PageBody::new(lines, next.as_deref())))
}

fn revoke_operation() -> Operation {
    let text = "Permanently deactivates a verifier: it is no longer listed, shown or run. Its name cannot be reused, and its runs can still be read. It cannot be undone, and repeating it returns the same. A pinned version is refused.";
    let about = "Permanently deactivates a verifier. Its name cannot be reused, and its runs can still be read. It cannot be undone, and repeating it returns the same. A pinned version is refused.";
    Operation::delete("/v1/verifiers/{ref}", "verifier_revoke", revoke)
        .tag(VERIFIERS)
        .summary("Revoke a verifier")
        .text(text)
        .in_path([VERIFIER])
        .scope(Scope::VerifiersWrite)
        .answers::<RevokedVerifier<'_>>(
            200,
            "It is revoked.",
            example(include_str!("verifiers/verifier_revoke.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
        .tool(
            Tool::ends("revoke_verifier", "Revoke a verifier", about)
                .confirmed()
                .path("verifier_id", "The id or name of a verifier.")
                .ignores_unknown()
                .summary(render::revoked),
        )
}

async fn revoke(
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

fn erase_operation() -> Operation {
    let text = "Permanently deletes a verifier, active or revoked, with its versions, measurements and runs. It must be named by its id, without a version. Its name becomes available again. A verifier that is part of a published template is refused, and the error names the templates.";
    let about = "Permanently deletes a verifier with all its versions and runs. This cannot be undone; prefer `revoke_verifier`.";
    Operation::delete("/v1/verifiers/{ref}/permanent", "verifier_delete", erase)
        .tag(VERIFIERS)
        .summary("Delete a verifier")
        .text(text)
        .in_path([VERIFIER])
        .scope(Scope::VerifiersWrite)
        .answers::<DeletedVerifier<'_>>(
            200,
            "It is deleted.",
            example(include_str!("verifiers/verifier_delete.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
        .tool(
            Tool::ends("delete_verifier", "Delete a verifier", about)
                .confirmed()
                .path("verifier_id", "The id of a verifier; a name is not accepted.")
                .ignores_unknown()
                .summary(render::deleted),
        )
}

async fn erase(
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

/// A verifier as its address names it, and the same with the version that the query may add.
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

/// The newest measurements that count for a version, as replies show them.
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

/// Arguments of `deploy_verifier`.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only describes the arguments")]
struct DeployVerifierArguments {
    /// The version to deploy: the first version of a new verifier, or the next version of the
    /// verifier with this name.
    payload: DeployVerifierRequest,
}
