//! What happened to a task: as a page, or as a stream that follows it to its end.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Extension,
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::stream;
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EngineError, TaskEvent};
use jurat_wire::{
    api::{
        events::ERROR,
        page::Page,
        tasks::{self, EventBody, TASK, TASK_EVENT},
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::view;
use crate::{
    decode::PathText,
    encode::{self, Answer},
    http::{
        consensus::wants_stream,
        page::{LARGEST_LIMIT, ListQuery, wrong},
    },
};

/// How long one look at the task takes at the most.
const LOOK: Duration = Duration::from_secs(30);

pub(in crate::http) async fn events(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
    headers: HeaderMap,
) -> Answer {
    let after = after(&query, &headers)?;
    if wants_stream(&headers) {
        return followed(engine, caller, id, after).await;
    }
    let found = engine.task_events(&caller, &id, after, query.with_one_more()).await;
    let mut found = found?;
    let next = query.cut(&mut found, |event| event.seq.to_string());
    Ok(encode::ok(&Page::new(found.iter().map(|it| body(&id, it)), next.as_deref())))
}

/// Behind which event to start: `after`, or `cursor` of the page before, or what a client saw last.
fn after(query: &ListQuery, headers: &HeaderMap) -> Result<u64, Problem> {
    query.only(&["after"])?;
    let last_seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let (name, text) = match (&query.cursor, query.filters.get("after"), last_seen) {
        (Some(_), Some(_), _) => {
            return Err(wrong("after", "means the same as `cursor`; leave one out"));
        }
        (Some(cursor), None, _) => ("cursor", cursor.as_str()),
        (None, _, Some(seen)) => ("Last-Event-ID", seen),
        (None, Some(after), None) => ("after", after),
        (None, None, None) => return Ok(0),
    };
    let largest = u64::try_from(i64::MAX).unwrap_or(u64::MAX);
    let number = text.parse().ok().filter(|number| *number <= largest);
    number.ok_or_else(|| wrong(name, "must be the number of an event"))
}

fn body<'a>(id: &'a str, event: &TaskEvent) -> EventBody<'a> {
    tasks::event_body(id, event.seq, &event.event, event.at)
}

/// A client that follows a task.
struct Watch {
    engine: Engine,
    caller: Caller,
    id: String,
    seen: u64,
    /// Events that are read and not told yet: at most a page.
    known: VecDeque<TaskEvent>,
}

/// The task exists, so that all that goes wrong from now on is an event.
async fn followed(engine: Engine, caller: Caller, id: String, after: u64) -> Answer {
    engine.task_get(&caller, &id).await?;
    let watch = Watch { engine, caller, id, seen: after, known: VecDeque::new() };
    let events = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Ok(Some(event)) => Some((Ok::<_, Infallible>(event), Some(watch))),
            Ok(None) => Some((Ok(watch.last().await), None)),
            Err(error) => Some((Ok(failed(&error)), None)),
        }
    });
    Ok(sse(Sse::new(events)))
}

fn sse(
    events: Sse<impl stream::Stream<Item = Result<Event, Infallible>> + Send + 'static>,
) -> Response {
    events.keep_alive(KeepAlive::default()).into_response()
}

impl Watch {
    /// The next event; nothing when all is told and no more happens unless somebody asks for it.
    async fn next(&mut self) -> Result<Option<Event>, EngineError> {
        loop {
            if let Some(event) = self.known.pop_front() {
                self.seen = event.seq;
                let text = json!(body(&self.id, &event));
                return Ok(Some(named(TASK_EVENT, &text).id(event.seq.to_string())));
            }
            let (caller, id) = (&self.caller, &self.id);
            let task = self.engine.task_wait(caller, id, self.seen, LOOK).await?;
            if self.seen < task.seq {
                let read = self.engine.task_events(caller, id, self.seen, LARGEST_LIMIT);
                self.known = read.await?.into();
            } else if task.state.is_at_rest() {
                return Ok(None);
            } else if self.engine.is_stopping() {
                return Err(EngineError::ShuttingDown);
            }
        }
    }

    async fn last(&self) -> Event {
        match self.engine.task_get(&self.caller, &self.id).await {
            Ok(record) => named(TASK, &json!(tasks::whole(view(&record)))),
            Err(error) => failed(&error),
        }
    }
}

fn failed(error: &EngineError) -> Event {
    named(ERROR, &encode::engine_problem(error).body())
}

fn named(name: &str, body: &Value) -> Event {
    Event::default().event(name).data(body.to_string())
}
