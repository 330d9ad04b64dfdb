//! `/v1/executors`.

use std::borrow::Cow;

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    list::ListPage,
};
use jurat_engine::{Engine, ExecutorView, NewExecutor};
use jurat_wire::api::{
    executors::{self, AddExecutorRequest, ExecutorBody, ProbeBody},
    kit::page::PageBody,
    sessions,
    status::RemovedExecutor,
};
use serde_json::{Value, json};

use crate::{
    operation::{
        Operation, example,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::ListQuery,
    },
    resources::EXECUTORS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![add_operation(), list_operation(), show_operation(), check_operation(), remove_operation()]
}

const EXECUTOR: PathParameter = PathParameter::new("name", "The name of an executor.", "delta");

fn add_operation() -> Operation {
    let text = "Registers a service and adds a session of the same name. The service is probed for health and capabilities; one that does not answer is registered anyway, unless `must_answer` is true. With `remote`, the executor belongs to the node `target_node`, which must be a trusted peer to be asked: jobs are sent to that node, which calls the executor at `url`.";
    Operation::post("/v1/executors", "executor_add", add)
        .tag(EXECUTORS)
        .summary("Register an executor")
        .text(text)
        .scope(Scope::Admin)
        .takes::<AddExecutorRequest>([(
            "plain",
            example(include_str!("executors/executor_add_request.json")),
        )])
        .answers::<ExecutorBody<'_>>(
            201,
            "The executor.",
            example(include_str!("executors/executor_add.json")),
        )
        .idempotent()
        .refuses_when(
            ProblemCode::ValidationError,
            "a field is invalid, or the variable of `token_env` is not set",
        )
        .refuses_when(
            ProblemCode::NotSupported,
            "`remote` is sent without `target_node`: a job cannot be sent to any node of a scope yet",
        )
        .refuses_when(ProblemCode::Conflict, "the name of the executor or of its session is taken")
        .refuses_when(
            ProblemCode::ExecutorUnavailable,
            "`must_answer` is true, but the executor does not answer; nothing is registered",
        )
}

async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let add = executors::decode_add(&body, engine.clock().now())?;
    let session = add.session.clone();
    let answer = move |view: &ExecutorView| {
        let session = session.as_ref().map(sessions::body);
        let body = executors::body(&view.executor, view.circuit_for()).beside(&view.same_url);
        json!(body.with_session(session))
    };
    let keyed = idempotency.write_for("executor_add", &body, StatusCode::CREATED, answer.clone());
    let addition =
        NewExecutor { executor: add.executor, session: add.session, must_answer: add.must_answer };
    let done = engine.executor_add(&caller, addition, keyed).await?;
    Ok(idempotency::reply(done, |view| encode::created(&answer(view))))
}

fn list_operation() -> Operation {
    Operation::get("/v1/executors", "executor_list", list)
        .tag(EXECUTORS)
        .summary("List executors")
        .text("All executors, by name.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, ExecutorBody<'_>>>(
            200,
            "A page of executors.",
            example(include_str!("executors/executor_list.json")),
        )
        .refuses([ProblemCode::ValidationError])
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let wanted = ListPage { after: query.text_position()?, limit: query.with_one_more() };
    let mut views = engine.executor_list(&caller, &wanted).await?;
    let next = query.cut(&mut views, |view| [view.executor.name.clone()]);
    let items = views.iter().map(|view| executors::body(&view.executor, view.circuit_for()));
    Ok(encode::ok(&PageBody::new(items, next.as_deref())))
}

fn show_operation() -> Operation {
    Operation::get("/v1/executors/{name}", "executor_show", show)
        .tag(EXECUTORS)
        .summary("Show an executor")
        .text("An executor and its current state.")
        .in_path([EXECUTOR])
        .scope(Scope::Admin)
        .answers::<ExecutorBody<'_>>(
            200,
            "The executor.",
            example(include_str!("executors/executor.json")),
        )
        .refuses([ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(name): PathText,
) -> HandlerResult {
    let view = engine.executor_show(&caller, &name).await?;
    Ok(encode::ok(&executors::body(&view.executor, view.circuit_for())))
}

fn check_operation() -> Operation {
    let text = "Probes the executor's health and capabilities now. The status is 200 even if the executor is unhealthy.";
    Operation::post("/v1/executors/{name}/check", "executor_check", check)
        .tag(EXECUTORS)
        .summary("Check an executor")
        .text(text)
        .in_path([EXECUTOR])
        .scope(Scope::Admin)
        .answers::<ProbeBody<'_>>(
            200,
            "Result of the check.",
            example(include_str!("executors/check.json")),
        )
        .refuses([ProblemCode::NotFound])
}

async fn check(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(name): PathText,
) -> HandlerResult {
    let (probe, events) = engine.executor_check(&caller, &name).await?;
    let events = events.as_ref().map(|it| (it.url.as_str(), it.error.as_deref()));
    Ok(encode::ok(&executors::probe_body(&probe).of(&name, events)))
}

fn remove_operation() -> Operation {
    Operation::delete("/v1/executors/{name}", "executor_remove", remove)
        .tag(EXECUTORS)
        .summary("Remove an executor")
        .text("Removes an executor and its sessions.")
        .in_path([EXECUTOR])
        .scope(Scope::Admin)
        .answers::<RemovedExecutor<'_>>(
            200,
            "The removed resource.",
            example(include_str!("executors/executor_remove.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(name): PathText,
) -> HandlerResult {
    let removed = name.clone();
    let answer = move |sessions: &Vec<String>| {
        json!(RemovedExecutor {
            removed: Cow::Borrowed(&removed),
            sessions: Cow::Borrowed(sessions)
        })
    };
    let keyed =
        idempotency.write_for("executor_remove", &Value::Null, StatusCode::OK, answer.clone());
    let done = engine.executor_remove(&caller, &name, keyed).await?;
    Ok(idempotency::reply(done, |sessions| encode::ok(&answer(sessions))))
}
