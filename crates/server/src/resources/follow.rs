//! A stream of the events of a task or an agent run, until no more follow.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{Response, sse::Event};
use futures::{future::BoxFuture, stream};
use jurat_engine::EngineError;
use jurat_wire::api::events::ERROR;
use serde_json::Value;

use crate::request::{encode, event_stream};

/// Maximum wait for new events before the source is checked again.
pub(super) const LOOK: Duration = Duration::from_secs(30);

/// An event with its number.
pub(super) struct NumberedEvent {
    pub(super) seq: u64,
    pub(super) body: Value,
}

/// The result of one wait for events.
pub(super) enum FollowOutcome {
    /// A page of the following events.
    More(Vec<NumberedEvent>),
    NothingYet,
    /// No more events follow unless a caller requests more work.
    AtRest,
}

/// A task or an agent run that a client follows.
pub(super) trait EventSource: Send + Sync + 'static {
    /// The name of its events.
    const EVENT: &'static str;
    /// The name of the last event, which holds the whole task or run.
    const WHOLE: &'static str;

    /// The events after the one with the number `seen`; waits a while for them.
    fn behind(&self, seen: u64) -> BoxFuture<'_, Result<FollowOutcome, EngineError>>;

    fn whole(&self) -> BoxFuture<'_, Result<Value, EngineError>>;

    fn is_stopping(&self) -> bool;
}

struct EventFollower<F> {
    followed: F,
    seen: u64,
    /// Events that were read but not sent yet: at most a page.
    known: VecDeque<NumberedEvent>,
}

/// The task or run is known to exist, so every later error is sent as an event.
pub(super) fn stream<F: EventSource>(followed: F, after: u64) -> Response {
    let watch = EventFollower { followed, seen: after, known: VecDeque::new() };
    let events = stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Ok(Some(event)) => Some((Ok::<_, Infallible>(event), Some(watch))),
            Ok(None) => {
                let last = watch.followed.whole().await.map(|whole| named(F::WHOLE, &whole));
                Some((Ok(last.unwrap_or_else(|error| failed(&error))), None))
            }
            Err(error) => Some((Ok(failed(&error)), None)),
        }
    });
    event_stream::reply(events)
}

impl<F: EventSource> EventFollower<F> {
    /// The next event; `None` if all are sent and no more follow.
    async fn next(&mut self) -> Result<Option<Event>, EngineError> {
        loop {
            if let Some(NumberedEvent { seq, body }) = self.known.pop_front() {
                self.seen = seq;
                return Ok(Some(named(F::EVENT, &body).id(seq.to_string())));
            }
            match self.followed.behind(self.seen).await? {
                FollowOutcome::More(events) => self.known = events.into(),
                FollowOutcome::AtRest => return Ok(None),
                FollowOutcome::NothingYet if self.followed.is_stopping() => {
                    return Err(EngineError::ShuttingDown);
                }
                FollowOutcome::NothingYet => {}
            }
        }
    }
}

fn failed(error: &EngineError) -> Event {
    named(ERROR, &encode::engine_problem(error).body())
}

fn named(name: &str, body: &Value) -> Event {
    Event::default().event(name).data(body.to_string())
}
