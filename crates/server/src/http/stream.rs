//! Replies as an event stream: what each replica does, while it does it.

use std::{convert::Infallible, pin::Pin};

use axum::response::{
    IntoResponse as _, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::{Stream, stream};
use jurat_core::{caller::Caller, job::Job, round::Round};
use jurat_engine::{Engine, EngineError, Progress, Watcher};
use jurat_wire::api::events;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::consensus::{Shape, reply as reply_body};

type Running = Pin<Box<dyn Future<Output = Result<Round, EngineError>> + Send>>;

struct Watch {
    progress: UnboundedReceiver<Progress>,
    running: Running,
    shape: Shape,
}

pub(super) fn reply(engine: Engine, caller: Caller, job: Job, shape: Shape) -> Response {
    let (watcher, progress) = Watcher::new();
    let running = Box::pin(async move { engine.round_run(&caller, job, watcher).await });
    let watch = Watch { progress, running, shape };
    Sse::new(events_of(watch)).keep_alive(KeepAlive::default()).into_response()
}

fn events_of(watch: Watch) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        // Progress first: all of it is told before the round returns.
        tokio::select! {
            biased;
            Some(progress) = watch.progress.recv() => {
                let (name, body) = told(&progress);
                Some((Ok(event(name, body.to_string())), Some(watch)))
            }
            result = &mut watch.running => {
                let (name, body) = match reply_body(result, watch.shape) {
                    Ok(text) => (events::FINAL, text),
                    Err(problem) => (events::ERROR, problem.body().to_string()),
                };
                Some((Ok(event(name, body)), None))
            }
        }
    })
}

fn told(progress: &Progress) -> (&'static str, Value) {
    match progress {
        Progress::ReplicaStarted { round, index, seat } => {
            (events::REPLICA_STARTED, events::replica_started(round, *index, seat))
        }
        Progress::ReplicaDone { round, kind, replica } => {
            (events::REPLICA_DONE, events::replica_done(round, *kind, replica))
        }
        Progress::Decided { round, consensus } => {
            (events::DECIDED, events::decided(round, consensus))
        }
    }
}

fn event(name: &str, body: String) -> Event {
    Event::default().event(name).data(body)
}
