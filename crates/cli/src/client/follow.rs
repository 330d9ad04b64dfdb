//! Follows a stream of events to its end, also when the connection breaks or the server starts again.

use std::{future::pending, time::Duration};

use jurat_core::code::ProblemCode;
use tokio::time::timeout;

use super::{ApiCall, ApiClient, ApiReply, ClientError, SseEvent};
use crate::output::Output;

/// How long to wait before a server that is gone is asked again, at first and at the most.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often it is asked before it is given up: about a minute.
const TRIES: u32 = 16;

impl ApiClient {
    /// Shows the events of a stream on the way to the reply, which is the event `last`. What was shown
    /// is not shown again: the server is told which event was the last one seen.
    ///
    /// A server that cannot be reached at first is an error at once.
    pub(crate) async fn follow(
        &self,
        call: ApiCall,
        last: &str,
        out: Output,
        mut show: impl FnMut(&SseEvent),
    ) -> Result<ApiReply, ClientError> {
        let mut seen: Option<String> = None;
        let mut line = ReconnectState::default();
        loop {
            let again = call.clone().with("last-event-id", seen.as_deref());
            let watched = self
                .watch(again, last, |event| {
                    line.note_success();
                    seen = event.id.clone().or_else(|| seen.take());
                    show(event);
                })
                .await;
            if self.is_in_process() || !is_broken(&watched) {
                return watched;
            }
            let Some(pause) = line.next_pause() else { return watched };
            if line.tries == 1 {
                out.note("lost the connection to the server; reconnecting");
            }
            // Nothing is waited for but the time.
            let _elapsed = timeout(pause, pending::<()>()).await;
        }
    }
}

/// Whether another try may find the server well.
fn is_broken(watched: &Result<ApiReply, ClientError>) -> bool {
    match watched {
        Ok(reply) => {
            let code = reply.value["code"].as_str().and_then(|code| code.parse().ok());
            reply.is_problem()
                && matches!(
                    code,
                    Some(
                        ProblemCode::ShuttingDown
                            | ProblemCode::Overloaded
                            | ProblemCode::StoreUnavailable
                    )
                )
        }
        // A stream that ends before its end, or what a proxy says of a server that is gone.
        Err(ClientError::Call { .. } | ClientError::Foreign { .. }) => true,
        Err(ClientError::InProcess(_) | ClientError::Key | ClientError::Request(_)) => false,
    }
}

/// How the connection is.
#[derive(Debug, Default)]
struct ReconnectState {
    /// Whether anything ever came.
    has_connected: bool,
    /// How often it was tried since.
    tries: u32,
}

impl ReconnectState {
    fn note_success(&mut self) {
        *self = Self { has_connected: true, tries: 0 };
    }

    /// How long to wait before the next try; nothing when there is none.
    fn next_pause(&mut self) -> Option<Duration> {
        if !self.has_connected || TRIES <= self.tries {
            return None;
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.tries.min(8));
        self.tries += 1;
        Some(doubled.min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_went_away_is_waited_for() {
        assert_eq!(ReconnectState::default().next_pause(), None);
        let mut line = ReconnectState::default();
        line.note_success();
        let pauses: Vec<Duration> = std::iter::from_fn(|| line.next_pause()).collect();
        assert_eq!(pauses[..3], [250, 500, 1_000].map(Duration::from_millis));
        let all: Duration = pauses.iter().sum();
        assert!((50..80).contains(&all.as_secs()), "{all:?}");
        line.note_success();
        assert_eq!(line.next_pause(), Some(FIRST_PAUSE));
    }
}
