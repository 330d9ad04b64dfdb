//! The state of an agent run, and the commands that change it.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde_json::{Value, json};

use super::{
    AgentOutput, AgentRunOutcome, AgentRunSpec, AgentRunStatus, AgentSpec, ExploreProgress,
    ReexploreSignal, StepRetryDecision, StepStatus, after_agent_run, after_step, counts, document,
};
use crate::{round::job::words, time::Timestamp};

words!(
    /// The kind of an event of a run.
    AgentRunEventKind {
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
        /// The worker stops, and another worker continues the attempt.
        StepReleased => "STEP_RELEASED",
        StepCompleted => "STEP_COMPLETED",
        StepRetryWait => "STEP_RETRY_WAIT",
        StepFailed => "STEP_FAILED",
        StepCancelled => "STEP_CANCELLED",
    }
);

impl AgentRunEventKind {
    /// Whether the event ends the run. Only a retry follows it.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::RunFinalized | Self::RunFailed | Self::RunCancelled)
    }
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunEvent {
    pub kind: AgentRunEventKind,
    pub body: Value,
}

impl AgentRunEvent {
    /// An event of this kind.
    pub const fn new(kind: AgentRunEventKind, body: Value) -> Self {
        Self { kind, body }
    }
}

/// An agent run with its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRun {
    pub spec: AgentRunSpec,
    pub status: AgentRunStatus,
    /// How many times the agents were asked again.
    pub iteration: u32,
    /// The progress when this iteration began.
    pub explored: ExploreProgress,
    /// Why the agents are asked again.
    pub signal: Option<ReexploreSignal>,
    /// One step for each agent, in their order.
    pub steps: Vec<AgentStep>,
    /// The recorded result, once the run has ended.
    pub result: Option<Value>,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When a worker took the first step.
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// A run as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRunSummary {
    pub run_id: String,
    pub task_type: String,
    pub status: AgentRunStatus,
    pub iteration: u32,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// How many steps have each status.
    pub counts: BTreeMap<StepStatus, u32>,
}

/// The work of one agent in this iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentStep {
    pub agent_id: String,
    pub status: StepStatus,
    /// Counts from 1 in each iteration; every attempt has a task of its own.
    pub attempt: u32,
    /// If this attempt fails, the step has failed.
    pub last_attempt: u32,
    /// No worker takes the step before this time.
    pub run_at: Timestamp,
    /// When a worker first took this attempt; the contract's deadlines count from here.
    pub begun_at: Option<Timestamp>,
    pub lease: Option<StepLease>,
    /// Its latest conclusion, which may come from an earlier iteration.
    pub conclusion: Option<StepConclusion>,
    pub error: Option<String>,
}

/// The lease of a worker on a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLease {
    /// A worker with another token has lost the lease.
    pub token: String,
    pub until: Timestamp,
    pub worker: String,
}

/// The result of a step's task.
#[derive(Debug, Clone, PartialEq)]
pub struct StepConclusion {
    pub output: Value,
    pub candidate_id: String,
    /// Digests of the evidence that the output references and carries.
    pub evidence: BTreeSet<String>,
}

/// A command that changes a run.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRunCommand {
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
    /// Tries the steps that did not succeed again.
    Retry,
}

/// How an attempt at a step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    Succeeded(StepConclusion),
    /// A permanent failure would fail again.
    Failed {
        error: String,
        is_lasting: bool,
    },
    Cancelled,
    /// The worker stops, and another worker continues the attempt.
    Released,
}

/// Why a command was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRunRejection {
    /// The run was started before.
    Begun,
    /// The run has ended already.
    Over,
    /// The run has not ended yet.
    NotOver,
    /// Every step succeeded.
    NothingToRetry,
    /// The worker no longer holds the lease of the step.
    LeaseLost,
}

