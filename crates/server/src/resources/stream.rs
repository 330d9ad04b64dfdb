//! Replies as an event stream: the progress of each replica as it happens.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use axum::response::{Response, sse::Event};
use futures::{StreamExt as _, stream};
use jurat_core::round::Round;
use jurat_engine::{EngineError, RequestMemory, RoundHandle, RoundProgress};
use jurat_wire::{api::events, problem::Problem};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::consensus::{ReplyVersion, peer_reply, reply as reply_body};
use crate::request::{
    encode::{self, engine_problem},
    event_stream,
};

/// The last line of a stream of data.
const DONE: &str = "[DONE]";

type RoundFuture = Pin<Box<dyn Future<Output = Result<Round, EngineError>> + Send>>;

struct RoundStream {
    progress: UnboundedReceiver<RoundProgress>,
    running: RoundFuture,
    /// The result of the round, if it arrives before all progress is sent.
    ended: Option<Result<Round, EngineError>>,
    shape: ReplyVersion,
    /// The memory of the request, which counts while the round may still be run from it.
    _memory: Option<Arc<RequestMemory>>,
}

/// The round is recorded; everything from here on is sent as events.
pub(super) fn reply(
    begun: RoundHandle,
    (progress, memory): (UnboundedReceiver<RoundProgress>, Option<Arc<RequestMemory>>),
    shape: ReplyVersion,
) -> Response {
    let running = Box::pin(begun.wait());
    let watch = RoundStream { progress, running, ended: None, shape, _memory: memory };
    let events = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match next(&mut watch).await {
            StreamItem::Event(event) => Some((Ok::<_, Infallible>(event), Some(watch))),
            StreamItem::Last(Ok(text)) => Some((Ok(event(events::FINAL, text)), None)),
            StreamItem::Last(Err(problem)) => {
                Some((Ok(event(events::ERROR, problem.body().to_string())), None))
            }
        }
    });
    event_stream::reply(events)
}

/// The reply of a round as lines of data. Until the round ends, comments keep the connection open.
pub(super) fn lines(
    begun: RoundHandle,
    memory: Option<Arc<RequestMemory>>,
    shape: ReplyVersion,
) -> Response {
    let data = stream::once(async move {
        let ended = begun.wait().await;
        drop(memory);
        let lines = match shape {
            ReplyVersion::Peer(form) => peer_reply(ended, &form, |reply| form.chunks(reply)),
            ReplyVersion::V2(_) | ReplyVersion::V3 => Ok(Vec::new()),
        };
        let lines = lines.unwrap_or_else(|problem| vec![encode::peer_body(&problem.body())]);
        let lines = lines.iter().map(Value::to_string).chain([DONE.to_owned()]);
        stream::iter(
            lines.map(|line| Ok::<_, Infallible>(Event::default().data(line))).collect::<Vec<_>>(),
        )
    });
    event_stream::reply(data.flatten())
}

enum StreamItem {
    Event(Event),
    Last(Result<String, Problem>),
}

async fn next(watch: &mut RoundStream) -> StreamItem {
    // A request that is run again starts to report progress only while its end is awaited.
    if watch.ended.is_none() {
        tokio::select! {
            biased;
            Some(progress) = watch.progress.recv() => return StreamItem::Event(shown(&progress)),
            ended = &mut watch.running => watch.ended = Some(ended),
        }
    }
    // The sender of progress drops its end of the channel when it ends, so all progress is sent
    // before the last event, even if both arrive at the same time.
    if let Some(progress) = watch.progress.recv().await {
        return StreamItem::Event(shown(&progress));
    }
    match watch.ended.take() {
        Some(ended) => StreamItem::Last(reply_body(ended, &watch.shape)),
        None => StreamItem::Last(Err(engine_problem(&EngineError::Bug("a stream ended twice")))),
    }
}

fn shown(progress: &RoundProgress) -> Event {
    let (name, body) = progress_event(progress);
    event(name, body.to_string())
}

fn progress_event(progress: &RoundProgress) -> (&'static str, Value) {
    match progress {
        RoundProgress::ReplicaStarted { round, index, seat } => {
            (events::REPLICA_STARTED, events::replica_started(round, *index, seat))
        }
        RoundProgress::ReplicaDone { round, kind, replica } => {
            (events::REPLICA_DONE, events::replica_done(round, *kind, replica))
        }
        RoundProgress::Decided { round, closing } => {
            (events::DECIDED, events::decided(round, closing))
        }
    }
}

fn event(name: &str, body: String) -> Event {
    Event::default().event(name).data(body)
}
