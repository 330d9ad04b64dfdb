//! Replies as an event stream: what each replica does, while it does it.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use axum::response::{
    IntoResponse as _, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::{Stream, stream};
use jurat_core::round::Round;
use jurat_engine::{Begun, EngineError, Progress, RequestMemory};
use jurat_wire::{api::events, problem::Problem};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::consensus::{Shape, reply as reply_body};
use crate::encode::engine_problem;

type Running = Pin<Box<dyn Future<Output = Result<Round, EngineError>> + Send>>;

struct Watch {
    progress: UnboundedReceiver<Progress>,
    running: Running,
    /// How it ended, when that is known before all of its progress is told.
    ended: Option<Result<Round, EngineError>>,
    shape: Shape,
    /// What the request takes while the round may still be run from it.
    _memory: Option<Arc<RequestMemory>>,
}

/// The round is on record; all that happens from now on comes as events.
pub(super) fn reply(
    begun: Begun,
    (progress, memory): (UnboundedReceiver<Progress>, Option<Arc<RequestMemory>>),
    shape: Shape,
) -> Response {
    let running = Box::pin(begun.ended());
    let watch = Watch { progress, running, ended: None, shape, _memory: memory };
    let events = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match next(&mut watch).await {
            Next::Event(event) => Some((Ok(event), Some(watch))),
            Next::Last(Ok(text)) => Some((Ok(event(events::FINAL, text)), None)),
            Next::Last(Err(problem)) => {
                Some((Ok(event(events::ERROR, problem.body().to_string())), None))
            }
        }
    });
    sse(events)
}

enum Next {
    Event(Event),
    Last(Result<String, Problem>),
}

async fn next(watch: &mut Watch) -> Next {
    // A request that is run again begins to tell only while its end is waited for.
    if watch.ended.is_none() {
        tokio::select! {
            biased;
            Some(progress) = watch.progress.recv() => return Next::Event(shown(&progress)),
            ended = &mut watch.running => watch.ended = Some(ended),
        }
    }
    // Whoever tells drops its end of the channel when it ends, so that all of its progress is told
    // before the last event, even what comes in the same moment.
    if let Some(progress) = watch.progress.recv().await {
        return Next::Event(shown(&progress));
    }
    match watch.ended.take() {
        Some(ended) => Next::Last(reply_body(ended, &watch.shape)),
        None => Next::Last(Err(engine_problem(&EngineError::Bug("a stream ended twice")))),
    }
}

fn sse(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn shown(progress: &Progress) -> Event {
    let (name, body) = told(progress);
    event(name, body.to_string())
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
