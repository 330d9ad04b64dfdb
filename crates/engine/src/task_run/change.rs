//! Lets something happen to a run: read, decided, and written if nothing else happened meanwhile.

use jurat_core::task_run::{RunCommand, RunRefusal, RunStatus};
use jurat_store::{Behalf, RunKey, RunRefused, RunWrite, Written};

use super::{TaskRunView, record, unknown};
use crate::{Engine, EngineError};

/// How often a run that others change is read anew. A run has 64 steps, which may all end at once.
const TRIES: u32 = 200;

/// Why nothing happened to a run.
pub(super) enum NotChanged {
    Refused(RunRefusal, RunStatus),
    Error(EngineError),
}

impl From<EngineError> for NotChanged {
    fn from(error: EngineError) -> Self {
        Self::Error(error)
    }
}

impl Engine {
    /// The same, with what a caller is told of a refusal.
    pub(super) async fn task_run_change(
        &self,
        key: &RunKey,
        command: RunCommand,
    ) -> Result<TaskRunView, EngineError> {
        self.task_run_act(key, command).await.map_err(|why| match why {
            NotChanged::Refused(refusal, status) => refused(&key.id, refusal, status),
            NotChanged::Error(error) => error,
        })
    }

    pub(super) async fn task_run_act(
        &self,
        key: &RunKey,
        command: RunCommand,
    ) -> Result<TaskRunView, NotChanged> {
        let behalf = Behalf::Account(key.account.clone());
        for _ in 0..TRIES {
            let now = self.inner.clock.now();
            let before = self.task_run_of(key).await?;
            let mut run = before.run.clone();
            let events = run
                .act(command.clone(), now)
                .map_err(|refusal| NotChanged::Refused(refusal, before.run.status))?;
            if events.is_empty() {
                return Ok(before);
            }
            let added = u64::try_from(events.len()).unwrap_or(u64::MAX);
            let write = RunWrite {
                run: key.clone(),
                expected_seq: before.events,
                state: record::state(&run),
                steps: record::changed(&before.run, &run),
                events,
                at: now,
            };
            self.inner.points.pass("run_write_before");
            let writing = self.inner.store.tasks();
            let writing = writing.task_run_write(&behalf, &write, None);
            let written = self.inner.metrics.write("task_run_write", writing).await;
            self.inner.points.pass("run_write_after");
            match written.map_err(EngineError::from)? {
                Written::Done(()) => {
                    self.task_run_changed(key);
                    let events = before.events.saturating_add(added);
                    return Ok(TaskRunView { run, events });
                }
                Written::Refused(RunRefused::Stale { .. }) => {}
                Written::Refused(RunRefused::Unknown) => return Err(unknown(&key.id).into()),
                Written::Repeated => {
                    return Err(EngineError::Bug("a write without a key was repeated").into());
                }
            }
        }
        Err(EngineError::Late("the run changes faster than it can be written").into())
    }

    /// Tells those who follow the run, and those who work on runs.
    pub(super) fn task_run_changed(&self, key: &RunKey) {
        self.inner.runs.tell(key);
    }
}

fn refused(id: &str, refusal: RunRefusal, status: RunStatus) -> EngineError {
    let why = match refusal {
        RunRefusal::Begun => "has begun already",
        RunRefusal::Over => "is over already",
        RunRefusal::NotOver => "is not over; cancel it first, or wait",
        RunRefusal::NothingToRetry => "has nothing to try again: every step succeeded",
        RunRefusal::LeaseLost => "has the step with somebody else",
    };
    EngineError::Conflict(format!("the run `{id}` {why} ({status})"))
}
