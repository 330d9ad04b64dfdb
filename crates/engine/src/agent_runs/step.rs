//! Does one step of a run: submits its task once, follows it to its end, and records the result
//! while it holds the lease.

use std::{collections::BTreeSet, time::Duration};

use jurat_core::{
    account::caller::Caller,
    agent_run::{
        AgentRunCommand, AgentRunKey, AgentRunRejection, AgentRunStatus, StepConclusion,
        StepOutcome,
    },
    canonical::digest,
    code::ProblemCode,
    task::{ProposalStanding, Task, TaskCandidateRow, TaskEnd, TaskKey, TaskRecord},
};
use jurat_store::{AgentStepRenewal, Behalf, TakenAgentStep, WriteOutcome};

use super::{RUN_CANCELLED, change::AgentRunChangeError, record, submit::step_task};
use crate::{Engine, EngineError, background::pause, pauses::Pauses};

/// How many times a result is written if the store fails, and how long to wait in between.
const WRITES: u32 = 5;
const BETWEEN_WRITES: Duration = Duration::from_millis(500);

/// The first and the longest wait for a store that fails, and how many failures end the step if
/// other reads succeed.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const MOST_STORE_ERRORS: u32 = 20;

/// A step that this worker holds.
#[derive(Debug, Clone)]
pub(super) struct LeasedStep {
    pub(super) step: TakenAgentStep,
    pub(super) token: String,
    pub(super) lease_ms: u64,
}

/// How the wait for a task ended.
enum StepWaitEnd {
    Ended(Box<TaskRecord>),
    /// Another worker has the step.
    Lost,
    Stopped,
}

impl Engine {
    pub(super) async fn work_on_step(&self, held: LeasedStep) {
        let mut troubles = 0;
        let mut pauses = Pauses::doubling(FIRST_PAUSE, LONGEST_PAUSE);
        let outcome = loop {
            match Box::pin(self.outcome_of_step(&held)).await {
                Ok(Some(outcome)) => break outcome,
                Ok(None) => return,
                Err(EngineError::Store(_)) if self.is_stopping() => break StepOutcome::Released,
                // A store error says nothing about the step, whose task continues meanwhile.
                Err(EngineError::Store(error)) if troubles < MOST_STORE_ERRORS => {
                    let run = &held.step.run;
                    tracing::warn!(run.id = run.id, error = %error, "waiting for the store to continue a step");
                    if !self.wait_for_store(&held, &mut pauses).await {
                        log_lease_lost(&held.step);
                        return;
                    }
                    troubles += 1;
                }
                Err(error) => break failure(&error),
            }
        };
        self.record_step_end(&held, outcome).await;
    }

    /// Waits until the store answers again; `false` if another worker has the step by then.
    async fn wait_for_store(&self, held: &LeasedStep, pauses: &mut Pauses) -> bool {
        // The lease was renewed within its last third.
        let until = self.inner.clock.now().plus_millis(held.lease_ms - held.lease_ms / 3);
        while !self.is_stopping() {
            let _elapsed = tokio::time::timeout(pauses.advance(), self.stopping()).await;
            match self.renew_lease(held).await {
                Ok(status) => return status.is_some(),
                Err(_) if until <= self.inner.clock.now() => return false,
                Err(_) => {}
            }
        }
        true
    }

    /// The result of the step; `None` if another worker has it.
    async fn outcome_of_step(&self, held: &LeasedStep) -> Result<Option<StepOutcome>, EngineError> {
        let TakenAgentStep { run: key, agent_id } = &held.step;
        let stored = self.stored_agent_run(key).await?;
        let ordered_by = stored.ordered_by.clone();
        let run = record::read_stored(stored)?;
        let Some(step) = run.step(agent_id) else { return Ok(None) };
        if step.lease.as_ref().is_none_or(|lease| lease.token != held.token) {
            return Ok(None);
        }
        let task_id = run.task_id(agent_id, step.attempt);
        let caller = match self.caller_of(&key.account, ordered_by.as_deref()).await {
            Err(EngineError::KeyEnded) => return self.key_ended(key, &task_id).await.map(Some),
            caller => caller?,
        };
        if run.status == AgentRunStatus::Cancelling {
            self.step_task_cancel(&caller, &task_id).await;
            return Ok(Some(StepOutcome::Cancelled));
        }
        let order = match step_task(&run, agent_id) {
            Ok(order) => order,
            Err(error) => {
                let error = error.to_string();
                return Ok(Some(StepOutcome::Failed { error, is_lasting: true }));
            }
        };
        match self.task_submit_at(&caller, order, None, step.attempt).await {
            Ok(_) => {}
            Err(error @ EngineError::Store(_)) => return Err(error),
            Err(error) => return Ok(Some(self.submit_failure(&caller, &task_id, &error).await)),
        }
        Ok(match self.wait_for_task(&caller, held, &task_id).await? {
            StepWaitEnd::Lost => {
                log_lease_lost(&held.step);
                None
            }
            StepWaitEnd::Stopped => Some(StepOutcome::Released),
            StepWaitEnd::Ended(record) if record.state.decided.is_none() => {
                // If the task ended because the key of its run ended, the agent did not fail.
                match self.live_submitting_key(&key.account, ordered_by.as_deref()).await {
                    Err(EngineError::KeyEnded) => Some(self.key_ended(key, &task_id).await?),
                    _ => Some(undecided(&record.state)),
                }
            }
            StepWaitEnd::Ended(record) => Some(self.task_outcome(key.clone(), &record).await?),
        })
    }

