//! Agent runs: submit, start, cancel, retry and list them.
//!
//! `jurat_core::agent_run` decides what happens to a run. Each of its steps is a task, which
//! `worker` carries out.

mod change;
mod follow;
mod record;
mod step;
mod submit;
mod worker;

use jurat_core::{
    account::caller::{Caller, Scope},
    agent_run::{
        AgentRun, AgentRunCommand, AgentRunEventRow, AgentRunFilter, AgentRunKey, AgentRunSummary,
        EventsStart, StepStatus,
    },
};
use jurat_store::{AgentRunEventsQuery, AgentRunRecord, Behalf};

pub(crate) use self::follow::AgentRunNews;
pub use self::worker::{RunWorkerEnd, RunWorkerSettings};
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite,
    access::{behalf_of, require_scope},
};

/// A run, and the number of its events.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunView {
    pub run: AgentRun,
    pub events: u64,
}

impl Engine {
    pub async fn agent_run_get(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<AgentRunView, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        self.agent_run_of(&key(caller, id)).await
    }

    /// The caller's runs, newest first.
    pub async fn agent_run_list(
        &self,
        caller: &Caller,
        filter: &AgentRunFilter,
    ) -> Result<Vec<AgentRunSummary>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let runs = self.inner.store.agent_runs();
        Ok(runs.page(&behalf_of(caller), caller.account(), filter).await?)
    }

    /// The events of a run: after an event in order, or before one, the newest first.
    pub async fn agent_run_events(
        &self,
        caller: &Caller,
        id: &str,
        from: EventsStart,
        limit: u32,
    ) -> Result<Vec<AgentRunEventRow>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let run = key(caller, id);
        let asked = AgentRunEventsQuery { run: run.clone(), from, limit };
        let found = self.inner.store.agent_runs().events(&behalf_of(caller), &asked).await?;
        if found.is_empty() {
            // Either there are no further events, or no such run.
            self.stored_agent_run(&run).await?;
        }
        Ok(found)
    }

    /// Starts the steps of a run.
    pub async fn agent_run_kickoff(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<AgentRunView>>,
    ) -> Result<IdempotentOutcome<AgentRunView>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        let (key, command) = (key(caller, id), AgentRunCommand::Kickoff);
        self.agent_run_change_idempotent(caller, &key, command, keyed.as_ref()).await
    }

    /// Retries the steps of an ended run that did not succeed.
    pub async fn agent_run_retry(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<AgentRunView>>,
    ) -> Result<IdempotentOutcome<AgentRunView>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        let (key, command) = (key(caller, id), AgentRunCommand::Retry);
        self.agent_run_change_idempotent(caller, &key, command, keyed.as_ref()).await
    }

    /// Cancels a run, with the tasks of the steps in progress.
    pub async fn agent_run_cancel(
        &self,
        caller: &Caller,
        id: &str,
        reason: Option<String>,
        keyed: Option<IdempotentWrite<AgentRunView>>,
    ) -> Result<IdempotentOutcome<AgentRunView>, EngineError> {
        require_scope(caller, Scope::TasksWrite)?;
        let (key, command) = (key(caller, id), AgentRunCommand::Cancel { reason });
        let done = self.agent_run_change_idempotent(caller, &key, command, keyed.as_ref()).await?;
        let IdempotentOutcome::Now(view) = done else { return Ok(done) };
        for step in view.run.steps.iter().filter(|it| it.status == StepStatus::Leased) {
            let task = view.run.task_id(&step.agent_id, step.attempt);
            // If this fails, the worker still notices that the run is cancelled.
            if let Err(error) = self.task_cancel_unkeyed(caller, &task, Some(RUN_CANCELLED)).await {
                tracing::debug!(error = %error, task.id = task, "the task of a step continues");
            }
        }
        let view = self.agent_run_of(&key).await?;
        self.complete_record(caller, keyed.as_ref(), &view).await;
        Ok(IdempotentOutcome::Now(view))
    }

    pub(crate) async fn agent_run_of(
        &self,
        key: &AgentRunKey,
    ) -> Result<AgentRunView, EngineError> {
        let stored = self.stored_agent_run(key).await?;
        Ok(AgentRunView { events: stored.seq, run: record::read_stored(stored)? })
    }

    async fn stored_agent_run(&self, key: &AgentRunKey) -> Result<AgentRunRecord, EngineError> {
        let behalf = Behalf::Account(key.account.clone());
        let found = self.inner.store.agent_runs().get(&behalf, key).await?;
        found.ok_or_else(|| unknown_run(&key.id))
    }
}

/// Why the task of a step was cancelled.
const RUN_CANCELLED: &str = "its run was called off";

fn key(caller: &Caller, id: &str) -> AgentRunKey {
    AgentRunKey { account: caller.account().clone(), id: id.to_owned() }
}

fn unknown_run(id: &str) -> EngineError {
    EngineError::NotFound { what: "run", id: id.chars().take(80).collect() }
}
