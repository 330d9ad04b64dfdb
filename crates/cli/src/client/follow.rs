//! Follows a stream of events to its end, even if the connection breaks or the server restarts.

use std::{future::pending, time::Duration};

use jurat_core::code::ProblemCode;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{ApiClient, Call, ClientError, Reply, SseEvent};
use crate::output::Output;

/// The first and the longest pause before the next try to reach the server.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of tries, which take about a minute.
const TRIES: u32 = 16;

impl ApiClient {
    /// Shows the events of a stream until the event `last`, which is the reply. No event is shown
    /// twice: a reconnect sends the id of the last event seen.
    ///
    /// If the first connection fails, there is no second try.
    pub(crate) async fn follow<R: DeserializeOwned>(
        &self,
        call: Call<R>,
        last: &str,
        out: Output,
        mut show: impl FnMut(&SseEvent) + Send,
    ) -> Result<Reply<R>, ClientError> {
        let mut seen: Option<String> = None;
        let mut line = ReconnectState::default();
        loop {
            let again = call.clone().header("last-event-id", seen.as_deref());
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
            let _elapsed = timeout(pause, pending::<()>()).await;
        }
    }
}

/// Whether the connection broke and another try may succeed.
fn is_broken<R>(watched: &Result<R, ClientError>) -> bool {
    match watched {
        Err(ClientError::Refused(refusal)) => matches!(
            refusal.code(),
            Some(
                ProblemCode::ShuttingDown | ProblemCode::Overloaded | ProblemCode::StoreUnavailable
            )
        ),
        // A stream that ends too early, or a proxy's page for a server that is gone.
        Err(ClientError::Transport(_) | ClientError::Foreign { .. }) => true,
        Ok(_)
        | Err(ClientError::Unreadable { .. } | ClientError::Key | ClientError::Request(_)) => false,
    }
}

/// The state of the connection.
#[derive(Debug, Default)]
struct ReconnectState {
    /// Whether any event has arrived yet.
    has_connected: bool,
    /// Number of tries since the last event.
    tries: u32,
}

impl ReconnectState {
    fn note_success(&mut self) {
        *self = Self { has_connected: true, tries: 0 };
    }

    /// The pause before the next try; `None` after the last try, or if no event has arrived yet.
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
