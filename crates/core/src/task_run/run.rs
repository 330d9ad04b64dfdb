//! A run as it stands, and what becomes of it when something happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde_json::{Value, json};

use super::{
    AfterRun, AfterStep, AgentSpec, Explored, RunSpec, RunStatus, Said, Signal, StepStatus,
    after_run, after_step, counts, document,
};
use crate::{job::words, time::Timestamp};

words!(
    /// What can be told of a run.
    RunEventKind {
        RunCreated => "RUN_CREATED",
        RunKickoff => "RUN_KICKOFF",
        RunCancelRequested => "RUN_CANCEL_REQUESTED",
        RunRetryRequested => "RUN_RETRY_REQUESTED",
        RunTieReexploreTriggered => "RUN_TIE_REEXPLORE_TRIGGERED",
        RunNullReexploreTriggered => "RUN_NULL_REEXPLORE_TRIGGERED",
        RunFinalized => "RUN_FINALIZED",
        RunFailed => "RUN_FAILED",
        RunCancelled => "RUN_CANCELLED",
        StepLeased => "STEP_LEASED",
        /// The worker that had it stops; another one goes on.
        StepReleased => "STEP_RELEASED",
        StepCompleted => "STEP_COMPLETED",
        StepRetryWait => "STEP_RETRY_WAIT",
        StepFailed => "STEP_FAILED",
        StepCancelled => "STEP_CANCELLED",
    }
);

impl RunEventKind {
    /// Whether nothing follows, unless somebody asks for the run to be tried again.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::RunFinalized | Self::RunFailed | Self::RunCancelled)
    }
}

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    pub kind: RunEventKind,
    pub body: Value,
}

impl RunEvent {
    pub const fn new(kind: RunEventKind, body: Value) -> Self {
        Self { kind, body }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub spec: RunSpec,
    pub status: RunStatus,
    /// How often the agents were asked once more.
    pub iteration: u32,
    /// What was known when this iteration began.
    pub explored: Explored,
    /// Why the agents are asked once more.
    pub signal: Option<Signal>,
    /// One for each agent, in their order.
    pub steps: Vec<Step>,
    /// What came of it, when it is over.
    pub result: Option<Value>,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When the first step was taken.
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// A line of a list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    pub run_id: String,
    pub task_type: String,
    pub status: RunStatus,
    pub iteration: u32,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// How many steps are how far.
    pub counts: BTreeMap<StepStatus, u32>,
}

/// What one agent does in this iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub agent_id: String,
    pub status: StepStatus,
    /// Counted from 1 in each iteration; each has a task of its own.
    pub attempt: u32,
    /// After this one it has failed for good.
    pub last_attempt: u32,
    /// Nobody takes it before.
    pub run_at: Timestamp,
    /// When a worker took this attempt first; its contract is reckoned from here.
    pub begun_at: Option<Timestamp>,
    pub lease: Option<StepLease>,
    /// What it said last, in an earlier iteration too.
    pub conclusion: Option<Conclusion>,
    pub error: Option<String>,
}

/// Who has a step, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLease {
    /// Whoever has another one is late.
    pub token: String,
    pub until: Timestamp,
    pub worker: String,
}

/// What the task of a step came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    pub output: Value,
    pub candidate_id: String,
    /// Digests of what it refers to and of what it brings along.
    pub evidence: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RunCommand {
    Kickoff,
    /// An attempt at a step ended.
    StepEnded {
        agent_id: String,
        token: String,
        outcome: StepOutcome,
    },
    Cancel {
        reason: Option<String>,
    },
    /// Steps that did not succeed are tried again.
    Retry,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    Succeeded(Conclusion),
    /// What is lasting would fail again.
    Failed {
        error: String,
        is_lasting: bool,
    },
    Cancelled,
    /// The worker stops, and the attempt goes on with another.
    Released,
}

