//! Runs of several agents: taken, begun, called off, tried again, and told of.
//!
//! What becomes of a run is decided by `jurat_core::task_run`. Each of its steps is a task, and
//! whoever works on runs is in `worker`.

mod change;
mod follow;
mod record;
mod step;
mod submit;
mod worker;

use jurat_core::{
    caller::{Caller, Scope},
    task_run::{Run, RunCommand, RunStatus, RunSummary, StepStatus},
};
use jurat_store::{
    Behalf, EventsFrom, Position, RunEventsAsked, RunKey, StoredRun, StoredRunEvent, TaskRunFilter,
};

pub(crate) use self::follow::RunNews;
pub use self::worker::{WorkUntil, WorkerSettings};
use crate::{Done, Engine, EngineError, Keyed, executors::require, people::behalf};

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct TaskRunQuery {
    pub status: Option<RunStatus>,
    /// Starts behind this run, towards older ones.
    pub before: Option<Position>,
    pub limit: u32,
}

/// A run, and how many events it has.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRunView {
    pub run: Run,
    pub events: u64,
}

impl Engine {
    pub async fn task_run_get(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<TaskRunView, EngineError> {
        require(caller, Scope::TasksRead)?;
        self.task_run_of(&key(caller, id)).await
    }

    /// The caller's runs, newest first.
    pub async fn task_run_list(
        &self,
        caller: &Caller,
        query: TaskRunQuery,
    ) -> Result<Vec<RunSummary>, EngineError> {
        require(caller, Scope::TasksRead)?;
        let filter = TaskRunFilter {
            account: caller.account().clone(),
            status: query.status,
            before: query.before,
            limit: query.limit,
        };
        Ok(self.inner.store.tasks().task_run_page(&behalf(caller), &filter).await?)
    }

    /// What happened to a run: behind an event in its order, or before one, the newest first.
    pub async fn task_run_events(
        &self,
        caller: &Caller,
        id: &str,
        from: EventsFrom,
        limit: u32,
    ) -> Result<Vec<StoredRunEvent>, EngineError> {
        require(caller, Scope::TasksRead)?;
        let run = key(caller, id);
        let asked = RunEventsAsked { run: run.clone(), from, limit };
        let found = self.inner.store.tasks().task_run_events(&behalf(caller), &asked).await?;
        if found.is_empty() {
            // No events beyond this one, or no such run.
            self.stored_run(&run).await?;
        }
        Ok(found)
    }

    /// Lets the steps of a run begin.
    pub async fn task_run_kickoff(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<Keyed<TaskRunView>>,
    ) -> Result<Done<TaskRunView>, EngineError> {
        require(caller, Scope::TasksWrite)?;
        let (key, command) = (key(caller, id), RunCommand::Kickoff);
        self.task_run_change_once(caller, &key, command, keyed.as_ref()).await
    }

    /// Tries again what did not succeed of a run that is over.
    pub async fn task_run_retry(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<Keyed<TaskRunView>>,
    ) -> Result<Done<TaskRunView>, EngineError> {
        require(caller, Scope::TasksWrite)?;
        let (key, command) = (key(caller, id), RunCommand::Retry);
        self.task_run_change_once(caller, &key, command, keyed.as_ref()).await
    }

    /// Calls a run off, with the tasks of those that are at work on it.
    pub async fn task_run_cancel(
        &self,
        caller: &Caller,
        id: &str,
        reason: Option<String>,
        keyed: Option<Keyed<TaskRunView>>,
    ) -> Result<Done<TaskRunView>, EngineError> {
        require(caller, Scope::TasksWrite)?;
        let (key, command) = (key(caller, id), RunCommand::Cancel { reason });
        let done = self.task_run_change_once(caller, &key, command, keyed.as_ref()).await?;
        let Done::Now(view) = done else { return Ok(done) };
        for step in view.run.steps.iter().filter(|it| it.status == StepStatus::Leased) {
            let task = view.run.task_id(&step.agent_id, step.attempt);
            // Whoever is at work sees that the run is called off, should this not be done.
            if let Err(error) = self.task_cancel(caller, &task, Some(CALLED_OFF)).await {
                tracing::debug!(error = %error, task.id = task, "the task of a step continues");
            }
        }
        let view = self.task_run_of(&key).await?;
        self.complete_note(caller, keyed.as_ref(), &view).await;
        Ok(Done::Now(view))
    }

    pub(crate) async fn task_run_of(&self, key: &RunKey) -> Result<TaskRunView, EngineError> {
        let stored = self.stored_run(key).await?;
        Ok(TaskRunView { events: stored.seq, run: record::read(stored)? })
    }

    async fn stored_run(&self, key: &RunKey) -> Result<StoredRun, EngineError> {
        let behalf = Behalf::Account(key.account.clone());
        let found = self.inner.store.tasks().task_run_get(&behalf, key).await?;
        found.ok_or_else(|| unknown(&key.id))
    }
}

/// Why the task of a step was cancelled.
const CALLED_OFF: &str = "its run was called off";

fn key(caller: &Caller, id: &str) -> RunKey {
    RunKey { account: caller.account().clone(), id: id.to_owned() }
}

fn unknown(id: &str) -> EngineError {
    EngineError::NotFound { what: "run", id: id.chars().take(80).collect() }
}
