//! What is told of a run.

use jurat_core::{
    agent_run::{AgentRun, AgentRunEvent, AgentRunStatus, AgentRunSummary, StepStatus},
    time::Timestamp,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::kit::{
    time::Time,
    words::{RunEventType, RunState, StepState},
};

/// The name of an event of a stream that tells what happened.
pub const RUN_EVENT: &str = "run_event";
/// The name of the last event of a stream: the run as it ended.
pub const RUN: &str = "run";

/// Number of steps of a run by status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunCounts)]
pub struct AgentRunCounts {
    created: u32,
    queued: u32,
    leased: u32,
    succeeded: u32,
    failed: u32,
    retry_wait: u32,
    cancelled: u32,
    /// Always 0: no step is executed by another node's executors.
    remote_dispatched: u32,
}

/// A run in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunSummary)]
pub struct AgentRunLine {
    run_id: String,
    status: RunState,
    task_type: String,
    created_at: Time,
    updated_at: Time,
    /// When the first step was taken.
    #[schema(required = true)]
    started_at: Option<Time>,
    #[schema(required = true)]
    finished_at: Option<Time>,
    counts: AgentRunCounts,
    /// How often the agents were asked again.
    iteration: u32,
    /// Why it failed.
    #[schema(required = true)]
    error: Option<String>,
}

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
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct AgentRunBody<'a> {
    run_id: String,
    status: RunState,
    task_type: String,
    created_at: Time,
    updated_at: Time,
    /// When the first step was taken.
    #[schema(required = true)]
    started_at: Option<Time>,
    #[schema(required = true)]
    finished_at: Option<Time>,
    counts: AgentRunCounts,
    /// How often the agents were asked again.
    iteration: u32,
    /// Why it failed.
    #[schema(required = true)]
    error: Option<String>,
    /// One for each agent, in order.
    steps: Vec<AgentStepBody<'a>>,
}

/// The step of one agent in a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunStep)]
pub struct AgentStepBody<'a> {
    agent_id: &'a str,
    executor: &'a str,
    profile: &'a str,
    weight: f64,
    priority: i32,
    status: StepState,
    /// Number of the attempt, from 1 in each iteration.
    attempt: u32,
    /// The task of this attempt, once a worker has taken it.
    #[schema(required = true)]
    task_id: Option<String>,
    /// The worker that has the step.
    #[schema(required = true)]
    worker: Option<&'a str>,
    /// Why the last attempt failed.
    #[schema(required = true)]
    error: Option<&'a str>,
}

pub fn body(run: &AgentRun) -> AgentRunBody<'_> {
    let summary = line(run.summary());
    let steps = run.spec.agents.iter().zip(&run.steps).map(|(agent, step)| AgentStepBody {
        agent_id: &agent.agent_id,
        executor: &agent.executor,
        profile: &agent.profile,
        weight: agent.weight,
        priority: agent.priority,
        status: StepState(step.status),
        attempt: step.attempt,
        task_id: step.begun_at.map(|_| run.task_id(&agent.agent_id, step.attempt)),
        worker: step.lease.as_ref().map(|lease| lease.worker.as_str()),
        error: step.error.as_deref(),
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
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunSubmitted)]
pub struct AgentRunSubmitted<'a> {
    ok: bool,
    run_id: &'a str,
    /// Whether it has started.
    kicked_off: bool,
    status: RunState,
}

pub fn submitted(run_id: &str, status: AgentRunStatus) -> AgentRunSubmitted<'_> {
    let kicked_off = status != AgentRunStatus::Created;
    AgentRunSubmitted { ok: true, run_id, kicked_off, status: RunState(status) }
}

/// The result of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunResult)]
pub struct AgentRunResultBody<'a> {
    run_id: &'a str,
    status: RunState,
    #[schema(required = true)]
    finished_at: Option<Time>,
    /// Why it failed.
    #[schema(required = true)]
    error: Option<&'a str>,
    /// Null until the run has ended.
    #[schema(required = true, value_type = Option<Object>)]
    result: Option<&'a Value>,
}

pub fn result_body(run: &AgentRun) -> AgentRunResultBody<'_> {
    AgentRunResultBody {
        run_id: &run.spec.run_id,
        status: RunState(run.status),
        finished_at: run.finished_at.map(Time),
        error: run.error.as_deref(),
        result: run.result.as_ref(),
    }
}

/// An event of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunEvent)]
pub struct AgentRunEventBody<'a> {
    /// From 1, without gaps.
    id: u64,
    run_id: &'a str,
    event_type: RunEventType,
    #[schema(value_type = Object)]
    payload: &'a Value,
    created_at: Time,
}

pub fn event<'a>(
    run_id: &'a str,
    id: u64,
    event: &'a AgentRunEvent,
    at: Timestamp,
) -> AgentRunEventBody<'a> {
    AgentRunEventBody {
        id,
        run_id,
        event_type: RunEventType(event.kind),
        payload: &event.body,
        created_at: Time(at),
    }
}
