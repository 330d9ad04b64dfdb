//! Works on runs: takes as many steps as there are free places, and never waits for a whole batch.

use std::time::Duration;

use futures::{StreamExt as _, stream::FuturesUnordered};
use jurat_store::{Behalf, StepTake, Written};
use tokio::task::{JoinError, JoinHandle};

use super::step::Held;
use crate::{Engine, EngineError};

/// How long to wait for a store that does not answer.
const TROUBLE: Duration = Duration::from_secs(1);

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// How runs call it; empty for the name of the node.
    pub name: String,
    /// Steps at a time.
    pub at_once: usize,
    /// How seldom it looks for steps that others bring.
    pub poll: Duration,
    pub lease_ms: u64,
    pub until: WorkUntil,
}

impl WorkerSettings {
    /// Those of a node that works on runs beside everything else.
    pub fn of_a_node(at_once: usize) -> Self {
        Self {
            name: String::new(),
            at_once,
            poll: Duration::from_secs(1),
            lease_ms: 30_000,
            until: WorkUntil::Stopped,
        }
    }
}

/// When a worker ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkUntil {
    Stopped,
    /// There is no step that could be done, now or later.
    Idle,
}

/// Each goes on by itself: one that stood still in the middle of a write while others are taken
/// would keep those who take them waiting for it.
type Steps = FuturesUnordered<JoinHandle<()>>;

impl Engine {
    /// Works on runs of all accounts until this node stops, and then gives back what it holds.
    pub async fn work_on_runs(&self, settings: &WorkerSettings) -> Result<(), EngineError> {
        let mut steps: Steps = FuturesUnordered::new();
        while !self.is_stopping() {
            let looked = self.take_steps(settings, &mut steps).await;
            let wait = match looked {
                Ok(()) => settings.poll,
                Err(error) => {
                    tracing::warn!(error = %error, "could not look for steps of agent runs");
                    TROUBLE
                }
            };
            if settings.until == WorkUntil::Idle && steps.is_empty() && self.is_run_idle().await? {
                break;
            }
            let turn = async {
                tokio::select! {
                    () = self.stopping() => {}
                    Some(ended) = steps.next(), if !steps.is_empty() => noted(ended),
                    () = self.inner.runs.work.notified() => {}
                }
            };
            let _elapsed = tokio::time::timeout(wait, turn).await;
        }
        while let Some(ended) = steps.next().await {
            noted(ended);
        }
        Ok(())
    }

    /// Works on runs in the background until this node stops.
    pub fn work_on_runs_here(&self, mut settings: WorkerSettings) {
        if settings.name.is_empty() {
            settings.name = self.inner.node.to_string();
        }
        let engine = self.clone();
        let _working = self.inner.background.spawn(async move {
            if let Err(error) = engine.work_on_runs(&settings).await {
                tracing::error!(error = %error, "run worker stopped");
            }
        });
    }

    async fn is_run_idle(&self) -> Result<bool, EngineError> {
        Ok(self.inner.store.tasks().task_run_is_idle(&Behalf::Platform).await?)
    }

    async fn take_steps(
        &self,
        settings: &WorkerSettings,
        steps: &mut Steps,
    ) -> Result<(), EngineError> {
        let free = settings.at_once.saturating_sub(steps.len());
        if free == 0 || self.is_run_idle().await? {
            return Ok(());
        }
        let now = self.inner.clock.now();
        let take = StepTake {
            worker: settings.name.clone(),
            token: format!("{:032x}", self.inner.clock.bits()),
            until: now.plus_millis(settings.lease_ms),
            now,
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            per_executor: self.inner.limits.steps_per_executor,
        };
        let tasks = self.inner.store.tasks();
        let taken = match tasks.task_run_take_steps(&Behalf::Platform, &take, None).await? {
            Written::Done(taken) => taken,
            Written::Refused(never) => match never {},
            Written::Repeated => return Err(EngineError::Bug("steps were taken with a key")),
        };
        if !taken.is_empty() {
            self.inner.points.pass("run_take_after");
        }
        for step in taken {
            self.inner.runs.news(&step.run);
            let (token, lease_ms) = (take.token.clone(), settings.lease_ms);
            let (engine, held) = (self.clone(), Held { step, token, lease_ms });
            steps.push(self.inner.background.spawn(async move { engine.do_step(held).await }));
        }
        Ok(())
    }
}

/// A step that panicked is taken by somebody else when its lease is over.
fn noted(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = %error, "step of an agent run panicked");
    }
}