    /// Cancels a run whose key has ended, with the task of the step.
    async fn key_ended(
        &self,
        key: &AgentRunKey,
        task_id: &str,
    ) -> Result<StepOutcome, EngineError> {
        let reason = Some(EngineError::KeyEnded.to_string());
        match self.agent_run_decide(key, AgentRunCommand::Cancel { reason }).await {
            Ok(_) | Err(AgentRunChangeError::Refused(..)) => {}
            Err(AgentRunChangeError::Error(error)) => return Err(error),
        }
        let caller = self.caller_without_key(&key.account).await?;
        self.step_task_cancel(&caller, task_id).await;
        Ok(StepOutcome::Cancelled)
    }

    /// Follows the task to its end, and keeps the lease meanwhile.
    async fn wait_for_task(
        &self,
        caller: &Caller,
        held: &LeasedStep,
        task_id: &str,
    ) -> Result<StepWaitEnd, EngineError> {
        // Both futures run all the time: one suspended in the middle of a read would hold its
        // connection.
        tokio::select! {
            biased;
            () = self.stopping() => Ok(StepWaitEnd::Stopped),
            () = self.keep_lease(caller, held, task_id) => Ok(StepWaitEnd::Lost),
            record = self.task_end(caller, task_id) => Ok(match record? {
                Some(record) => StepWaitEnd::Ended(Box::new(record)),
                None => StepWaitEnd::Stopped,
            }),
        }
    }