impl AgentRun {
    /// A run that waits for the start command.
    pub fn new(spec: AgentRunSpec, now: Timestamp) -> Self {
        let last_attempt = spec.retry.max_attempts;
        let step = |agent: &AgentSpec| AgentStep {
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
            status: AgentRunStatus::Created,
            iteration: 0,
            explored: ExploreProgress::default(),
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

    /// The run as a list shows it.
    pub fn summary(&self) -> AgentRunSummary {
        AgentRunSummary {
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

    /// The task id of an attempt. Ids contain no colons, so two runs never share a task id.
    pub fn task_id(&self, agent_id: &str, attempt: u32) -> String {
        format!("run-{}:{agent_id}:{}:{attempt}", self.spec.run_id, self.iteration)
    }

    /// The step of an agent.
    pub fn step(&self, agent_id: &str) -> Option<&AgentStep> {
        self.steps.iter().find(|step| step.agent_id == agent_id)
    }

    /// The spec of an agent.
    pub fn agent(&self, agent_id: &str) -> Option<&AgentSpec> {
        self.spec.agents.iter().find(|agent| agent.agent_id == agent_id)
    }

    /// Applies a command and returns its events; a refusal changes nothing.
    pub fn act(
        &mut self,
        command: AgentRunCommand,
        now: Timestamp,
    ) -> Result<Vec<AgentRunEvent>, AgentRunRejection> {
        let events = match command {
            AgentRunCommand::Kickoff => self.kickoff(now),
            AgentRunCommand::StepEnded { agent_id, token, outcome } => {
                self.step_ended(&agent_id, &token, outcome, now)
            }
            AgentRunCommand::Cancel { reason } => self.cancel(reason.as_deref(), now),
            AgentRunCommand::Retry => self.retry(now),
        }?;
        if !events.is_empty() {
            self.updated_at = now;
        }
        Ok(events)
    }

    fn kickoff(&mut self, now: Timestamp) -> Result<Vec<AgentRunEvent>, AgentRunRejection> {
        if self.status != AgentRunStatus::Created {
            return Err(AgentRunRejection::Begun);
        }
        self.status = AgentRunStatus::Queued;
        for step in &mut self.steps {
            step.queue(now);
        }
        Ok(vec![AgentRunEvent::new(AgentRunEventKind::RunKickoff, json!({}))])
    }

    fn cancel(
        &mut self,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<AgentRunEvent>, AgentRunRejection> {
        if self.status.is_over() {
            return Err(AgentRunRejection::Over);
        }
        if self.status == AgentRunStatus::Cancelling {
            return Ok(Vec::new());
        }
        let body = json!({ "reason": reason });
        let mut events = vec![AgentRunEvent::new(AgentRunEventKind::RunCancelRequested, body)];
        self.status = AgentRunStatus::Cancelling;
        let waiting: Vec<usize> = (0..self.steps.len())
            .filter(|index| self.steps.get(*index).is_some_and(AgentStep::is_waiting))
            .collect();
        for index in waiting {
            if let Some(step) = self.steps.get_mut(index) {
                step.status = StepStatus::Cancelled;
            }
            events.extend(self.step_event(index, AgentRunEventKind::StepCancelled, json!({})));
        }
        events.extend(self.conclude(now));
        Ok(events)
    }

    fn retry(&mut self, now: Timestamp) -> Result<Vec<AgentRunEvent>, AgentRunRejection> {
        if !self.status.is_over() {
            return Err(AgentRunRejection::NotOver);
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
            return Err(AgentRunRejection::NothingToRetry);
        }
        self.status = AgentRunStatus::Queued;
        (self.result, self.error, self.finished_at) = (None, None, None);
        Ok(vec![AgentRunEvent::new(
            AgentRunEventKind::RunRetryRequested,
            json!({ "agents": again }),
        )])
    }

    fn step_ended(
        &mut self,
        agent_id: &str,
        token: &str,
        outcome: StepOutcome,
        now: Timestamp,
    ) -> Result<Vec<AgentRunEvent>, AgentRunRejection> {
        let holds = |step: &AgentStep| {
            let lease = step.lease.as_ref();
            step.agent_id == agent_id && lease.is_some_and(|lease| lease.token == token)
        };
        let index = self.steps.iter().position(holds).ok_or(AgentRunRejection::LeaseLost)?;
        let (retry, is_ending) = (self.spec.retry, self.status == AgentRunStatus::Cancelling);
        let step = self.steps.get_mut(index).ok_or(AgentRunRejection::LeaseLost)?;
        step.lease = None;
        let (kind, more) = match outcome {
            StepOutcome::Succeeded(conclusion) => {
                let more = json!({ "candidate_id": conclusion.candidate_id });
                (step.status, step.error) = (StepStatus::Succeeded, None);
                step.conclusion = Some(conclusion);
                (AgentRunEventKind::StepCompleted, more)
            }
            StepOutcome::Released if !is_ending => {
                step.status = StepStatus::Queued;
                step.run_at = now;
                (AgentRunEventKind::StepReleased, json!({}))
            }
            StepOutcome::Cancelled | StepOutcome::Released => {
                step.status = StepStatus::Cancelled;
                (AgentRunEventKind::StepCancelled, json!({}))
            }
            StepOutcome::Failed { error, is_lasting } => {
                let last = is_lasting || is_ending;
                let tries = super::RetrySpec { max_attempts: step.last_attempt, ..retry };
                let after = after_step(tries, step.attempt, last, now);
                step.failed(&error, after)
            }
        };
        let mut events: Vec<AgentRunEvent> =
            self.step_event(index, kind, more).into_iter().collect();
        if kind == AgentRunEventKind::StepRetryWait
            && let Some(step) = self.steps.get_mut(index)
        {
            step.attempt = step.attempt.saturating_add(1);
            step.begun_at = None;
        }
        events.extend(self.conclude(now));
        Ok(events)
    }

    /// Builds an event of a step, with the members that every such event has.
    fn step_event(
        &self,
        index: usize,
        kind: AgentRunEventKind,
        more: Value,
    ) -> Option<AgentRunEvent> {
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
        Some(AgentRunEvent::new(kind, body))
    }

    /// If every step has ended, ends the run or asks the agents again.
    fn conclude(&mut self, now: Timestamp) -> Vec<AgentRunEvent> {
        if !self.steps.iter().all(|step| step.status.is_over()) {
            return Vec::new();
        }
        if self.status == AgentRunStatus::Cancelling {
            return self.end(AgentRunStatus::Cancelled, &[], now);
        }
        let explored = self.explored_by_now();
        let said = self.agent_outputs();
        match after_agent_run(&self.spec, &said, &explored) {
            AgentRunOutcome::Finalized { buckets } => {
                self.end(AgentRunStatus::Finalized, &buckets, now)
            }
            AgentRunOutcome::Failed => {
                self.error = Some(self.why_nobody());
                self.end(AgentRunStatus::Failed, &[], now)
            }
            AgentRunOutcome::Reexplore { signal, .. } => {
                self.explored = explored;
                vec![self.ask_again(signal, now)]
            }
        }
    }

    fn explored_by_now(&self) -> ExploreProgress {
        let conclusions = self.steps.iter().filter_map(|step| step.conclusion.as_ref());
        let evidence = conclusions.flat_map(|it| it.evidence.iter().cloned()).collect();
        if self.iteration == 0 {
            self.explored.seeded(&evidence)
        } else {
            self.explored.after(&evidence)
        }
    }

    /// The outputs of the steps that succeeded, in the order of the agents.
    pub fn agent_outputs(&self) -> Vec<AgentOutput> {
        let said = self.spec.agents.iter().zip(&self.steps).filter_map(|(agent, step)| {
            let conclusion = step.conclusion.as_ref()?;
            let output = conclusion.output.clone();
            Some(AgentOutput { agent_id: agent.agent_id.clone(), weight: agent.weight, output })
        });
        said.collect()
    }

    fn ask_again(&mut self, signal: ReexploreSignal, now: Timestamp) -> AgentRunEvent {
        let kind = if signal.is_tie() {
            AgentRunEventKind::RunTieReexploreTriggered
        } else {
            AgentRunEventKind::RunNullReexploreTriggered
        };
        let body = signal.document();
        self.iteration = signal.iteration;
        self.signal = Some(signal);
        self.status = AgentRunStatus::Queued;
        for step in &mut self.steps {
            step.attempt = 1;
            step.last_attempt = self.spec.retry.max_attempts;
            step.queue(now);
        }
        AgentRunEvent::new(kind, body)
    }

    fn end(
        &mut self,
        status: AgentRunStatus,
        buckets: &[super::Bucket],
        now: Timestamp,
    ) -> Vec<AgentRunEvent> {
        self.status = status;
        self.finished_at = Some(now);
        let result = document::result(self, buckets);
        let aggregation = result.get("aggregation").cloned().unwrap_or_default();
        let member = |name: &str| aggregation.get(name).cloned().unwrap_or_default();
        let event = match status {
            AgentRunStatus::Failed => {
                AgentRunEvent::new(AgentRunEventKind::RunFailed, json!({ "error": self.error }))
            }
            AgentRunStatus::Cancelled => {
                AgentRunEvent::new(AgentRunEventKind::RunCancelled, json!({}))
            }
            AgentRunStatus::Created
            | AgentRunStatus::Queued
            | AgentRunStatus::Running
            | AgentRunStatus::Cancelling
            | AgentRunStatus::Finalized => AgentRunEvent::new(
                AgentRunEventKind::RunFinalized,
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
        let why = |step: &AgentStep| {
            format!("{}: {}", step.agent_id, step.error.as_deref().unwrap_or("it was cancelled"))
        };
        let all: Vec<String> = self.steps.iter().map(why).collect();
        format!("no agent succeeded; {}", all.join("; "))
    }
}

impl AgentStep {
    /// Whether no worker holds the step and it has not ended.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.status, StepStatus::Created | StepStatus::Queued | StepStatus::RetryWait)
    }

    /// Queues the step. Its previous conclusion remains until the step has a new one.
    fn queue(&mut self, now: Timestamp) {
        self.status = StepStatus::Queued;
        self.run_at = now;
        self.begun_at = None;
        (self.lease, self.error) = (None, None);
    }

    fn failed(&mut self, error: &str, after: StepRetryDecision) -> (AgentRunEventKind, Value) {
        self.error = Some(error.to_owned());
        match after {
            StepRetryDecision::Retry { at } => {
                self.status = StepStatus::RetryWait;
                self.run_at = at;
                let more = json!({ "error": error, "retry_at_ms": at.millis() });
                (AgentRunEventKind::StepRetryWait, more)
            }
            StepRetryDecision::Failed => {
                self.status = StepStatus::Failed;
                (AgentRunEventKind::StepFailed, json!({ "error": error }))
            }
        }
    }
}
