//! The metrics of tasks and agent runs.

use jurat_core::{
    agent_run::{AgentRun, AgentRunEvent, AgentRunEventKind},
    metric,
    task::{LeaseRelease, Task, TaskEvent},
    time::Timestamp,
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::{HistogramFamily, LabelPairs, MetricConstructor, histograms, register, seconds};
use crate::Engine;

#[derive(Debug)]
pub(crate) struct TaskMetrics {
    ended: Family<LabelPairs<1>, Counter>,
    seconds: HistogramFamily<LabelPairs<1>, DayBuckets>,
    released: Family<LabelPairs<1>, Counter>,
    in_flight: Gauge,
    limit: Gauge,
    overdue: Gauge,
    runs: Family<LabelPairs<1>, Counter>,
    run_seconds: HistogramFamily<LabelPairs<1>, DayBuckets>,
    steps: Family<LabelPairs<1>, Counter>,
}

impl TaskMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            ended: Family::default(),
            seconds: histograms(registry, &metric::TASK_SECONDS, DayBuckets),
            released: Family::default(),
            in_flight: Gauge::default(),
            limit: Gauge::default(),
            overdue: Gauge::default(),
            runs: Family::default(),
            run_seconds: histograms(registry, &metric::RUN_SECONDS, DayBuckets),
            steps: Family::default(),
        };
        register(registry, &metric::TASKS, figures.ended.clone());
        register(registry, &metric::TASK_CLAIMS_RELEASED, figures.released.clone());
        register(registry, &metric::TASKS_IN_FLIGHT, figures.in_flight.clone());
        register(registry, &metric::TASKS_LIMIT, figures.limit.clone());
        register(registry, &metric::TASKS_OVERDUE, figures.overdue.clone());
        register(registry, &metric::RUNS, figures.runs.clone());
        register(registry, &metric::RUN_STEPS, figures.steps.clone());
        figures
    }

    /// Counts recorded events of a task, and the resulting state.
    pub(crate) fn task_written(&self, task: &Task, events: &[TaskEvent], at: Timestamp) {
        for event in events {
            if let TaskEvent::Released { reason, .. } = event {
                self.released.get_or_create(&[("reason", release_label(reason))]).inc();
            }
            let Some(state) = task_end_label(event) else { continue };
            let began = if task.epoch == 1 { Some(task.created_at) } else { task.started_at };
            let took = at.millis_since(began.unwrap_or(at));
            self.ended.get_or_create(&[("state", state)]).inc();
            self.seconds.get_or_create(&[("state", state)]).observe(seconds(took));
        }
    }

    /// Counts recorded events of a run, and the resulting state.
    pub(crate) fn agent_run_written(&self, run: &AgentRun, events: &[AgentRunEvent]) {
        for outcome in events.iter().filter_map(|event| step_outcome_label(event.kind)) {
            self.steps.get_or_create(&[("outcome", outcome)]).inc();
        }
        let is_end = events.iter().any(|event| event.kind.is_end());
        if let (true, Some(finished_at)) = (is_end, run.finished_at) {
            let status = [("status", run.status.as_str())];
            self.runs.get_or_create(&status).inc();
            let took = finished_at.millis_since(run.started_at.unwrap_or(run.created_at));
            self.run_seconds.get_or_create(&status).observe(seconds(took));
        }
    }

    /// Reads how much is in progress, and since when work is due.
    pub(super) fn refresh(&self, engine: &Engine, due: Option<Timestamp>) {
        let inner = &engine.inner;
        self.in_flight.set(whole(inner.tasks_in_flight.count()));
        self.limit.set(whole(inner.limits.tasks));
        let now = inner.clock.now();
        let late = due.map_or(0, |due| now.millis_since(due) / 1_000);
        self.overdue.set(i64::try_from(late).unwrap_or(i64::MAX));
    }
}

/// How a task or its epoch ended, if the event ends it.
fn task_end_label(event: &TaskEvent) -> Option<&'static str> {
    match event.name() {
        "DECISION_FINALIZED" => Some("finalized"),
        "TASK_FAILED" => Some("failed"),
        "TASK_EXPIRED" => Some("expired"),
        "TASK_CANCELLED" => Some("cancelled"),
        _ => None,
    }
}

/// How an attempt at a step ended, if the event ends it.
fn step_outcome_label(kind: AgentRunEventKind) -> Option<&'static str> {
    match kind.as_str() {
        "STEP_COMPLETED" => Some("succeeded"),
        "STEP_FAILED" => Some("failed"),
        "STEP_RETRY_WAIT" => Some("retried"),
        "STEP_CANCELLED" => Some("cancelled"),
        "STEP_RELEASED" => Some("released"),
        _ => None,
    }
}

const fn release_label(reason: &LeaseRelease) -> &'static str {
    match reason {
        LeaseRelease::LeaseRanOut => "lease_ran_out",
        LeaseRelease::Failed { .. } => "failed",
        LeaseRelease::GivenUp { .. } => "given_up",
        LeaseRelease::NodeFailed { .. } => "node_failed",
    }
}

/// Builds histograms of durations up to a day.
#[derive(Debug, Clone, Copy)]
pub(super) struct DayBuckets;

impl MetricConstructor<Histogram> for DayBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([
            0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 86_400.0,
        ])
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
