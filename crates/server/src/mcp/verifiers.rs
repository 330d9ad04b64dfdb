//! The tools for verifiers.

use futures::FutureExt as _;
use jurat_engine::{EngineError, IdempotentOutcome, RoundWatcher};
use jurat_wire::{
    api::{
        kit::page::{self, PageBody},
        mcp::arguments as tool,
        verifier_runs::{self, RunVerifierRequest, VerifierRunBody},
        verifiers::{self, DeployedVerifier},
    },
    problem::Problem,
};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{
    call::{ToolCall, ToolFuture},
    schema,
    watch::{WatchedRound, until_end},
};
use crate::{
    request::encode::engine_problem,
    resources::{cursor_position, listed, listing, measured, verifier_run_request},
};

/// A member of runs that only callers without a key get.
const ANONYMOUS: &str = "anonymous_verifier_run_id";

pub(super) fn deploy(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let new = verifiers::decode_deploy(tool::payload(arguments)?)?;
        let contract = new.contract;
        let warnings = engine.deploy_warnings(&new);
        let done = engine.verifier_deploy(caller, new, None).await;
        let deployed = now(done)?;
        let (verifier, config_hash) = (&deployed.verifier, &deployed.config_hash);
        Ok(json!(DeployedVerifier::new(verifier, contract, config_hash, &warnings)))
    }
    .boxed()
}

pub(super) fn list(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let order = tool::page(arguments)?;
        let wanted = listing(order.cursor.as_deref(), order.limit + 1);
        let found = engine.verifier_list(caller, &wanted).await;
        let mut found = found.map_err(|error| engine_problem(&error))?;
        // One more than asked for tells whether there are more.
        let limit = usize::try_from(order.limit).unwrap_or(usize::MAX);
        let has_more = limit < found.len();
        found.truncate(limit);
        let next =
            found.last().filter(|_| has_more).map(|last| page::cursor(&cursor_position(last)));
        Ok(json!(PageBody::new(found.iter().map(listed), next.as_deref())))
    }
    .boxed()
}

pub(super) fn get(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (text, version) = tool::verifier_version(arguments)?;
        let asked = verifiers::reference(text)?;
        let wanted = verifiers::pinned(asked.clone(), version)?;
        let view = engine.verifier_get(caller, &wanted).await;
        let view = view.map_err(|error| engine_problem(&error))?;
        Ok(json!(verifiers::shown(&asked, &view.version, measured(&view.measured))))
    }
    .boxed()
}

pub(super) fn run(call: ToolCall<'_>) -> ToolFuture<'_> {
    judged(call).boxed()
}

async fn judged(mut call: ToolCall<'_>) -> Result<Value, Problem> {
    let problem = |error: EngineError| engine_problem(&error);
    call.engine.admit(call.caller).map_err(problem)?;
    let (text, body) = tool::verifier_run(call.arguments)?;
    let order = verifier_runs::decode_verifier_run(&body)?;
    let reference = verifiers::pinned(verifiers::reference(text)?, order.version)?;
    let (watcher, progress) = RoundWatcher::new();
    let watched = WatchedRound { progress, replicas: usize::from(order.replicas), round: None };
    let (engine, caller) = (call.engine, call.caller);
    let running =
        engine.verifier_run(caller, verifier_run_request(reference, order), watcher, None);
    let view = Box::pin(until_end(&mut call, watched, running)).await?.map_err(problem)?;
    let mut body = json!(verifier_runs::whole(&view.run, &view.round, measured(&view.measured)));
    if let Some(members) = body.as_object_mut() {
        members.remove(ANONYMOUS);
    }
    Ok(body)
}

pub(super) fn revoke(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let reference = verifiers::reference(tool::verifier(arguments)?)?;
        let verifier = now(engine.verifier_revoke(caller, &reference, None).await)?;
        Ok(json!(verifiers::revoked(&verifier)))
    }
    .boxed()
}

pub(super) fn delete(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let reference = verifiers::reference(tool::verifier(arguments)?)?;
        let verifier = now(engine.verifier_delete(caller, &reference, None).await)?;
        Ok(json!(verifiers::deleted(&verifier)))
    }
    .boxed()
}

/// What was done. Without an idempotency key nothing was done before.
pub(super) fn now<T>(done: Result<IdempotentOutcome<T>, EngineError>) -> Result<T, Problem> {
    match done {
        Ok(IdempotentOutcome::Now(result)) => Ok(result),
        Ok(IdempotentOutcome::Before(_)) => {
            Err(engine_problem(&EngineError::Bug("a request without a key was repeated")))
        }
        Err(error) => Err(engine_problem(&error)),
    }
}

/// The body of a run, and beside it the verifier, which the API has in the address.
pub(super) fn run_input() -> JsonObject {
    let mut schema = schema::input::<RunVerifierRequest>();
    let text = "The id or name of a verifier, or `system:` and the name of a platform verifier; append `@` and a version to pin one.";
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let verifier = json!({ "type": "string", "pattern": r"\S", "description": text });
        properties.insert("verifier_id".to_owned(), verifier);
    }
    schema.insert("required".to_owned(), json!(["verifier_id"]));
    schema
}

pub(super) fn run_output() -> JsonObject {
    let mut schema = schema::output::<VerifierRunBody<'static>>();
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
