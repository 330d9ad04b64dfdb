//! Waits for a lock that another Jurat process holds briefly.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::state::StateError;

/// Maximum wait: most commands end sooner, unless they run a round.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Retries until the attempt succeeds or fails for a lasting reason, or the wait is too long.
/// Announces the wait once.
pub(crate) async fn retry_while_locked<T>(
    passes: fn(&StateError) -> bool,
    say: impl FnOnce(&str),
    mut attempt: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begun = ticks.tick().await;
    let mut say = Some(say);
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !error.downcast_ref::<StateError>().is_some_and(passes) {
            return Err(error);
        }
        if let Some(say) = say.take() {
            say("waiting for another jurat process that is using the state folder");
        }
        if LONGEST_WAIT <= ticks.tick().await.duration_since(begun) {
            return Err(error);
        }
    }
}
