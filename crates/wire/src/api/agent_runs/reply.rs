//! Agent runs as replies and events show them.

use std::borrow::Cow;

use jurat_core::{
    agent_run::{AgentRun, AgentRunEvent, AgentRunStatus, AgentRunSummary, StepStatus},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::kit::{
    time::Time,
    words::{RunEventType, RunState, StepState},
};

/// Name of a stream event that reports progress of the run.
pub const RUN_EVENT: &str = "run_event";
/// Name of the last event of a stream, which shows the run after its end.
pub const RUN: &str = "run";

/// Number of steps of a run by status.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RunCounts)]
pub struct AgentRunCounts {
    pub created: u32,
    pub queued: u32,
    pub leased: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub retry_wait: u32,
    pub cancelled: u32,
    /// Always 0: no step is executed by another node's executors.
    pub remote_dispatched: u32,
}

/// A run in a list.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RunSummary)]
pub struct AgentRunLine {
    pub run_id: String,
    pub status: RunState,
    pub task_type: String,
    pub created_at: Time,
    pub updated_at: Time,
    /// When the first step was taken.
    #[schema(required = true)]
    pub started_at: Option<Time>,
    #[schema(required = true)]
    pub finished_at: Option<Time>,
    pub counts: AgentRunCounts,
    /// How often the agents were asked again.
    pub iteration: u32,
    /// Why it failed.
    #[schema(required = true)]
    pub error: Option<String>,
}

/// A run in a list.
pub fn line(run: AgentRunSummary) -> AgentRunLine {
    let count = |status: StepStatus| run.counts.get(&status).copied().unwrap_or(0);
    let counts = AgentRunCounts {
        created: count(StepStatus::Created),
        queued: count(StepStatus::Queued),
        leased: count(StepStatus::Leased),
        succeeded: count(StepStatus::Succeeded),
        failed: count(StepStatus::Failed),
        retry_wait: count(StepStatus::RetryWait),
        cancelled: count(StepStatus::Cancelled),
        remote_dispatched: 0,
    };
    AgentRunLine {
        run_id: run.run_id,
        status: RunState(run.status),
        task_type: run.task_type,
        created_at: Time(run.created_at),
        updated_at: Time(run.updated_at),
        started_at: run.started_at.map(Time),
        finished_at: run.finished_at.map(Time),
        counts,
        iteration: run.iteration,
        error: run.error,
    }
}

/// A run with its status and steps.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct AgentRunBody<'a> {
    pub run_id: String,
    pub status: RunState,
    pub task_type: String,
    pub created_at: Time,
    pub updated_at: Time,
    /// When the first step was taken.
    #[schema(required = true)]
    pub started_at: Option<Time>,
    #[schema(required = true)]
    pub finished_at: Option<Time>,
    pub counts: AgentRunCounts,
    /// How often the agents were asked again.
    pub iteration: u32,
    /// Why it failed.
    #[schema(required = true)]
    pub error: Option<String>,
    /// One for each agent, in order.
    pub steps: Vec<AgentStepBody<'a>>,
}

/// The step of one agent in a run.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RunStep)]
pub struct AgentStepBody<'a> {
    pub agent_id: Cow<'a, str>,
    pub executor: Cow<'a, str>,
    pub profile: Cow<'a, str>,
    pub weight: f64,
    pub priority: i32,
    pub status: StepState,
    /// Number of the attempt, from 1 in each iteration.
    pub attempt: u32,
    /// The task of this attempt, once a worker has taken it.
    #[schema(required = true)]
    pub task_id: Option<String>,
    /// The worker that has the step.
    #[schema(required = true)]
    pub worker: Option<Cow<'a, str>>,
    /// Why the last attempt failed.
    #[schema(required = true)]
    pub error: Option<Cow<'a, str>>,
}

