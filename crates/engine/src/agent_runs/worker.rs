//! Works on runs: takes as many steps as it has free slots, without waiting for a whole batch.

use std::time::Duration;

use futures::{StreamExt as _, stream::FuturesUnordered};
use jurat_store::{AgentStepTake, Behalf, WriteOutcome};
use tokio::task::{JoinError, JoinHandle};

use super::step::LeasedStep;
use crate::{Engine, EngineError};

/// How long to wait for a store that does not answer.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// The settings of a run worker.
#[derive(Debug, Clone)]
pub struct RunWorkerSettings {
    /// The name of the worker in runs; empty for the name of the node.
    pub name: String,
    /// Concurrent steps.
    pub at_once: usize,
    /// The poll interval for steps that other nodes queue.
    pub poll: Duration,
    pub lease_ms: u64,
    pub until: RunWorkerEnd,
}

impl RunWorkerSettings {
    /// The settings of a node that works on runs besides everything else.
    pub fn of_a_node(at_once: usize) -> Self {
        Self {
            name: String::new(),
            at_once,
            poll: Duration::from_secs(1),
            lease_ms: 30_000,
            until: RunWorkerEnd::Stopped,
        }
    }
}

/// When a worker ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunWorkerEnd {
    Stopped,
    /// There is no step to do, now or later.
    Idle,
}

/// Each step runs in a task of its own: one suspended in the middle of a write would block the
/// others that wait for the store.
type StepsInFlight = FuturesUnordered<JoinHandle<()>>;

impl Engine {
    /// Works on runs of all accounts until this node stops, then releases its steps.
    pub async fn work_on_agent_runs(
        &self,
        settings: &RunWorkerSettings,
    ) -> Result<(), EngineError> {
        let mut steps: StepsInFlight = FuturesUnordered::new();
        while !self.is_stopping() {
            let looked = self.take_steps(settings, &mut steps).await;
            let wait = match looked {
                Ok(()) => settings.poll,
                Err(error) => {
                    tracing::warn!(error = %error, "could not look for steps of agent runs");
                    STORE_RETRY
                }
            };
            if settings.until == RunWorkerEnd::Idle
                && steps.is_empty()
                && self.is_agent_work_done().await?
            {
                break;
            }
            let turn = async {
                tokio::select! {
                    () = self.stopping() => {}
                    Some(ended) = steps.next(), if !steps.is_empty() => log_panic(ended),
                    () = self.inner.agent_run_news.step_wake.notified() => {}
                }
            };
            let _elapsed = tokio::time::timeout(wait, turn).await;
        }
        while let Some(ended) = steps.next().await {
            log_panic(ended);
        }
        Ok(())
    }

    /// Works on runs in the background until this node stops.
    pub fn spawn_run_worker(&self, mut settings: RunWorkerSettings) {
        if settings.name.is_empty() {
            settings.name = self.inner.node.to_string();
        }
        let engine = self.clone();
        let _working = self.inner.background.spawn(async move {
            if let Err(error) = engine.work_on_agent_runs(&settings).await {
                tracing::error!(error = %error, "run worker stopped");
            }
        });
    }

    async fn is_agent_work_done(&self) -> Result<bool, EngineError> {
        Ok(self.inner.store.tasks().agent_run_is_idle(&Behalf::Platform).await?)
    }

    async fn take_steps(
        &self,
        settings: &RunWorkerSettings,
        steps: &mut StepsInFlight,
    ) -> Result<(), EngineError> {
        let free = settings.at_once.saturating_sub(steps.len());
        if free == 0 || self.is_agent_work_done().await? {
            return Ok(());
        }
        let now = self.inner.clock.now();
        let take = AgentStepTake {
            worker: settings.name.clone(),
            token: format!("{:032x}", self.inner.clock.bits()),
            until: now.plus_millis(settings.lease_ms),
            now,
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            per_executor: self.inner.limits.steps_per_executor,
        };
        let tasks = self.inner.store.tasks();
        let taken = match tasks.agent_run_take_steps(&Behalf::Platform, &take, None).await? {
            WriteOutcome::Done(taken) => taken,
            WriteOutcome::Refused(never) => match never {},
            WriteOutcome::Repeated => return Err(EngineError::Bug("steps were taken with a key")),
        };
        if !taken.is_empty() {
            self.inner.failpoints.pass("run_take_after");
        }
        for step in taken {
            self.inner.agent_run_news.news(&step.run);
            let (token, lease_ms) = (take.token.clone(), settings.lease_ms);
            let (engine, held) = (self.clone(), LeasedStep { step, token, lease_ms });
            steps.push(self.inner.background.spawn(async move { engine.work_on_step(held).await }));
        }
        Ok(())
    }
}

/// Another worker takes a step that panicked once its lease expires.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = %error, "step of an agent run panicked");
    }
}
