//! The tools for tasks, runs of several agents, and what is remembered of decisions.

use std::future::Future;

use futures::FutureExt as _;
use jurat_core::agent_run::EventsStart;
use jurat_engine::{AgentRunQuery, EngineError, KnowledgeQuery, TaskQuery};
use jurat_wire::{
    api::{
        agent_runs,
        kit::page::PageBody,
        mcp::tasks as take,
        tasks::{self, TaskComplaint},
    },
    problem::Problem,
};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::{
    call::{ToolCall, ToolFuture},
    people::cut,
    schema,
    verifiers::now,
    watch::cancelled,
};
use crate::{
    request::encode::engine_problem,
    resources::{agent_runs as run_bodies, knowledge, tasks as task_bodies},
};

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn problem(error: EngineError) -> Problem {
    engine_problem(&error)
}

pub(super) fn submit(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        engine.admit(caller).map_err(problem)?;
        let order = tasks::decode_submit(arguments)?;
        let submitted = now(engine.task_submit(caller, order, None).await)
            .map_err(|it| tasks::located(arguments, it))?;
        Ok(task_bodies::shown(&submitted.record))
    }
    .boxed()
}

pub(super) fn sample(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let id = take::sample(arguments)?;
        Ok(json!(engine.task_sample(caller, id).map_err(problem)?))
    }
    .boxed()
}

pub(super) fn get(call: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (id, wait) = take::task_wait(call.arguments)?;
        let record = match wait {
            None => call.engine.task_get(call.caller, id).await.map_err(problem)?,
            // No task has so many events: only its end is waited for.
            Some(wait) => {
                waited(&call, call.engine.task_wait(call.caller, id, u64::MAX, wait)).await?
            }
        };
        Ok(task_bodies::whole(&record))
    }
    .boxed()
}

/// What is waited for, unless the caller goes away.
async fn waited<T>(
    call: &ToolCall<'_>,
    waiting: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, Problem> {
    let waited = call.gone.run_until_cancelled(waiting).await;
    waited.ok_or_else(cancelled)?.map_err(problem)
}

pub(super) fn list(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let order = take::tasks(arguments)?;
        let query = TaskQuery {
            state: order.state,
            task_type: order.task_type,
            before: task_bodies::position(order.cursor.as_deref())?,
            limit: order.limit + 1,
        };
        let mut found = engine.task_list(caller, query).await.map_err(problem)?;
        let next = cut(&mut found, order.limit, task_bodies::cursor_of);
        Ok(json!(PageBody::new(found.iter().map(task_bodies::line), next.as_deref())))
    }
    .boxed()
}

pub(super) fn decision(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let found = engine.task_decision(caller, take::task(arguments)?).await;
        Ok(task_bodies::decision_of(&found.map_err(problem)?))
    }
    .boxed()
}

pub(super) fn events(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (id, after, limit) = take::task_events(arguments)?;
        let found = engine.task_events(caller, id, after, limit + 1).await;
        let mut found = found.map_err(problem)?;
        let next = cut(&mut found, limit, |it| it.seq.to_string());
        let body = found.iter().map(|it| tasks::event_body(id, it.seq, &it.event, it.at));
        Ok(json!(PageBody::new(body, next.as_deref())))
    }
    .boxed()
}

pub(super) fn cancel(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (id, body) = take::task_with(arguments)?;
        let reason = tasks::decode_cancel(&body)?;
        let record = engine.task_cancel(caller, id, reason.as_deref()).await;
        Ok(task_bodies::shown(&record.map_err(problem)?))
    }
    .boxed()
}

pub(super) fn next_epoch(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let id = take::task(arguments)?;
        Ok(task_bodies::shown(&now(engine.task_next_epoch(caller, id, None).await)?))
    }
    .boxed()
}

pub(super) fn complain(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (id, body) = take::task_with(arguments)?;
        let feedback: TaskComplaint = tasks::decode_feedback(&body)?;
        let done = engine.task_complain(caller, id, feedback, None).await;
        Ok(task_bodies::shown(&now(done)?))
    }
    .boxed()
}

pub(super) fn export_knowledge(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let order = take::knowledge(arguments)?;
        let query = KnowledgeQuery {
            of: knowledge::subject(order.task_type.as_deref(), order.task_id.as_deref())?,
            before: knowledge::position(order.cursor.as_deref())?,
            limit: order.limit + 1,
        };
        let mut found = engine.knowledge_list(caller, query).await.map_err(problem)?;
        let next = cut(&mut found, order.limit, knowledge::cursor_of);
        Ok(json!(PageBody::new(found.iter().map(knowledge::learned), next.as_deref())))
    }
    .boxed()
}

