//! A handle to a started round, and the wait for its end.

use std::time::Duration;

use jurat_core::round::{OpenRound, Round};
use tokio::task::{JoinError, JoinHandle};

use super::walk::{LEASE_GRACE_MS, RoundStart, is_abandoned};
use crate::{Engine, EngineError};

/// How long after its lease an abandoned round is certainly closed.
const SWEEP_MS: u64 = 15_000;

pub(crate) type WalkHandle = JoinHandle<Result<Option<Round>, EngineError>>;

/// A round in progress, or one that the same request started before.
#[derive(Debug)]
pub struct RoundHandle {
    /// As it was when it was found: open, unless it is repeated.
    pub round: Round,
    /// Whether an earlier request with the same idempotency key started it.
    pub is_repeated: bool,
    /// `None` if another node walks it, or no node any more.
    walk: Option<WalkHandle>,
    /// The request, to run it again if the node that walks the round stops.
    retry: Option<Box<RoundStart>>,
    engine: Engine,
}

impl RoundHandle {
    pub(crate) fn walking(engine: &Engine, open: OpenRound, walk: WalkHandle) -> Self {
        let round = Round { open, closing: None };
        let (walk, engine) = (Some(walk), engine.clone());
        Self { round, is_repeated: false, walk, retry: None, engine }
    }

    pub(crate) fn existing(engine: &Engine, round: Round, again: Option<RoundStart>) -> Self {
        let (retry, engine) = (again.map(Box::new), engine.clone());
        Self { round, is_repeated: true, walk: None, retry, engine }
    }

    /// Waits for the end of the round.
    pub async fn wait(self) -> Result<Round, EngineError> {
        Ok(self.wait_or_retry().await?.0)
    }

    /// Waits for the end of the round, and returns whether an earlier request started it.
    pub async fn wait_or_retry(mut self) -> Result<(Round, bool), EngineError> {
        loop {
            if let Some(walk) = self.walk.take() {
                return Ok((finished(walk.await)?, false));
            }
            let open = &self.round.open;
            let now = self.engine.clock().now();
            let rest = open.deadline_at.millis_since(now) + LEASE_GRACE_MS + SWEEP_MS;
            let within = Duration::from_millis(rest);
            let round = self.engine.wait_for_round(&open.account, &open.id, within).await?;
            match self.retry_if_abandoned(&round).await? {
                Some(again) => self = again,
                None if round.closing.is_some() => return Ok((round, true)),
                None => {
                    let problem = format!("the round `{}` has not ended", round.open.id);
                    return Err(EngineError::Conflict(problem));
                }
            }
        }
    }

    /// The round when it ends, or when the time is up.
    pub async fn wait_within(mut self, within: Duration) -> Result<Round, EngineError> {
        let Some(mut walk) = self.walk.take() else {
            let open = &self.round.open;
            let round = self.engine.wait_for_round(&open.account, &open.id, within).await?;
            // A round that is run again has barely started when the time is up.
            return Ok(self.retry_if_abandoned(&round).await?.map_or(round, |again| again.round));
        };
        match tokio::time::timeout(within, &mut walk).await {
            Ok(result) => finished(result),
            Err(_) => Ok(self.round),
        }
    }

    /// Runs the request again if the node of the round stopped; `None` if it did not.
    async fn retry_if_abandoned(&mut self, round: &Round) -> Result<Option<Self>, EngineError> {
        match self.retry.take() {
            // Boxed: it is rare, and would make every wait for a round as large as a round.
            Some(start) if is_abandoned(round) => {
                Box::pin(self.engine.begin_round(*start)).await.map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }
}

fn finished(
    result: Result<Result<Option<Round>, EngineError>, JoinError>,
) -> Result<Round, EngineError> {
    let round = result.map_err(|_| EngineError::Bug("a round panicked"))??;
    round.ok_or(EngineError::Bug("a round ended before it started"))
}
