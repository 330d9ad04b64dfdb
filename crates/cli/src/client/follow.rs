//! Follows a stream of events to its end, even if the connection breaks or the server restarts.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use jurat_core::code::ProblemCode;
use jurat_engine::pause;
use serde::de::DeserializeOwned;

use super::{ApiClient, Call, ClientError, Reply, SseEvent};
use crate::output::Output;

/// The pauses between the tries to reach the server again, about a minute in total.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(250))
    .with_max_delay(Duration::from_secs(5))
    .with_max_times(16);

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
        // Without an event, there was no connection that broke.
        let mut pauses: Option<ExponentialBackoff> = None;
        let mut has_noted = false;
        loop {
            let again = call.clone().header("last-event-id", seen.as_deref());
            let watched = self
                .watch(again, last, |event| {
                    (pauses, has_noted) = (Some(PAUSES.build()), false);
                    seen = event.id.clone().or_else(|| seen.take());
                    show(event);
                })
                .await;
            if self.is_in_process() || !is_broken(&watched) {
                return watched;
            }
            let Some(span) = pauses.as_mut().and_then(Iterator::next) else { return watched };
            if !has_noted {
                out.note("lost the connection to the server; reconnecting");
            }
            has_noted = true;
            pause(span).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_went_away_is_waited_for_about_a_minute() {
        let pauses: Vec<Duration> = PAUSES.build().collect();
        assert_eq!(pauses[..3], [250, 500, 1_000].map(Duration::from_millis));
        let all: Duration = pauses.iter().sum();
        assert!((50..80).contains(&all.as_secs()), "{all:?}");
    }
}
