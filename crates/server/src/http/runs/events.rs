//! What happened to a run: as a page with the newest first, or as a stream that follows it to its end.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Extension,
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse as _, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::stream;
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EngineError, EventsFrom, StoredRunEvent};
use jurat_wire::{
    api::{
        events::ERROR,
        page::Page,
        runs::{self, RUN, RUN_EVENT},
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    decode::PathText,
    encode::{self, Answer},
    http::{
        consensus::wants_stream,
        page::{LARGEST_LIMIT, ListQuery, wrong},
    },
};

/// How long one look at the run takes at the most.
const LOOK: Duration = Duration::from_secs(30);

pub(in crate::http) async fn events(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
    headers: HeaderMap,
) -> Answer {
    query.only(&["after"])?;
    if wants_stream(&headers) {
        let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let after = number("after", seen.or_else(|| query.filters.get("after")))?.unwrap_or(0);
        return followed(engine, caller, id, after).await;
    }
    let before = number("cursor", query.cursor.as_deref())?;
    let after = number("after", query.filters.get("after"))?;
    let from = match (before, after) {
        (Some(_), Some(_)) => {
            return Err(wrong("after", "goes the other way than `cursor`; leave one out").into());
        }
        (None, Some(after)) => EventsFrom::After(after),
        (before, None) => EventsFrom::Before(before.unwrap_or(LARGEST)),
    };
    let mut found = engine.task_run_events(&caller, &id, from, query.with_one_more()).await?;
    let next = query.cut(&mut found, |event| event.seq.to_string());
    let next = next.filter(|_| matches!(from, EventsFrom::Before(_)));
    let body = |it: &StoredRunEvent| json!(runs::event(&id, it.seq, &it.event, it.at));
    Ok(encode::ok(&Page::new(found.iter().map(body), next.as_deref())))
}

/// The largest number that an event could have.
const LARGEST: u64 = i64::MAX as u64;

fn number(name: &str, text: Option<&str>) -> Result<Option<u64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number <= LARGEST);
    number.map(Some).ok_or_else(|| wrong(name, "must be the number of an event"))
}

/// A client that follows a run.
struct Watch {
    engine: Engine,
    caller: Caller,
    id: String,
    seen: u64,
    /// Events that are read and not told yet: at most a page.
    known: VecDeque<StoredRunEvent>,
}

/// The run exists, so that all that goes wrong from now on is an event.
async fn followed(engine: Engine, caller: Caller, id: String, after: u64) -> Answer {
    engine.task_run_get(&caller, &id).await?;
    let watch = Watch { engine, caller, id, seen: after, known: VecDeque::new() };
    let events = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Ok(Some(event)) => Some((Ok::<_, Infallible>(event), Some(watch))),
            Ok(None) => Some((Ok(watch.last().await), None)),
            Err(error) => Some((Ok(failed(&error)), None)),
        }
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

impl Watch {
    /// The next event; nothing when the run is over and all is told.
    async fn next(&mut self) -> Result<Option<Event>, EngineError> {
        loop {
            if let Some(event) = self.known.pop_front() {
                self.seen = event.seq;
                let body = json!(runs::event(&self.id, event.seq, &event.event, event.at));
                return Ok(Some(named(RUN_EVENT, &body).id(event.seq.to_string())));
            }
            let (caller, id) = (&self.caller, &self.id);
            let view = self.engine.task_run_wait(caller, id, self.seen, LOOK).await?;
            if self.seen < view.events {
                let from = EventsFrom::After(self.seen);
                let read = self.engine.task_run_events(caller, id, from, LARGEST_LIMIT);
                self.known = read.await?.into();
            } else if view.run.status.is_over() {
                return Ok(None);
            } else if self.engine.is_stopping() {
                return Err(EngineError::ShuttingDown);
            }
        }
    }

    async fn last(&self) -> Event {
        match self.engine.task_run_get(&self.caller, &self.id).await {
            Ok(view) => named(RUN, &json!(runs::body(&view.run))),
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
