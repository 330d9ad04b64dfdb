//! The events of a task: a page, or a stream that follows the task to its end.

use axum::{Extension, extract::State, http::HeaderMap};
use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    task::TaskEventRow,
};
use jurat_engine::{Engine, EngineError};
use jurat_wire::{
    api::{
        events::ERROR,
        kit::page::PageBody,
        tasks::{self, TASK, TASK_EVENT, TaskBody, TaskEventBody},
    },
    problem::{Problem, ProblemBody},
};
use serde_json::{Value, json};

use super::view;
use crate::{
    mcp::render,
    operation::{EventDescription, Operation, TextAuthor, Tool, parameters},
    request::{
        cursor,
        decode::PathText,
        encode::{self, HandlerResult},
        page::{LARGEST_LIMIT, ListQuery, wrong},
    },
    resources::{
        TASKS,
        consensus::wants_stream,
        follow::{self, EventSource, FollowOutcome, LOOK, NumberedEvent},
        tasks::{TASK_ID, examples},
    },
};

pub(super) fn events_operation() -> Operation {
    let text = "The events of a task, oldest first. With `Accept: text/event-stream` each event is sent as it happens, and the task at its end; `Last-Event-ID` resumes an interrupted stream.";
    Operation::get("/v1/tasks/{id}/events", "task_events", events)
        .tag(TASKS)
        .summary("List or follow events of a task")
        .text(text)
        .in_path([TASK_ID])
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_task_events())
        .answers::<PageBody<'_, TaskEventBody<'_>>>(200, "A page of events.", examples::events())
        .or_streams(
            &[
                (TASK_EVENT, EventDescription::of::<TaskEventBody<'_>>()),
                (TASK, EventDescription::of::<TaskBody<'_>>()),
                (ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            STREAM,
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads(
                "list_task_events",
                "List the events of a task",
                "Lists the events of a task, oldest first, one page at a time.",
            )
            .path("task_id", "The id of a task.")
            .query(&["after", "limit", "cursor"])
            .summary(render::counted)
            .author(TextAuthor::Executors),
        )
}

async fn events(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
    headers: HeaderMap,
) -> HandlerResult {
    let after = after(&query, &headers)?;
    if wants_stream(&headers) {
        engine.task_show(&caller, &id).await?;
        return Ok(follow::stream(FollowedTask { engine, caller, id }, after));
    }
    let found = engine.task_events(&caller, &id, after, query.with_one_more()).await;
    let mut found = found?;
    let next = query.cut(&mut found, |event| [event.seq.to_string()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(|it| body(&id, it)), next.as_deref())))
}

/// The event to start after: `after`, the `cursor` of the previous page, or the last event that a
/// client received.
fn after(query: &ListQuery, headers: &HeaderMap) -> Result<u64, Problem> {
    query.only(&["after"])?;
    let last_seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    if let Some(position) = query.text_position()? {
        if query.filters.get("after").is_some() {
            return Err(wrong("after", "means the same as `cursor`; leave one out"));
        }
        return position.parse().map_err(|_| cursor::refused());
    }
    let (name, text) = match (query.filters.get("after"), last_seen) {
        (_, Some(seen)) => ("Last-Event-ID", seen),
        (Some(after), None) => ("after", after),
        (None, None) => return Ok(0),
    };
    let largest = u64::try_from(i64::MAX).unwrap_or(u64::MAX);
    let number = text.parse().ok().filter(|number| *number <= largest);
    number.ok_or_else(|| wrong(name, "must be the number of an event"))
}

fn body<'a>(id: &'a str, event: &TaskEventRow) -> TaskEventBody<'a> {
    tasks::event_body(id, event.seq, &event.event, event.at)
}

/// A task that a client follows.
struct FollowedTask {
    engine: Engine,
    caller: Caller,
    id: String,
}

impl EventSource for FollowedTask {
    const EVENT: &'static str = TASK_EVENT;
    const WHOLE: &'static str = TASK;

    fn behind(&self, seen: u64) -> BoxFuture<'_, Result<FollowOutcome, EngineError>> {
        let Self { engine, caller, id } = self;
        async move {
            let task = engine.task_wait(caller, id, seen, LOOK).await?;
            if seen < task.seq {
                let events = engine.task_events(caller, id, seen, LARGEST_LIMIT).await?;
                let numbered =
                    |it: &TaskEventRow| NumberedEvent { seq: it.seq, body: json!(body(id, it)) };
                return Ok(FollowOutcome::More(events.iter().map(numbered).collect()));
            }
            Ok(if task.state.is_at_rest() {
                FollowOutcome::AtRest
            } else {
                FollowOutcome::NothingYet
            })
        }
        .boxed()
    }

    fn whole(&self) -> BoxFuture<'_, Result<Value, EngineError>> {
        async move {
            let record = self.engine.task_show(&self.caller, &self.id).await?;
            Ok(json!(tasks::whole(view(&record))))
        }
        .boxed()
    }

    fn is_stopping(&self) -> bool {
        self.engine.is_stopping()
    }
}

/// The end of a stream, as an example.
const STREAM: &str = "event: task_event\nid: 1\ndata: {\"task_id\":\"task-001\",\"seq\":1,…}\n\nevent: final\ndata: {\"task_id\":\"task-001\",\"state\":\"finalized\",…}\n\n";
