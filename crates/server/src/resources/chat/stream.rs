//! A completion as an event stream: the role immediately, the answer after the decision.

use std::{convert::Infallible, sync::Arc};

use axum::response::{Response, sse::Event};
use futures::{StreamExt as _, stream};
use jurat_core::round::Round;
use jurat_engine::{EngineError, RequestMemory, RoundHandle};
use jurat_wire::{
    api::openai::{
        error::ChatErrorReply,
        reply::{ChatChunk, ChatHead},
        request::ChatDelivery,
    },
    problem::{Problem, ProblemBody},
};
use serde_json::json;

use super::{answered, of_round};
use crate::request::event_stream;

const DONE: &str = "[DONE]";

/// The round is recorded; everything from here on is sent as events. Comments keep the connection
/// open while replicas work.
pub(super) fn reply(
    begun: RoundHandle,
    memory: Option<Arc<RequestMemory>>,
    (head, delivery): (ChatHead, ChatDelivery),
) -> Response {
    let id = begun.round.open.id.clone();
    let first = chunk(&head.role_chunk());
    let rest = async move {
        let events = rest(begun.wait().await, &head, delivery);
        drop(memory);
        events
    };
    let events = stream::iter([first]).chain(stream::once(rest).flat_map(stream::iter));
    of_round(event_stream::reply(events.map(Ok::<_, Infallible>)), &id)
}

/// The events after the role. A stream that ends with an error does not claim to be complete.
fn rest(ended: Result<Round, EngineError>, head: &ChatHead, delivery: ChatDelivery) -> Vec<Event> {
    let written = answered(ended, |reply, end| {
        let answer = chunk(&head.answer_chunk(&reply, end.ending));
        let mut events = vec![answer, chunk(&head.last_chunk(reply))];
        if delivery == ChatDelivery::StreamWithUsage {
            events.push(chunk(&head.usage_chunk(end.usage)));
        }
        events.push(Event::default().data(DONE));
        events
    });
    written.unwrap_or_else(|problem| vec![error(&problem)])
}

/// The members are sorted by name, as in all replies.
fn chunk(chunk: &ChatChunk<'_>) -> Event {
    Event::default().data(json!(chunk).to_string())
}

fn error(problem: &Problem) -> Event {
    let error = ProblemBody::read(&problem.body()).map(ChatErrorReply::from);
    Event::default().data(json!(error).to_string())
}
