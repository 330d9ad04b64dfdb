//! Replies as an event stream: what each replica does, while it does it.

use std::{convert::Infallible, pin::Pin};

use axum::response::{
    IntoResponse as _, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::{Stream, StreamExt as _, stream};
use jurat_core::{caller::Caller, job::Job, round::Round};
use jurat_engine::{Engine, EngineError, Progress, Watcher};
use jurat_wire::{api::events, problem::Problem};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::consensus::{Shape, reply as reply_body};
use crate::encode;

type Running = Pin<Box<dyn Future<Output = Result<Round, EngineError>> + Send>>;

struct Watch {
    progress: UnboundedReceiver<Progress>,
    running: Running,
    shape: Shape,
}

/// What happens before anyone is asked decides the status; all else comes as events.
pub(super) async fn reply(engine: Engine, caller: Caller, job: Job, shape: Shape) -> Response {
    let (watcher, progress) = Watcher::new();
    let running = Box::pin(async move { engine.round_run(&caller, job, watcher).await });
    let mut watch = Watch { progress, running, shape };
    let first = match next(&mut watch).await {
        Next::Event(event) => event,
        Next::Last(Ok(text)) => return sse(stream::iter([Ok(event(events::FINAL, text))])),
        Next::Last(Err(problem)) => return encode::problem(&problem),
    };
    let rest = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match next(&mut watch).await {
            Next::Event(event) => Some((Ok(event), Some(watch))),
            Next::Last(Ok(text)) => Some((Ok(event(events::FINAL, text)), None)),
            Next::Last(Err(problem)) => {
                Some((Ok(event(events::ERROR, problem.body().to_string())), None))
            }
        }
    });
    sse(stream::iter([Ok(first)]).chain(rest))
}

enum Next {
    Event(Event),
    Last(Result<String, Problem>),
}

async fn next(watch: &mut Watch) -> Next {
    // Progress first: all of it is told before the round returns.
    tokio::select! {
        biased;
        Some(progress) = watch.progress.recv() => {
            let (name, body) = told(&progress);
            Next::Event(event(name, body.to_string()))
        }
        result = &mut watch.running => Next::Last(reply_body(result, watch.shape)),
    }
}

fn sse(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn told(progress: &Progress) -> (&'static str, Value) {
    match progress {
        Progress::ReplicaStarted { round, index, seat } => {
            (events::REPLICA_STARTED, events::replica_started(round, *index, seat))
        }
        Progress::ReplicaDone { round, kind, replica } => {
            (events::REPLICA_DONE, events::replica_done(round, *kind, replica))
        }
        Progress::Decided { round, closing } => (events::DECIDED, events::decided(round, closing)),
    }
}

fn event(name: &str, body: String) -> Event {
    Event::default().event(name).data(body)
}
