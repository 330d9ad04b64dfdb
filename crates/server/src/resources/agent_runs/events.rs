//! What happened to a run: as a page with the newest first, or as a stream that follows it to its end.

use axum::{Extension, extract::State, http::HeaderMap};
use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{
    account::caller::Caller,
    agent_run::{AgentRunEventRow, EventsStart},
};
use jurat_engine::{Engine, EngineError};
use jurat_wire::{
    api::{
        agent_runs::{self, RUN, RUN_EVENT},
        kit::page::PageBody,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    request::{
        decode::PathText,
        encode::{self, HandlerResult},
        page::{LARGEST_LIMIT, ListQuery, wrong},
    },
    resources::{
        consensus::wants_stream,
        follow::{self, EventSource, FollowOutcome, LOOK, NumberedEvent},
    },
};

pub(in crate::resources) async fn events(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
    headers: HeaderMap,
) -> HandlerResult {
    query.only(&["after"])?;
    if wants_stream(&headers) {
        let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let after = number("after", seen.or_else(|| query.filters.get("after")))?.unwrap_or(0);
        engine.agent_run_get(&caller, &id).await?;
        return Ok(follow::stream(FollowedAgentRun { engine, caller, id }, after));
    }
    let before = number("cursor", query.cursor.as_deref())?;
    let after = number("after", query.filters.get("after"))?;
    let from = match (before, after) {
        (Some(_), Some(_)) => {
            return Err(wrong("after", "contradicts `cursor`; leave one out").into());
        }
        (None, Some(after)) => EventsStart::After(after),
        (before, None) => EventsStart::Before(before.unwrap_or(LARGEST)),
    };
    let mut found = engine.agent_run_events(&caller, &id, from, query.with_one_more()).await?;
    let next = query.cut(&mut found, |event| event.seq.to_string());
    let next = next.filter(|_| matches!(from, EventsStart::Before(_)));
    Ok(encode::ok(&PageBody::new(found.iter().map(|it| body(&id, it)), next.as_deref())))
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

/// A run that a client follows.
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
