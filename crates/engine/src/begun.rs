//! A round that was begun, and the wait for its end.

use std::time::Duration;

use jurat_core::round::{OpenRound, Round};
use tokio::task::{JoinError, JoinHandle};

use crate::{Engine, EngineError, round::LEASE_GRACE_MS};

/// How long after its lease a round that its node left is surely swept up.
const SWEEP_MS: u64 = 15_000;

pub(crate) type Walk = JoinHandle<Result<Option<Round>, EngineError>>;

/// A round that is open and on its way, or that the same request began before.
#[derive(Debug)]
pub struct Begun {
    /// As it was when it was found: open, unless it is repeated.
    pub round: Round,
    /// Whether an earlier request with the same idempotency key began it.
    pub is_repeated: bool,
    /// `None` when somebody else walks it, or nobody any more.
    walk: Option<Walk>,
    engine: Engine,
}

impl Begun {
    pub(crate) fn now(engine: &Engine, open: OpenRound, walk: Walk) -> Self {
        let round = Round { open, closing: None };
        Self { round, is_repeated: false, walk: Some(walk), engine: engine.clone() }
    }

    pub(crate) fn before(engine: &Engine, round: Round) -> Self {
        Self { round, is_repeated: true, walk: None, engine: engine.clone() }
    }

    /// The round when it has ended.
    pub async fn ended(mut self) -> Result<Round, EngineError> {
        if let Some(walk) = self.walk.take() {
            return walked(walk.await);
        }
        let open = &self.round.open;
        let now = self.engine.clock().now();
        let rest = open.deadline_at.millis_since(now) + LEASE_GRACE_MS + SWEEP_MS;
        let within = Duration::from_millis(rest);
        let round = self.engine.wait_for(&open.account, &open.id, within).await?;
        if round.closing.is_some() {
            return Ok(round);
        }
        Err(EngineError::Conflict(format!("the round `{}` has not ended", open.id)))
    }

    /// The round as it is when it ends, or when the time is up.
    pub async fn ended_within(mut self, within: Duration) -> Result<Round, EngineError> {
        let Some(mut walk) = self.walk.take() else {
            let open = &self.round.open;
            return self.engine.wait_for(&open.account, &open.id, within).await;
        };
        match tokio::time::timeout(within, &mut walk).await {
            Ok(result) => walked(result),
            Err(_) => Ok(self.round),
        }
    }
}

fn walked(
    walked: Result<Result<Option<Round>, EngineError>, JoinError>,
) -> Result<Round, EngineError> {
    let round = walked.map_err(|_| EngineError::Bug("a round ended in a panic"))??;
    round.ok_or(EngineError::Bug("a round ended before it began"))
}
