//! Ends bodies that arrive too slowly with an error, so that they do not hold their slot.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::inbound::InboundLimits;

/// The body arrived too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body arrived too slowly")]
pub(crate) struct TooSlow;

/// A body whose time runs from the moment it is read.
#[derive(Debug)]
pub(crate) struct PacedBody<B> {
    body: B,
    inbound: InboundLimits,
    received: u64,
    started: Option<Instant>,
    /// Most bodies arrive with their head and never need it.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<B> PacedBody<B> {
    pub(crate) fn new(body: B, inbound: InboundLimits) -> Self {
        Self { body, inbound, received: 0, started: None, alarm: None }
    }

    fn poll_alarm(&mut self, started: Instant, context: &mut Context<'_>) -> Poll<()> {
        let due = started + self.inbound.body_allowance(self.received);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        alarm.as_mut().poll(context)
    }
}

impl<B> HttpBody for PacedBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let started = *this.started.get_or_insert_with(Instant::now);
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                this.received += frame.data_ref().map_or(0, |data| data.len() as u64);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => this.poll_alarm(started, context).map(|()| Some(Err(TooSlow.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
