//! Does one step of a run: its task is submitted once, followed to its end, and what came of it is
//! written, as long as the step is held.

use std::{collections::BTreeSet, time::Duration};

use jurat_core::{
    caller::Caller,
    canonical::digest,
    task::{End, Standing, Task},
    task_run::{Conclusion, RunCommand, RunRefusal, RunStatus, StepOutcome},
};
use jurat_store::{
    Behalf, RunKey, StepRenewal, TakenStep, TaskCandidate, TaskKey, TaskRecord, Written,
};
use jurat_wire::api::runs::step_order;

use super::{CALLED_OFF, change::NotChanged, record};
use crate::{Engine, EngineError};

/// How often an outcome that the store does not take is written again, and how long to wait for it.
const WRITES: u32 = 5;
const BETWEEN_WRITES: Duration = Duration::from_millis(500);

/// How long to wait for a store that does not answer, at first and at the most, and how often where
/// it answers other questions.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const TROUBLES: u32 = 20;

/// What is said by a worker that finds its lease gone.
const LATE: &str = "step already taken by another worker; discarding the outcome";

/// A step that this worker holds.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) step: TakenStep,
    pub(super) token: String,
    pub(super) lease_ms: u64,
}

/// How the wait for a task ended.
enum Waited {
    Ended(Box<TaskRecord>),
    /// Somebody else has the step.
    Lost,
    Stopped,
}

impl Engine {
    pub(super) async fn do_step(&self, held: Held) {
        let mut troubles = 0;
        let outcome = loop {
            match Box::pin(self.step_outcome(&held)).await {
                Ok(Some(outcome)) => break outcome,
                Ok(None) => return,
                Err(EngineError::Store(_)) if self.is_stopping() => break StepOutcome::Released,
                // That says nothing of the step, whose task goes on meanwhile.
                Err(EngineError::Store(error)) if troubles < TROUBLES => {
                    let run = &held.step.run;
                    tracing::warn!(run.id = run.id, error = %error, "waiting for the store to continue a step");
                    if !self.outlast(&held, troubles).await {
                        tracing::info!(run.id = run.id, agent.id = held.step.agent_id, "{}", LATE);
                        return;
                    }
                    troubles += 1;
                }
                Err(error) => break failure(&error),
            }
        };
        self.step_ended(&held, outcome).await;
    }

