//! Applies a command to a run: reads it, decides, and writes it back unless it changed meanwhile.

use jurat_core::account::caller::Caller;
use jurat_core::agent_run::{AgentRunCommand, AgentRunKey, AgentRunRejection, AgentRunStatus};
use jurat_store::{AgentRunConflict, AgentRunWrite, Behalf, IdempotencyRecord, WriteOutcome};

use super::{AgentRunView, record, unknown_run};
use crate::{Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves};

/// How many times a run that others change is read again. A run has up to 64 steps, which may all
/// end together.
const TRIES: u32 = 200;

/// Why a command had no effect.
pub(super) enum AgentRunChangeError {
    Refused(AgentRunRejection, AgentRunStatus),
    Error(EngineError),
}

impl From<EngineError> for AgentRunChangeError {
    fn from(error: EngineError) -> Self {
        Self::Error(error)
    }
}

/// The idempotency record written with a change.
type AgentRunIdempotency<'a> =
    &'a (dyn Fn(&AgentRunView) -> Option<IdempotencyRecord<()>> + Send + Sync);

impl Engine {
    /// Like `agent_run_decide`, with the error for a caller.
    pub(super) async fn agent_run_change(
        &self,
        key: &AgentRunKey,
        command: AgentRunCommand,
    ) -> Result<AgentRunView, EngineError> {
        self.agent_run_decide(key, command).await.map_err(|why| change_error(&key.id, why))
    }

    /// Like [`Engine::agent_run_change`], under the idempotency key of a caller.
    pub(super) async fn agent_run_change_idempotent(
        &self,
        caller: &Caller,
        key: &AgentRunKey,
        command: AgentRunCommand,
        keyed: Option<&IdempotentWrite<AgentRunView>>,
    ) -> Result<IdempotentOutcome<AgentRunView>, EngineError> {
        let leaves = match &command {
            AgentRunCommand::Cancel { .. } => Leaves::Less,
            // Each started step is a task.
            AgentRunCommand::Kickoff
            | AgentRunCommand::Retry
            | AgentRunCommand::StepEnded { .. } => Leaves::Rows,
        };
        if let Some(answer) = self.done_already(caller, keyed, leaves).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let note = |view: &AgentRunView| self.idempotency_record(caller, keyed, view);
        match self
            .agent_run_write(key, command, &note)
            .await
            .map_err(|why| change_error(&key.id, why))?
        {
            Some(view) => Ok(IdempotentOutcome::Now(view)),
            None => self.concurrent_answer(caller, keyed).await,
        }
    }

    pub(super) async fn agent_run_decide(
        &self,
        key: &AgentRunKey,
        command: AgentRunCommand,
    ) -> Result<AgentRunView, AgentRunChangeError> {
        let written = self.agent_run_write(key, command, &|_| None).await?;
        written.ok_or_else(|| EngineError::Bug("a write without a key was repeated").into())
    }

    /// Writes the change; `None` if it was written before under the same record.
    async fn agent_run_write(
        &self,
        key: &AgentRunKey,
        command: AgentRunCommand,
        note: AgentRunIdempotency<'_>,
    ) -> Result<Option<AgentRunView>, AgentRunChangeError> {
        let behalf = Behalf::Account(key.account.clone());
        for _ in 0..TRIES {
            let now = self.inner.clock.now();
            let stored = self.stored_agent_run(key).await?;
            if stored.pruned_at.is_some() && command == AgentRunCommand::Retry {
                let why = format!(
                    "the run `{}` ended so long ago that its prompts were pruned; submit a new run",
                    key.id
                );
                return Err(EngineError::Conflict(why).into());
            }
            let before = AgentRunView { events: stored.seq, run: record::read_stored(stored)? };
            let mut run = before.run.clone();
            let events = run
                .act(command.clone(), now)
                .map_err(|refusal| AgentRunChangeError::Refused(refusal, before.run.status))?;
            if events.is_empty() {
                return Ok(Some(before));
            }
            let added = u64::try_from(events.len()).unwrap_or(u64::MAX);
            let write = AgentRunWrite {
                run: key.clone(),
                expected_seq: before.events,
                state: record::stored_state(&run),
                steps: record::changed_steps(&before.run, &run),
                events,
                at: now,
            };
            let view = AgentRunView { run, events: before.events.saturating_add(added) };
            let (agent_runs, once) = (self.inner.store.agent_runs(), note(&view));
            self.inner.failpoints.pass("run_write_before");
            let writing = agent_runs.write(&behalf, &write, once.as_ref());
            let written = self.inner.metrics.write("task_run_write", writing).await;
            self.inner.failpoints.pass("run_write_after");
            match written.map_err(EngineError::from)? {
                WriteOutcome::Done(()) => {
                    self.inner.metrics.tasks.agent_run_written(&view.run, &write.events);
                    self.agent_run_changed(key);
                    return Ok(Some(view));
                }
                WriteOutcome::Refused(AgentRunConflict::Stale { .. }) => {}
                WriteOutcome::Refused(AgentRunConflict::Unknown) => {
                    return Err(unknown_run(&key.id).into());
                }
                WriteOutcome::Repeated => return Ok(None),
            }
        }
        Err(EngineError::Busy("the run is changing too fast to be written").into())
    }

    /// Wakes the followers of the run and the workers.
    pub(super) fn agent_run_changed(&self, key: &AgentRunKey) {
        self.inner.agent_run_news.tell(key);
    }
}

/// The error for a caller.
fn change_error(id: &str, why: AgentRunChangeError) -> EngineError {
    match why {
        AgentRunChangeError::Refused(refusal, status) => change_refusal(id, refusal, status),
        AgentRunChangeError::Error(error) => error,
    }
}

fn change_refusal(id: &str, refusal: AgentRunRejection, status: AgentRunStatus) -> EngineError {
    let why = match refusal {
        AgentRunRejection::Begun => "has already started",
        AgentRunRejection::Over => "has already ended",
        AgentRunRejection::NotOver => "has not ended; cancel it first, or wait",
        AgentRunRejection::NothingToRetry => "has nothing to retry: every step succeeded",
        AgentRunRejection::LeaseLost => "has given the step to another worker",
    };
    EngineError::Conflict(format!("the run `{id}` {why} ({status})"))
}
