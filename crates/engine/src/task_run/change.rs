//! Lets something happen to a run: read, decided, and written if nothing else happened meanwhile.

use jurat_core::caller::Caller;
use jurat_core::task_run::{RunCommand, RunRefusal, RunStatus};
use jurat_store::{Behalf, Once, RunKey, RunRefused, RunWrite, Written};

use super::{TaskRunView, record, unknown};
use crate::{Done, Engine, EngineError, Keyed, Leaves};

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

/// What is noted with a write, for a caller who asks again.
type Note<'a> = &'a (dyn Fn(&TaskRunView) -> Option<Once> + Send + Sync);

impl Engine {
    /// The same, with what a caller is told of a refusal.
    pub(super) async fn task_run_change(
        &self,
        key: &RunKey,
        command: RunCommand,
    ) -> Result<TaskRunView, EngineError> {
        self.task_run_act(key, command).await.map_err(|why| told(&key.id, why))
    }

    /// The same, under the key of a caller.
    pub(super) async fn task_run_change_once(
        &self,
        caller: &Caller,
        key: &RunKey,
        command: RunCommand,
        keyed: Option<&Keyed<TaskRunView>>,
    ) -> Result<Done<TaskRunView>, EngineError> {
        let leaves = match &command {
            RunCommand::Cancel { .. } => Leaves::Less,
            // Each step that begins is a task.
            RunCommand::Kickoff | RunCommand::Retry | RunCommand::StepEnded { .. } => Leaves::Rows,
        };
        if let Some(answer) = self.done_already(caller, keyed, leaves).await? {
            return Ok(Done::Before(answer));
        }
        let note = |view: &TaskRunView| self.note_of(caller, keyed, view);
        match self.task_run_write(key, command, &note).await.map_err(|why| told(&key.id, why))? {
            Some(view) => Ok(Done::Now(view)),
            None => self.answered_meanwhile(caller, keyed).await,
        }
    }

    pub(super) async fn task_run_act(
        &self,
        key: &RunKey,
        command: RunCommand,
    ) -> Result<TaskRunView, NotChanged> {
        let written = self.task_run_write(key, command, &|_| None).await?;
        written.ok_or_else(|| EngineError::Bug("a write without a key was repeated").into())
    }

    /// Nothing when the same was written before under the same note.
    async fn task_run_write(
        &self,
        key: &RunKey,
        command: RunCommand,
        note: Note<'_>,
    ) -> Result<Option<TaskRunView>, NotChanged> {
        let behalf = Behalf::Account(key.account.clone());
        for _ in 0..TRIES {
            let now = self.inner.clock.now();
            let stored = self.stored_run(key).await?;
            if stored.pruned_at.is_some() && command == RunCommand::Retry {
                let why = format!(
                    "the run `{}` ended so long ago that its prompts were pruned; submit a new run",
                    key.id
                );
                return Err(EngineError::Conflict(why).into());
            }
            let before = TaskRunView { events: stored.seq, run: record::read(stored)? };
            let mut run = before.run.clone();
            let events = run
                .act(command.clone(), now)
                .map_err(|refusal| NotChanged::Refused(refusal, before.run.status))?;
            if events.is_empty() {
                return Ok(Some(before));
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
            let view = TaskRunView { run, events: before.events.saturating_add(added) };
            let (tasks, once) = (self.inner.store.tasks(), note(&view));
            self.inner.points.pass("run_write_before");
            let writing = tasks.task_run_write(&behalf, &write, once.as_ref());
            let written = self.inner.metrics.write("task_run_write", writing).await;
            self.inner.points.pass("run_write_after");
            match written.map_err(EngineError::from)? {
                Written::Done(()) => {
                    self.inner.metrics.tasks.ran(&view.run, &write.events);
                    self.task_run_changed(key);
                    return Ok(Some(view));
                }
                Written::Refused(RunRefused::Stale { .. }) => {}
                Written::Refused(RunRefused::Unknown) => return Err(unknown(&key.id).into()),
                Written::Repeated => return Ok(None),
            }
        }
        Err(EngineError::Late("the run is changing too fast to be written").into())
    }

    /// Tells those who follow the run, and those who work on runs.
    pub(super) fn task_run_changed(&self, key: &RunKey) {
        self.inner.runs.tell(key);
    }
}

/// What a caller is told.
fn told(id: &str, why: NotChanged) -> EngineError {
    match why {
        NotChanged::Refused(refusal, status) => refused(id, refusal, status),
        NotChanged::Error(error) => error,
    }
}

fn refused(id: &str, refusal: RunRefusal, status: RunStatus) -> EngineError {
    let why = match refusal {
        RunRefusal::Begun => "has already started",
        RunRefusal::Over => "has already ended",
        RunRefusal::NotOver => "has not ended; cancel it first, or wait",
        RunRefusal::NothingToRetry => "has nothing to retry: every step succeeded",
        RunRefusal::LeaseLost => "has given the step to another worker",
    };
    EngineError::Conflict(format!("the run `{id}` {why} ({status})"))
}
