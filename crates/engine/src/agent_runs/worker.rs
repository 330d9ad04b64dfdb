//! Works on agent runs: takes as many steps as it has free slots, without waiting for a whole batch.

use std::time::Duration;

use futures::{FutureExt as _, future::BoxFuture, stream::FuturesUnordered};
use jurat_core::time::Timestamp;
use jurat_store::{AgentStepTake, Behalf};
use tokio::task::JoinError;

use super::step::LeasedStep;
use crate::{
    Engine, EngineError,
    due_loop::{DueLoop, DueWork},
};

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

/// The result of a look for steps.
struct DueSteps {
    steps: Vec<LeasedStep>,
    /// Whether there is no step to do, now or later.
    is_idle: bool,
}

/// The steps of a worker as the work of a loop.
struct StepWork<'w> {
    engine: &'w Engine,
    settings: &'w RunWorkerSettings,
    is_idle: bool,
}

impl<'w> DueWork for StepWork<'w> {
    type Found = DueSteps;
    type Error = EngineError;
    type Look = BoxFuture<'w, Result<DueSteps, EngineError>>;
    type Ended = Result<(), JoinError>;
    type Item = BoxFuture<'w, Result<(), JoinError>>;

    const ITEMS: &'static str = "steps of agent runs";

    fn take(&mut self, now: Timestamp, free: usize) -> Self::Look {
        self.engine.take_steps(self.settings, now, free).boxed()
    }

    fn start(
        &mut self,
        found: DueSteps,
        running: &FuturesUnordered<Self::Item>,
    ) -> Option<Timestamp> {
        self.is_idle = found.is_idle;
        for step in found.steps {
            let engine = self.engine.clone();
            // Each step runs in a task of its own: one suspended in the middle of a write would block
            // the others that wait for the store.
            let working = self.engine.inner.background.spawn(async move {
                engine.work_on_step(step).await;
            });
            running.push(working.boxed());
        }
        None
    }

    fn ended(&mut self, ended: Self::Ended, _running: usize) -> Option<Timestamp> {
        // Another worker takes a step that panicked once its lease expires.
        if let Err(error) = ended {
            tracing::error!(error = %error, "step of an agent run panicked");
        }
        self.is_idle = false;
        Some(self.engine.inner.clock.now())
    }

    fn is_over(&self, running: usize) -> bool {
        self.settings.until == RunWorkerEnd::Idle && running == 0 && self.is_idle
    }

    fn gives_up(&self, running: usize) -> bool {
        self.settings.until == RunWorkerEnd::Idle && running == 0
    }

    fn finishes_look(&self) -> bool {
        true
    }
}

impl Engine {
    /// Works on runs of all accounts until this node stops, then releases its steps.
    pub async fn work_on_agent_runs(
        &self,
        settings: &RunWorkerSettings,
    ) -> Result<(), EngineError> {
        let due_loop = DueLoop {
            clock: &*self.inner.clock,
            at_once: settings.at_once,
            longest_sleep: settings.poll,
            wake: &self.inner.agent_run_news.step_wake,
            stop: &self.inner.stopping,
            grace: None,
        };
        due_loop.run(&mut StepWork { engine: self, settings, is_idle: false }).await
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

    async fn take_steps(
        &self,
        settings: &RunWorkerSettings,
        now: Timestamp,
        free: usize,
    ) -> Result<DueSteps, EngineError> {
        let agent_runs = self.inner.store.agent_runs();
        if agent_runs.is_idle(&Behalf::Platform).await? {
            return Ok(DueSteps { steps: Vec::new(), is_idle: true });
        }
        let take = AgentStepTake {
            worker: settings.name.clone(),
            token: format!("{:032x}", self.inner.clock.bits()),
            until: now.plus_millis(settings.lease_ms),
            now,
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            per_executor: self.inner.limits.steps_per_executor,
        };
        let taken = agent_runs.take_steps(&Behalf::Platform, &take).await?;
        if !taken.is_empty() {
            self.inner.failpoints.pass("run_take_after");
        }
        for step in &taken {
            self.inner.agent_run_news.news(&step.run);
        }
        let (token, lease_ms) = (take.token, settings.lease_ms);
        let leased = |step| LeasedStep { step, token: token.clone(), lease_ms };
        Ok(DueSteps { steps: taken.into_iter().map(leased).collect(), is_idle: false })
    }
}