    /// Waits until the store answers again; `false` when the step is somebody else's by then.
    async fn outlast(&self, held: &Held, troubles: u32) -> bool {
        // The lease was renewed within its last third.
        let until = self.inner.clock.now().plus_millis(held.lease_ms - held.lease_ms / 3);
        let mut pause = LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(troubles));
        while !self.is_stopping() {
            let _elapsed = tokio::time::timeout(pause, self.stopping()).await;
            match self.renew(held).await {
                Ok(status) => return status.is_some(),
                Err(_) if until <= self.inner.clock.now() => return false,
                Err(_) => pause = LONGEST_PAUSE.min(pause * 2),
            }
        }
        true
    }

    /// What becomes of the step; nothing when it is somebody else's.
    async fn step_outcome(&self, held: &Held) -> Result<Option<StepOutcome>, EngineError> {
        let TakenStep { run: key, agent_id } = &held.step;
        let stored = self.stored_run(key).await?;
        let ordered_by = stored.ordered_by.clone();
        let run = record::read(stored)?;
        let Some(step) = run.step(agent_id) else { return Ok(None) };
        if step.lease.as_ref().is_none_or(|lease| lease.token != held.token) {
            return Ok(None);
        }
        let task_id = run.task_id(agent_id, step.attempt);
        let caller = match self.caller_of(&key.account, ordered_by.as_deref()).await {
            Err(EngineError::KeyEnded) => return self.key_ended(key, &task_id).await.map(Some),
            caller => caller?,
        };
        if run.status == RunStatus::Cancelling {
            self.step_task_cancel(&caller, &task_id).await;
            return Ok(Some(StepOutcome::Cancelled));
        }
        let order = match step_order(&run, agent_id) {
            Ok(order) => order,
            Err(problem) => {
                return Ok(Some(StepOutcome::Failed { error: problem.detail, is_lasting: true }));
            }
        };
        match self.task_submit_at(&caller, order, None, step.attempt).await {
            Ok(_) => {}
            Err(error @ EngineError::Store(_)) => return Err(error),
            Err(error) => return Ok(Some(self.not_taken(&caller, &task_id, &error).await)),
        }
        Ok(match self.step_wait(&caller, held, &task_id).await? {
            Waited::Lost => {
                tracing::info!(run.id = key.id, agent.id = agent_id, "{}", LATE);
                None
            }
            Waited::Stopped => Some(StepOutcome::Released),
            Waited::Ended(record) if record.state.decided.is_none() => {
                // A task that ended with the key of its run is no failure of its agent.
                match self.key_of(&key.account, ordered_by.as_deref()).await {
                    Err(EngineError::KeyEnded) => Some(self.key_ended(key, &task_id).await?),
                    _ => Some(undecided(&record.state)),
                }
            }
            Waited::Ended(record) => Some(self.task_outcome(key.clone(), &record).await?),
        })
    }

    /// Cancels a run whose key has ended, with the task of the step.
    async fn key_ended(&self, key: &RunKey, task_id: &str) -> Result<StepOutcome, EngineError> {
        let reason = Some(EngineError::KeyEnded.to_string());
        match self.task_run_act(key, RunCommand::Cancel { reason }).await {
            Ok(_) | Err(NotChanged::Refused(..)) => {}
            Err(NotChanged::Error(error)) => return Err(error),
        }
        let caller = self.caller_for(&key.account).await?;
        self.step_task_cancel(&caller, task_id).await;
        Ok(StepOutcome::Cancelled)
    }

    /// Follows the task to its end, and goes on holding the step meanwhile.
    async fn step_wait(
        &self,
        caller: &Caller,
        held: &Held,
        task_id: &str,
    ) -> Result<Waited, EngineError> {
        // Both go on all the time: what stood still in the middle of a read would keep its connection.
        tokio::select! {
            biased;
            () = self.stopping() => Ok(Waited::Stopped),
            () = self.step_hold(caller, held, task_id) => Ok(Waited::Lost),
            record = self.task_end(caller, task_id) => Ok(match record? {
                Some(record) => Waited::Ended(Box::new(record)),
                None => Waited::Stopped,
            }),
        }
    }

    /// Goes on holding the step until it is lost, and calls its task off when its run is.
    async fn step_hold(&self, caller: &Caller, held: &Held, task_id: &str) {
        let third = Duration::from_millis((held.lease_ms / 3).max(10));
        let mut renewals = tokio::time::interval(third);
        renewals.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            renewals.tick().await;
            match self.renew(held).await {
                Ok(Some(RunStatus::Cancelling)) => self.step_task_cancel(caller, task_id).await,
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(error = %error, "could not renew the lease of a step");
                }
            }
        }
    }

    /// The task when nothing more is decided in it; nothing when the node stops before.
    async fn task_end(
        &self,
        caller: &Caller,
        task_id: &str,
    ) -> Result<Option<TaskRecord>, EngineError> {
        const LOOK: Duration = Duration::from_secs(30);
        let mut seen = 0;
        loop {
            let record = self.task_wait(caller, task_id, seen, LOOK).await?;
            if record.state.is_over() || record.state.is_waiting() {
                return Ok(Some(record));
            }
            if self.is_stopping() {
                return Ok(None);
            }
            seen = record.seq;
        }
    }

    /// Goes on holding the step, and says how its run stands; nothing when it is lost.
    async fn renew(&self, held: &Held) -> Result<Option<RunStatus>, EngineError> {
        let until = self.inner.clock.now().plus_millis(held.lease_ms);
        let (step, token) = (held.step.clone(), held.token.clone());
        let renewal = StepRenewal { step, token, until };
        let behalf = Behalf::Account(held.step.run.account.clone());
        self.inner.points.pass("run_renew_before");
        let renewed = self.inner.store.tasks().task_run_step_renew(&behalf, &renewal, None).await;
        self.inner.points.pass("run_renew_after");
        Ok(match renewed? {
            Written::Done(status) => Some(status),
            Written::Refused(_) | Written::Repeated => None,
        })
    }

    async fn step_task_cancel(&self, caller: &Caller, task_id: &str) {
        // A task that is not there, or over, needs none.
        if let Err(error) = self.task_cancel(caller, task_id, Some(CALLED_OFF)).await {
            tracing::debug!(error = %error, task.id = task_id, "the task of a step continues");
        }
    }

    /// Why a task was not taken, and whether it would be another time.
    async fn not_taken(&self, caller: &Caller, task_id: &str, error: &EngineError) -> StepOutcome {
        if matches!(error, EngineError::Conflict(_)) {
            // Another task has the name, or there are too many.
            let is_lasting = self.task_get(caller, task_id).await.is_ok();
            return StepOutcome::Failed { error: error.to_string(), is_lasting };
        }
        failure(error)
    }

    async fn task_outcome(
        &self,
        key: jurat_store::RunKey,
        record: &TaskRecord,
    ) -> Result<StepOutcome, EngineError> {
        let task = &record.state;
        let Some(decided) = &task.decided else {
            return Ok(undecided(task));
        };
        let behalf = Behalf::Account(key.account.clone());
        let task_key = TaskKey { account: key.account, id: task.id.clone() };
        let tasks = self.inner.store.tasks();
        let found = tasks.task_candidate(&behalf, &task_key, decided).await?;
        let found = found.ok_or(EngineError::Bug("a candidate that is final is not there"))?;
        Ok(StepOutcome::Succeeded(conclusion(found)))
    }

    /// Writes what became of the step. Whoever has it by now is right, and this worker late.
    async fn step_ended(&self, held: &Held, outcome: StepOutcome) {
        let TakenStep { run, agent_id } = &held.step;
        let (agent_id, token) = (agent_id.clone(), held.token.clone());
        let command = RunCommand::StepEnded { agent_id, token, outcome };
        for _ in 0..WRITES {
            match self.task_run_act(run, command.clone()).await {
                Ok(_) => return,
                Err(NotChanged::Refused(RunRefusal::LeaseLost, _)) => {
                    tracing::info!(run.id = run.id, agent.id = held.step.agent_id, "{}", LATE);
                    return;
                }
                Err(NotChanged::Refused(refusal, status)) => {
                    tracing::error!(run.id = run.id, ?refusal, %status, "could not end a step");
                    return;
                }
                Err(NotChanged::Error(error)) => {
                    tracing::warn!(run.id = run.id, error = %error, "could not write a step");
                }
            }
            let wait = std::future::pending::<()>();
            let _elapsed = tokio::time::timeout(BETWEEN_WRITES, wait).await;
        }
        // Its lease runs out, and whoever takes it finds the task as it ended.
    }
}