/// Why nothing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunRefusal {
    /// The word to begin was given before.
    Begun,
    /// It is over already.
    Over,
    /// It is not over yet.
    NotOver,
    /// Every step succeeded.
    NothingToRetry,
    /// Somebody else has the step by now, or nobody.
    LeaseLost,
}

impl Run {
    /// A run that waits for the word to begin.
    pub fn new(spec: RunSpec, now: Timestamp) -> Self {
        let last_attempt = spec.retry.max_attempts;
        let step = |agent: &AgentSpec| Step {
            agent_id: agent.agent_id.clone(),
            status: StepStatus::Created,
            attempt: 1,
            last_attempt,
            run_at: now,
            begun_at: None,
            lease: None,
            conclusion: None,
            error: None,
        };
        let steps = spec.agents.iter().map(step).collect();
        Self {
            spec,
            status: RunStatus::Created,
            iteration: 0,
            explored: Explored::default(),
            signal: None,
            steps,
            result: None,
            error: None,
            created_at: now,
            updated_at: now,
            started_at: None,
            finished_at: None,
        }
    }

    /// What a list shows of it.
    pub fn summary(&self) -> RunSummary {
        RunSummary {
            run_id: self.spec.run_id.clone(),
            task_type: self.spec.task_type.clone(),
            status: self.status,
            iteration: self.iteration,
            error: self.error.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            counts: counts(self.steps.iter().map(|step| step.status)),
        }
    }

    /// The id of the task of an attempt. The parts of ids have no colons, so no two runs share one.
    pub fn task_id(&self, agent_id: &str, attempt: u32) -> String {
        format!("run-{}:{agent_id}:{}:{attempt}", self.spec.run_id, self.iteration)
    }

