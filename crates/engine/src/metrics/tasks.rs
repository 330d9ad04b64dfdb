//! What is counted of tasks and of runs of several agents.

use jurat_core::{
    figure,
    task::{Event, Release, Task},
    task_run::{Run, RunEvent, RunEventKind},
    time::Timestamp,
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::{Histograms, Labels, MetricConstructor, histograms, register, seconds};
use crate::Engine;

#[derive(Debug)]
pub(crate) struct TaskFigures {
    ended: Family<Labels<1>, Counter>,
    seconds: Histograms<Labels<1>, Long>,
    released: Family<Labels<1>, Counter>,
    in_flight: Gauge,
    limit: Gauge,
    overdue: Gauge,
    runs: Family<Labels<1>, Counter>,
    run_seconds: Histograms<Labels<1>, Long>,
    steps: Family<Labels<1>, Counter>,
}

impl TaskFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            ended: Family::default(),
            seconds: histograms(registry, &figure::TASK_SECONDS, Long),
            released: Family::default(),
            in_flight: Gauge::default(),
            limit: Gauge::default(),
            overdue: Gauge::default(),
            runs: Family::default(),
            run_seconds: histograms(registry, &figure::RUN_SECONDS, Long),
            steps: Family::default(),
        };
        register(registry, &figure::TASKS, figures.ended.clone());
        register(registry, &figure::TASK_CLAIMS_RELEASED, figures.released.clone());
        register(registry, &figure::TASKS_IN_FLIGHT, figures.in_flight.clone());
        register(registry, &figure::TASKS_LIMIT, figures.limit.clone());
        register(registry, &figure::TASKS_OVERDUE, figures.overdue.clone());
        register(registry, &figure::RUNS, figures.runs.clone());
        register(registry, &figure::RUN_STEPS, figures.steps.clone());
        figures
    }

    /// Counts events of a task that are on record, and the task that they made.
    pub(crate) fn wrote(&self, task: &Task, events: &[Event], at: Timestamp) {
        for event in events {
            if let Event::Released { reason, .. } = event {
                self.released.get_or_create(&[("reason", why(reason))]).inc();
            }
            let Some(state) = end(event) else { continue };
            let began = if task.epoch == 1 { Some(task.created_at) } else { task.started_at };
            let took = at.millis_since(began.unwrap_or(at));
            self.ended.get_or_create(&[("state", state)]).inc();
            self.seconds.get_or_create(&[("state", state)]).observe(seconds(took));
        }
    }

    /// Counts events of a run that are on record, and the run that they made.
    pub(crate) fn ran(&self, run: &Run, events: &[RunEvent]) {
        for outcome in events.iter().filter_map(|event| outcome(event.kind)) {
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

    /// How much is under way now, and since when something is due.
    pub(super) fn refresh(&self, engine: &Engine, due: Option<Timestamp>) {
        let inner = &engine.inner;
        self.in_flight.set(whole(inner.driven.count()));
        self.limit.set(whole(inner.limits.tasks));
        let now = inner.clock.now();
        let late = due.map_or(0, |due| now.millis_since(due) / 1_000);
        self.overdue.set(i64::try_from(late).unwrap_or(i64::MAX));
    }
}

/// How a task ended, or its epoch, where an event ends it.
fn end(event: &Event) -> Option<&'static str> {
    match event.name() {
        "DECISION_FINALIZED" => Some("finalized"),
        "TASK_FAILED" => Some("failed"),
        "TASK_EXPIRED" => Some("expired"),
        "TASK_CANCELLED" => Some("cancelled"),
        _ => None,
    }
}

/// How an attempt at a step ended, where an event ends it.
fn outcome(kind: RunEventKind) -> Option<&'static str> {
    match kind.as_str() {
        "STEP_COMPLETED" => Some("succeeded"),
        "STEP_FAILED" => Some("failed"),
        "STEP_RETRY_WAIT" => Some("retried"),
        "STEP_CANCELLED" => Some("cancelled"),
        "STEP_RELEASED" => Some("released"),
        _ => None,
    }
}

const fn why(reason: &Release) -> &'static str {
    match reason {
        Release::LeaseRanOut => "lease_ran_out",
        Release::Failed { .. } => "failed",
        Release::GivenUp { .. } => "given_up",
        Release::NodeFailed { .. } => "node_failed",
    }
}

/// Makes histograms of what takes up to a day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Long;

impl MetricConstructor<Histogram> for Long {
    fn new_metric(&self) -> Histogram {
        Histogram::new([
            0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 86_400.0,
        ])
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