/// What is wrong with an order stays wrong; what is wrong with the world may pass.
fn failure(error: &EngineError) -> StepOutcome {
    if matches!(error, EngineError::ShuttingDown) {
        return StepOutcome::Released;
    }
    let is_lasting = if let EngineError::Input(wrong) = error {
        // An executor that is down declares nothing.
        !matches!(wrong.field.as_str(), "task_type" | "profile")
    } else {
        let is_wrong = matches!(error, EngineError::Schema(_) | EngineError::Policy(_));
        is_wrong || matches!(error, EngineError::Invalid { .. } | EngineError::Suspended)
    };
    StepOutcome::Failed { error: error.to_string(), is_lasting }
}

fn undecided(task: &Task) -> StepOutcome {
    let has_refused = !task.proposals.is_empty()
        && task.proposals.iter().all(|proposal| proposal.standing == Standing::Rejected);
    let (error, is_lasting) = match &task.end {
        Some(End::Failed { reason } | End::Expired { reason }) => (reason.clone(), has_refused),
        Some(End::Cancelled { reason }) if reason == CALLED_OFF => return StepOutcome::Cancelled,
        Some(End::Cancelled { reason }) => (format!("its task was cancelled: {reason}"), true),
        Some(End::Finalized { .. }) | None => {
            ("its task ended without a decision".to_owned(), true)
        }
    };
    StepOutcome::Failed { error, is_lasting }
}

fn conclusion(found: TaskCandidate) -> Conclusion {
    let inline = found.evidence.inline.iter().map(|it| digest(it.content.as_bytes()));
    let refs = found.evidence.refs.iter().map(|it| it.digest.clone());
    let evidence: BTreeSet<String> = inline.chain(refs).collect();
    Conclusion { output: found.output, candidate_id: found.id, evidence }
}