    pub fn step(&self, agent_id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.agent_id == agent_id)
    }

    pub fn agent(&self, agent_id: &str) -> Option<&AgentSpec> {
        self.spec.agents.iter().find(|agent| agent.agent_id == agent_id)
    }

    /// What follows from a command; a refusal changes nothing.
    pub fn act(
        &mut self,
        command: RunCommand,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, RunRefusal> {
        let events = match command {
            RunCommand::Kickoff => self.kickoff(now),
            RunCommand::StepEnded { agent_id, token, outcome } => {
                self.step_ended((&agent_id, &token), outcome, now)
            }
            RunCommand::Cancel { reason } => self.cancel(reason.as_deref(), now),
            RunCommand::Retry => self.retry(now),
        }?;
        if !events.is_empty() {
            self.updated_at = now;
        }
        Ok(events)
    }

    fn kickoff(&mut self, now: Timestamp) -> Result<Vec<RunEvent>, RunRefusal> {
        if self.status != RunStatus::Created {
            return Err(RunRefusal::Begun);
        }
        self.status = RunStatus::Queued;
        for step in &mut self.steps {
            step.queue(now);
        }
        Ok(vec![RunEvent::new(RunEventKind::RunKickoff, json!({}))])
    }

    fn cancel(
        &mut self,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, RunRefusal> {
        if self.status.is_over() {
            return Err(RunRefusal::Over);
        }
        if self.status == RunStatus::Cancelling {
            return Ok(Vec::new());
        }
        let body = json!({ "reason": reason });
        let mut events = vec![RunEvent::new(RunEventKind::RunCancelRequested, body)];
        self.status = RunStatus::Cancelling;
        let waiting: Vec<usize> = (0..self.steps.len())
            .filter(|index| self.steps.get(*index).is_some_and(Step::is_waiting))
            .collect();
        for index in waiting {
            if let Some(step) = self.steps.get_mut(index) {
                step.status = StepStatus::Cancelled;
            }
            events.extend(self.told(index, RunEventKind::StepCancelled, json!({})));
        }
        events.extend(self.conclude(now));
        Ok(events)
    }

    fn retry(&mut self, now: Timestamp) -> Result<Vec<RunEvent>, RunRefusal> {
        if !self.status.is_over() {
            return Err(RunRefusal::NotOver);
        }
        let max_attempts = self.spec.retry.max_attempts;
        let mut again = Vec::new();
        for step in self.steps.iter_mut().filter(|it| it.status != StepStatus::Succeeded) {
            if step.begun_at.is_some() {
                step.attempt = step.attempt.saturating_add(1);
            }
            step.last_attempt = step.attempt.saturating_add(max_attempts.saturating_sub(1));
            step.queue(now);
            again.push(step.agent_id.clone());
        }
        if again.is_empty() {
            return Err(RunRefusal::NothingToRetry);
        }
        self.status = RunStatus::Queued;
        (self.result, self.error, self.finished_at) = (None, None, None);
        Ok(vec![RunEvent::new(RunEventKind::RunRetryRequested, json!({ "agents": again }))])
    }

    fn step_ended(
        &mut self,
        (agent_id, token): (&str, &str),
        outcome: StepOutcome,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, RunRefusal> {
        let holds = |step: &Step| {
            let lease = step.lease.as_ref();
            step.agent_id == agent_id && lease.is_some_and(|lease| lease.token == token)
        };
        let index = self.steps.iter().position(holds).ok_or(RunRefusal::LeaseLost)?;
        let (retry, is_ending) = (self.spec.retry, self.status == RunStatus::Cancelling);
        let step = self.steps.get_mut(index).ok_or(RunRefusal::LeaseLost)?;
        step.lease = None;
        let (kind, more) = match outcome {
            StepOutcome::Succeeded(conclusion) => {
                let more = json!({ "candidate_id": conclusion.candidate_id });
                (step.status, step.error) = (StepStatus::Succeeded, None);
                step.conclusion = Some(conclusion);
                (RunEventKind::StepCompleted, more)
            }
            StepOutcome::Released if !is_ending => {
                step.status = StepStatus::Queued;
                step.run_at = now;
                (RunEventKind::StepReleased, json!({}))
            }
            StepOutcome::Cancelled | StepOutcome::Released => {
                step.status = StepStatus::Cancelled;
                (RunEventKind::StepCancelled, json!({}))
            }
            StepOutcome::Failed { error, is_lasting } => {
                let last = is_lasting || is_ending;
                let tries = super::RetrySpec { max_attempts: step.last_attempt, ..retry };
                let after = after_step(tries, step.attempt, last, now);
                step.failed(&error, after)
            }
        };
        let mut events: Vec<RunEvent> = self.told(index, kind, more).into_iter().collect();
        if kind == RunEventKind::StepRetryWait
            && let Some(step) = self.steps.get_mut(index)
        {
            step.attempt = step.attempt.saturating_add(1);
            step.begun_at = None;
        }
        events.extend(self.conclude(now));
        Ok(events)
    }

    /// An event of a step, with what is told of each.
    fn told(&self, index: usize, kind: RunEventKind, more: Value) -> Option<RunEvent> {
        let step = self.steps.get(index)?;
        let mut body = json!({
            "agent_id": step.agent_id,
            "iteration": self.iteration,
            "attempt": step.attempt,
            "task_id": self.task_id(&step.agent_id, step.attempt),
        });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        Some(RunEvent::new(kind, body))
    }

    /// Ends the run, or asks the agents once more, when no step is left.
    fn conclude(&mut self, now: Timestamp) -> Vec<RunEvent> {
        if !self.steps.iter().all(|step| step.status.is_over()) {
            return Vec::new();
        }
        if self.status == RunStatus::Cancelling {
            return self.end(RunStatus::Cancelled, &[], now);
        }
        let explored = self.explored_by_now();
        let said = self.said();
        match after_run(&self.spec, &said, &explored) {
            AfterRun::Finalized { buckets } => self.end(RunStatus::Finalized, &buckets, now),
            AfterRun::Failed => {
                self.error = Some(self.why_nobody());
                self.end(RunStatus::Failed, &[], now)
            }
            AfterRun::Reexplore { signal, .. } => {
                self.explored = explored;
                vec![self.ask_again(signal, now)]
            }
        }
    }

    fn explored_by_now(&self) -> Explored {
        let conclusions = self.steps.iter().filter_map(|step| step.conclusion.as_ref());
        let evidence = conclusions.flat_map(|it| it.evidence.iter().cloned()).collect();
        if self.iteration == 0 {
            self.explored.seeded(&evidence)
        } else {
            self.explored.after(&evidence)
        }
    }

    /// What the agents said that succeeded, in their order.
    pub fn said(&self) -> Vec<Said> {
        let said = self.spec.agents.iter().zip(&self.steps).filter_map(|(agent, step)| {
            let conclusion = step.conclusion.as_ref()?;
            let output = conclusion.output.clone();
            Some(Said { agent_id: agent.agent_id.clone(), weight: agent.weight, output })
        });
        said.collect()
    }

    fn ask_again(&mut self, signal: Signal, now: Timestamp) -> RunEvent {
        let kind = if signal.is_tie() {
            RunEventKind::RunTieReexploreTriggered
        } else {
            RunEventKind::RunNullReexploreTriggered
        };
        let body = signal.document();
        self.iteration = signal.iteration;
        self.signal = Some(signal);
        self.status = RunStatus::Queued;
        for step in &mut self.steps {
            step.attempt = 1;
            step.last_attempt = self.spec.retry.max_attempts;
            step.queue(now);
        }
        RunEvent::new(kind, body)
    }

    fn end(
        &mut self,
        status: RunStatus,
        buckets: &[super::Bucket],
        now: Timestamp,
    ) -> Vec<RunEvent> {
        self.status = status;
        self.finished_at = Some(now);
        let result = document::result(self, buckets);
        let aggregation = result.get("aggregation").cloned().unwrap_or_default();
        let member = |name: &str| aggregation.get(name).cloned().unwrap_or_default();
        let event = match status {
            RunStatus::Failed => {
                RunEvent::new(RunEventKind::RunFailed, json!({ "error": self.error }))
            }
            RunStatus::Cancelled => RunEvent::new(RunEventKind::RunCancelled, json!({})),
            RunStatus::Created
            | RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Cancelling
            | RunStatus::Finalized => RunEvent::new(
                RunEventKind::RunFinalized,
                json!({
                    "final_decision": member("final_decision"),
                    "final_answer": member("final_answer"),
                    "iteration": self.iteration,
                }),
            ),
        };
        self.result = Some(result);
        vec![event]
    }

    fn why_nobody(&self) -> String {
        let why = |step: &Step| {
            format!("{}: {}", step.agent_id, step.error.as_deref().unwrap_or("it was cancelled"))
        };
        let all: Vec<String> = self.steps.iter().map(why).collect();
        format!("no agent succeeded; {}", all.join("; "))
    }
}

impl Step {
    /// Whether no worker has it, and it is not over.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.status, StepStatus::Created | StepStatus::Queued | StepStatus::RetryWait)
    }

    /// What it said before stands until it says something else.
    fn queue(&mut self, now: Timestamp) {
        self.status = StepStatus::Queued;
        self.run_at = now;
        self.begun_at = None;
        (self.lease, self.error) = (None, None);
    }

    fn failed(&mut self, error: &str, after: AfterStep) -> (RunEventKind, Value) {
        self.error = Some(error.to_owned());
        match after {
            AfterStep::Retry { at } => {
                self.status = StepStatus::RetryWait;
                self.run_at = at;
                let more = json!({ "error": error, "retry_at_ms": at.millis() });
                (RunEventKind::StepRetryWait, more)
            }
            AfterStep::Failed => {
                self.status = StepStatus::Failed;
                (RunEventKind::StepFailed, json!({ "error": error }))
            }
        }
    }
}