pub(super) fn submit_agent_run(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        engine.admit(caller).map_err(problem)?;
        let order = agent_runs::decode_submit(arguments, engine.clock().now())?;
        let id = order.spec.run_id.clone();
        let added = now(engine.agent_run_submit(caller, order, None).await)
            .map_err(|it| agent_runs::located(arguments, it))?;
        Ok(json!(agent_runs::submitted(&id, added.status)))
    }
    .boxed()
}

pub(super) fn get_agent_run(call: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (id, wait) = take::agent_run_wait(call.arguments)?;
        let view = match wait {
            None => call.engine.agent_run_get(call.caller, id).await.map_err(problem)?,
            Some(wait) => {
                waited(&call, call.engine.agent_run_wait(call.caller, id, u64::MAX, wait)).await?
            }
        };
        Ok(run_bodies::shown(&view))
    }
    .boxed()
}

pub(super) fn agent_run_result(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let view =
            engine.agent_run_get(caller, take::agent_run(arguments)?).await.map_err(problem)?;
        Ok(json!(agent_runs::result_body(&view.run)))
    }
    .boxed()
}

pub(super) fn list_agent_runs(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let order = take::agent_runs(arguments)?;
        let query = AgentRunQuery {
            status: order.status,
            before: task_bodies::position(order.cursor.as_deref())?,
            limit: order.limit + 1,
        };
        let mut found = engine.agent_run_list(caller, query).await.map_err(problem)?;
        let next = cut(&mut found, order.limit, run_bodies::cursor_of);
        Ok(json!(PageBody::new(found.into_iter().map(agent_runs::line), next.as_deref())))
    }
    .boxed()
}

pub(super) fn agent_run_events(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let (id, before, limit) = take::agent_run_events(arguments)?;
        let from = EventsStart::Before(before);
        let found = engine.agent_run_events(caller, id, from, limit + 1).await;
        let mut found = found.map_err(problem)?;
        let next = cut(&mut found, limit, |it| it.seq.to_string());
        let body = found.iter().map(|it| agent_runs::event(id, it.seq, &it.event, it.at));
        Ok(json!(PageBody::new(body, next.as_deref())))
    }
    .boxed()
}

pub(super) fn kickoff_agent_run(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let id = take::agent_run(arguments)?;
        Ok(run_bodies::shown(&now(engine.agent_run_kickoff(caller, id, None).await)?))
    }
    .boxed()
}

pub(super) fn retry_agent_run(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let id = take::agent_run(arguments)?;
        Ok(run_bodies::shown(&now(engine.agent_run_retry(caller, id, None).await)?))
    }
    .boxed()
}

pub(super) fn cancel_agent_run(
    ToolCall { engine, caller, arguments, .. }: ToolCall<'_>,
) -> ToolFuture<'_> {
    async move {
        let (id, body) = take::agent_run_with(arguments)?;
        let reason = agent_runs::decode_cancel(&body)?;
        Ok(run_bodies::shown(&now(engine.agent_run_cancel(caller, id, reason, None).await)?))
    }
    .boxed()
}

/// The body of a request, and beside it the name of a task or a run, which the API has in the
/// address.
pub(super) fn with_name(mut schema: JsonObject, name: &str, what: &str) -> JsonObject {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let text = format!("The id of a {what}.");
        let of = json!({ "type": "string", "pattern": r"\S", "description": text });
        properties.insert(name.to_owned(), of);
    }
    let mut required = match schema.remove("required") {
        Some(Value::Array(required)) => required,
        Some(_) | None => Vec::new(),
    };
    required.push(json!(name));
    schema.insert("required".to_owned(), Value::Array(required));
    schema
}

pub(super) fn cancel_input() -> JsonObject {
    with_name(schema::input::<tasks::CancelTaskRequest>(), "task_id", "task")
}

pub(super) fn complain_input() -> JsonObject {
    with_name(schema::input::<tasks::FeedbackRequest>(), "task_id", "task")
}

pub(super) fn cancel_agent_run_input() -> JsonObject {
    with_name(schema::input::<agent_runs::CancelRunRequest>(), "run_id", "run")
}
