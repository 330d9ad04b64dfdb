//! The events of an agent run: a page, newest first, or a stream that follows it to its end.

use axum::{Extension, extract::State, http::HeaderMap};
use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{
    account::caller::{Caller, Scope},
    agent_run::{AgentRunEventRow, EventsStart},
    code::ProblemCode,
};
use jurat_engine::{Engine, EngineError};
use jurat_wire::{
    api::{
        agent_runs::{self, AgentRunBody, AgentRunEventBody, RUN, RUN_EVENT},
        events::ERROR,
        kit::page::PageBody,
    },
    problem::{Problem, ProblemBody},
};
use serde_json::{Value, json};

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
        AGENT_RUNS,
        agent_runs::{AGENT_RUN, examples},
        consensus::wants_stream,
        follow::{self, EventSource, FollowOutcome, LOOK, NumberedEvent},
    },
};

pub(super) fn events_operation() -> Operation {
    let text = "The events of a run, newest first; with `after`, oldest first. `Accept: text/event-stream` follows the run to its end: a `run_event` for each event, and `run` as the last.";
    let example = json!({
        "items": [{
            "id": 1, "run_id": "bridges-1", "event_type": "RUN_CREATED",
            "payload": { "agents": 2 }, "created_at": examples::AT,
        }],
        "next_cursor": null,
    });
    let stream = "event: run_event\ndata: {\"id\":1,\"run_id\":\"bridges-1\",\"event_type\":\"RUN_CREATED\",\"payload\":{\"agents\":2},\"created_at\":\"2026-09-21T14:13:20Z\"}\nid: 1\n\n";
    Operation::get("/v1/runs/{id}/events", "task_run_events", events)
        .tag(AGENT_RUNS)
        .summary("List or follow events of a run")
        .text(text)
        .in_path([AGENT_RUN])
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_run_events())
        .answers::<PageBody<'_, AgentRunEventBody<'_>>>(200, "A page of events.", example)
        .or_streams(
            &[
                (RUN_EVENT, EventDescription::of::<AgentRunEventBody<'_>>()),
                (RUN, EventDescription::of::<AgentRunBody<'_>>()),
                (ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            stream,
        )
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
        .tool(
            Tool::reads(
                "list_run_events",
                "List the events of a run",
                "Lists the events of a run, newest first, one page at a time.",
            )
            .path("run_id", "The id of a run.")
            .query(&["before", "limit", "cursor"])
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
    query.only(&["after", "before"])?;
    if wants_stream(&headers) {
        let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let after = number("after", seen.or_else(|| query.filters.get("after")))?.unwrap_or(0);
        engine.agent_run_get(&caller, &id).await?;
        return Ok(follow::stream(FollowedAgentRun { engine, caller, id }, after));
    }
    let from = start(&query)?;
    let mut found = engine.agent_run_events(&caller, &id, from, query.with_one_more()).await?;
    let next = query.cut(&mut found, |event| [event.seq.to_string()]);
    let next = next.filter(|_| matches!(from, EventsStart::Before(_)));
    Ok(encode::ok(&PageBody::new(found.iter().map(|it| body(&id, it)), next.as_deref())))
}

/// The start of a page: a cursor or the event before which it begins, newest first; or the event
/// after which it begins, oldest first.
fn start(query: &ListQuery) -> Result<EventsStart, Problem> {
    let after = number("after", query.filters.get("after"))?;
    let before = number("before", query.filters.get("before"))?;
    let seen = query.text_position()?.map(|text| text.parse().map_err(|_| cursor::refused()));
    match (seen.transpose()?, before, after) {
        (None, None, Some(after)) => Ok(EventsStart::After(after)),
        (None, Some(before), None) | (Some(before), None, None) => Ok(EventsStart::Before(before)),
        (None, None, None) => Ok(EventsStart::Before(LARGEST)),
        (Some(_), Some(_), _) => Err(wrong("before", "contradicts `cursor`; leave one out")),
        (Some(_), None, Some(_)) => Err(wrong("after", "contradicts `cursor`; leave one out")),
        (None, Some(_), Some(_)) => Err(wrong("after", "contradicts `before`; leave one out")),
    }
}

/// The largest number that an event could have.
const LARGEST: u64 = i64::MAX as u64;

fn number(name: &str, text: Option<&str>) -> Result<Option<u64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number <= LARGEST);
    number.map(Some).ok_or_else(|| wrong(name, "must be the number of an event"))
}

fn body(id: &str, it: &AgentRunEventRow) -> Value {
    json!(agent_runs::event(id, it.seq, &it.event, it.at))
}

/// An agent run that a client follows.
struct FollowedAgentRun {
    engine: Engine,
    caller: Caller,
    id: String,
}

impl EventSource for FollowedAgentRun {
    const EVENT: &'static str = RUN_EVENT;
    const WHOLE: &'static str = RUN;

    fn behind(&self, seen: u64) -> BoxFuture<'_, Result<FollowOutcome, EngineError>> {
        let Self { engine, caller, id } = self;
        async move {
            let view = engine.agent_run_wait(caller, id, seen, LOOK).await?;
            if seen < view.events {
                let from = EventsStart::After(seen);
                let events = engine.agent_run_events(caller, id, from, LARGEST_LIMIT).await?;
                let numbered =
                    |it: &AgentRunEventRow| NumberedEvent { seq: it.seq, body: body(id, it) };
                return Ok(FollowOutcome::More(events.iter().map(numbered).collect()));
            }
            Ok(if view.run.status.is_over() {
                FollowOutcome::AtRest
            } else {
                FollowOutcome::NothingYet
            })
        }
        .boxed()
    }

    fn whole(&self) -> BoxFuture<'_, Result<Value, EngineError>> {
        async move {
            let view = self.engine.agent_run_get(&self.caller, &self.id).await?;
            Ok(json!(agent_runs::body(&view.run)))
        }
        .boxed()
    }

    fn is_stopping(&self) -> bool {
        self.engine.is_stopping()
    }
}
