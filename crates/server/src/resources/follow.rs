//! A stream of what happens to a task or a run, until nothing more does.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse as _, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::{future::BoxFuture, stream};
use jurat_engine::EngineError;
use jurat_wire::api::events::ERROR;
use serde_json::Value;

use crate::request::encode;

/// How long one look takes at the most.
pub(super) const LOOK: Duration = Duration::from_secs(30);

/// An event with its number.
pub(super) struct NumberedEvent {
    pub(super) seq: u64,
    pub(super) body: Value,
}

/// What came of a look.
pub(super) enum FollowOutcome {
    /// A page of the events that follow.
    More(Vec<NumberedEvent>),
    NothingYet,
    /// Nothing more happens, unless somebody asks for it.
    AtRest,
}

/// What somebody follows.
pub(super) trait EventSource: Send + Sync + 'static {
    /// What its events are called.
    const EVENT: &'static str;
    /// What the whole is called, which is told last.
    const WHOLE: &'static str;

    /// The events behind this one; waits for them for a while.
    fn behind(&self, seen: u64) -> BoxFuture<'_, Result<FollowOutcome, EngineError>>;

    fn whole(&self) -> BoxFuture<'_, Result<Value, EngineError>>;

    fn is_stopping(&self) -> bool;
}

struct EventFollower<F> {
    followed: F,
    seen: u64,
    /// Events that are read and not told yet: at most a page.
    known: VecDeque<NumberedEvent>,
}

/// What is followed exists, so that all that goes wrong from now on is an event.
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
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

impl<F: EventSource> EventFollower<F> {
    /// The next event; nothing when all is told and nothing more happens.
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