/// A run with its steps.
pub fn body(run: &AgentRun) -> AgentRunBody<'_> {
    let summary = line(run.summary());
    let steps = run.spec.agents.iter().zip(&run.steps).map(|(agent, step)| AgentStepBody {
        agent_id: Cow::Borrowed(&agent.agent_id),
        executor: Cow::Borrowed(&agent.executor),
        profile: Cow::Borrowed(&agent.profile),
        weight: agent.weight,
        priority: agent.priority,
        status: StepState(step.status),
        attempt: step.attempt,
        task_id: step.begun_at.map(|_| run.task_id(&agent.agent_id, step.attempt)),
        worker: step.lease.as_ref().map(|lease| lease.worker.as_str()).map(Cow::Borrowed),
        error: step.error.as_deref().map(Cow::Borrowed),
    });
    AgentRunBody {
        run_id: summary.run_id,
        status: summary.status,
        task_type: summary.task_type,
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        started_at: summary.started_at,
        finished_at: summary.finished_at,
        counts: summary.counts,
        iteration: summary.iteration,
        error: summary.error,
        steps: steps.collect(),
    }
}

/// A run that was submitted.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RunSubmitted)]
pub struct AgentRunSubmitted<'a> {
    pub ok: bool,
    pub run_id: Cow<'a, str>,
    /// Whether it has started.
    pub kicked_off: bool,
    pub status: RunState,
}

/// The reply to a submission; the run has started unless its status is `CREATED`.
pub fn submitted(run_id: &str, status: AgentRunStatus) -> AgentRunSubmitted<'_> {
    let kicked_off = status != AgentRunStatus::Created;
    AgentRunSubmitted {
        ok: true,
        run_id: Cow::Borrowed(run_id),
        kicked_off,
        status: RunState(status),
    }
}

/// The result of a run.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RunResult)]
pub struct AgentRunResultBody<'a> {
    pub run_id: Cow<'a, str>,
    pub status: RunState,
    #[schema(required = true)]
    pub finished_at: Option<Time>,
    /// Why it failed.
    #[schema(required = true)]
    pub error: Option<Cow<'a, str>>,
    /// Null until the run has ended.
    #[schema(required = true, value_type = Option<Object>)]
    pub result: Option<Cow<'a, Value>>,
}

impl AgentRunResultBody<'_> {
    /// The aggregation of a run that has ended.
    pub fn aggregation(&self) -> ResultAggregation {
        let document = self.result.as_deref().and_then(|result| result.get("aggregation"));
        document.and_then(|it| ResultAggregation::deserialize(it).ok()).unwrap_or_default()
    }
}

/// How a run combined the outputs of its agents, read from its result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ResultAggregation {
    /// Null if there is none.
    pub final_decision: Value,
    /// Null if there is none.
    pub final_answer: Value,
    pub buckets: Vec<ResultBucket>,
}

/// The votes on one part of the result.
#[derive(Debug, Clone, Deserialize)]
pub struct ResultBucket {
    pub name: String,
    /// The rule that broke a tie.
    pub decided_by: Option<String>,
    /// Why there is no value.
    pub unresolved: Option<String>,
    pub candidates: Vec<BucketCandidate>,
}

/// A value, and the agents that gave it.
#[derive(Debug, Clone, Deserialize)]
pub struct BucketCandidate {
    pub value: Value,
    pub agents: Vec<String>,
}

/// The result of a run.
pub fn result_body(run: &AgentRun) -> AgentRunResultBody<'_> {
    AgentRunResultBody {
        run_id: Cow::Borrowed(&run.spec.run_id),
        status: RunState(run.status),
        finished_at: run.finished_at.map(Time),
        error: run.error.as_deref().map(Cow::Borrowed),
        result: run.result.as_ref().map(Cow::Borrowed),
    }
}

/// An event of a run.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RunEvent)]
pub struct AgentRunEventBody<'a> {
    /// From 1, without gaps.
    pub id: u64,
    pub run_id: Cow<'a, str>,
    pub event_type: RunEventType,
    #[schema(value_type = Object)]
    pub payload: Cow<'a, Value>,
    pub created_at: Time,
}

/// An event of a run.
pub fn event<'a>(
    run_id: &'a str,
    id: u64,
    event: &'a AgentRunEvent,
    at: Timestamp,
) -> AgentRunEventBody<'a> {
    AgentRunEventBody {
        id,
        run_id: Cow::Borrowed(run_id),
        event_type: RunEventType(event.kind),
        payload: Cow::Borrowed(&event.body),
        created_at: Time(at),
    }
}