    /// Renews the lease until it is lost, and cancels the task if the run is cancelled.
    async fn keep_lease(&self, caller: &Caller, held: &LeasedStep, task_id: &str) {
        let third = Duration::from_millis((held.lease_ms / 3).max(10));
        let mut renewals = tokio::time::interval(third);
        renewals.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            renewals.tick().await;
            match self.renew_lease(held).await {
                Ok(Some(AgentRunStatus::Cancelling)) => {
                    self.step_task_cancel(caller, task_id).await;
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(error = %error, "could not renew the lease of a step");
                }
            }
        }
    }

    /// The task once nothing more happens in it; `None` if the node stops first.
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

    /// Renews the lease and returns the status of the run; `None` if the lease is lost.
    async fn renew_lease(&self, held: &LeasedStep) -> Result<Option<AgentRunStatus>, EngineError> {
        let until = self.inner.clock.now().plus_millis(held.lease_ms);
        let (step, token) = (held.step.clone(), held.token.clone());
        let renewal = AgentStepRenewal { step, token, until };
        let behalf = Behalf::Account(held.step.run.account.clone());
        self.inner.failpoints.pass("run_renew_before");
        let renewed = self.inner.store.agent_runs().renew_step(&behalf, &renewal, None).await;
        self.inner.failpoints.pass("run_renew_after");
        Ok(match renewed? {
            WriteOutcome::Done(status) => Some(status),
            WriteOutcome::Refused(_) | WriteOutcome::Repeated => None,
        })
    }

    async fn step_task_cancel(&self, caller: &Caller, task_id: &str) {
        // A missing or ended task needs no cancelling.
        if let Err(error) = self.task_cancel_unkeyed(caller, task_id, Some(RUN_CANCELLED)).await {
            tracing::debug!(error = %error, task.id = task_id, "the task of a step continues");
        }
    }

    /// Why a task was not accepted, and whether a retry could help.
    async fn submit_failure(
        &self,
        caller: &Caller,
        task_id: &str,
        error: &EngineError,
    ) -> StepOutcome {
        if matches!(error, EngineError::Conflict(_)) {
            // Another task has the id, or there are too many tasks.
            let is_lasting = self.task_show(caller, task_id).await.is_ok();
            return StepOutcome::Failed { error: error.to_string(), is_lasting };
        }
        failure(error)
    }

    async fn task_outcome(
        &self,
        key: jurat_core::agent_run::AgentRunKey,
        record: &TaskRecord,
    ) -> Result<StepOutcome, EngineError> {
        let task = &record.state;
        let Some(decided) = &task.decided else {
            return Ok(undecided(task));
        };
        let behalf = Behalf::Account(key.account.clone());
        let task_key = TaskKey { account: key.account, id: task.id.clone() };
        let tasks = self.inner.store.tasks();
        let found = tasks.candidate(&behalf, &task_key, decided).await?;
        let found = found.ok_or(EngineError::Bug("a candidate that is final is not there"))?;
        Ok(StepOutcome::Succeeded(conclusion(found)))
    }

    /// Records the result of the step. If another worker holds the lease by now, this result is
    /// dropped.
    async fn record_step_end(&self, held: &LeasedStep, outcome: StepOutcome) {
        let TakenAgentStep { run, agent_id } = &held.step;
        let (agent_id, token) = (agent_id.clone(), held.token.clone());
        let command = AgentRunCommand::StepEnded { agent_id, token, outcome };
        for _ in 0..WRITES {
            match self.agent_run_decide(run, command.clone()).await {
                Ok(_) => return,
                Err(AgentRunChangeError::Refused(AgentRunRejection::LeaseLost, _)) => {
                    log_lease_lost(&held.step);
                    return;
                }
                Err(AgentRunChangeError::Refused(refusal, status)) => {
                    tracing::error!(run.id = run.id, ?refusal, %status, "could not end a step");
                    return;
                }
                Err(AgentRunChangeError::Error(error)) => {
                    tracing::warn!(run.id = run.id, error = %error, "could not write a step");
                }
            }
            pause(BETWEEN_WRITES).await;
        }
        // The lease expires, and the next worker finds the ended task.
    }
}

/// A fault of the submission is permanent; a fault of the environment may pass.
fn failure(error: &EngineError) -> StepOutcome {
    if matches!(error, EngineError::ShuttingDown) {
        return StepOutcome::Released;
    }
    let is_lasting = if let EngineError::Input(wrong) = error {
        // An executor that is down declares no capabilities.
        !matches!(wrong.field.as_str(), "task_type" | "profile")
    } else {
        let is_wrong = matches!(error, EngineError::Schema(_) | EngineError::Policy(_));
        is_wrong || error.code() == ProblemCode::AccountSuspended
    };
    StepOutcome::Failed { error: error.to_string(), is_lasting }
}

fn log_lease_lost(step: &TakenAgentStep) {
    let (run, agent) = (&step.run.id, &step.agent_id);
    tracing::info!(
        run.id = run,
        agent.id = agent,
        "step already taken by another worker; discarding the outcome"
    );
}

fn undecided(task: &Task) -> StepOutcome {
    let has_refused = !task.proposals.is_empty()
        && task.proposals.iter().all(|proposal| proposal.standing == ProposalStanding::Rejected);
    let (error, is_lasting) = match &task.end {
        Some(TaskEnd::Failed { reason } | TaskEnd::Expired { reason }) => {
            (reason.clone(), has_refused)
        }
        Some(TaskEnd::Cancelled { reason }) if reason == RUN_CANCELLED => {
            return StepOutcome::Cancelled;
        }
        Some(TaskEnd::Cancelled { reason }) => (format!("its task was cancelled: {reason}"), true),
        Some(TaskEnd::Finalized { .. }) | None => {
            ("its task ended without a decision".to_owned(), true)
        }
    };
    StepOutcome::Failed { error, is_lasting }
}

fn conclusion(found: TaskCandidateRow) -> StepConclusion {
    let inline = found.evidence.inline.iter().map(|it| digest(it.content.as_bytes()));
    let refs = found.evidence.refs.iter().map(|it| it.digest.clone());
    let evidence: BTreeSet<String> = inline.chain(refs).collect();
    StepConclusion { output: found.output, candidate_id: found.id, evidence }
}
