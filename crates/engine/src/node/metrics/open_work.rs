//! The metrics of open work in the store, read now and then.

use jurat_core::{agent_run::AgentRunStatus, metric, task::TaskPhase, time::Timestamp};
use jurat_store::{Behalf, OpenWorkCounts};
use parking_lot::Mutex;
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{LabelPairs, register};
use crate::Engine;

/// How long counts are shown before the store is read again.
const FRESH_MS: u64 = 10_000;

#[derive(Debug)]
pub(crate) struct OpenWorkMetrics {
    tasks: Family<LabelPairs<1>, Gauge>,
    runs: Family<LabelPairs<1>, Gauge>,
    queued: Gauge,
    pending: Gauge,
    deliveries: Gauge,
    asked_at: Mutex<Option<Timestamp>>,
}

impl OpenWorkMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            tasks: Family::default(),
            runs: Family::default(),
            queued: Gauge::default(),
            pending: Gauge::default(),
            deliveries: Gauge::default(),
            asked_at: Mutex::default(),
        };
        register(registry, &metric::TASKS_OPEN, figures.tasks.clone());
        register(registry, &metric::RUNS_OPEN, figures.runs.clone());
        register(registry, &metric::RUN_STEPS_QUEUED, figures.queued.clone());
        register(registry, &metric::AGENT_EVENTS_PENDING, figures.pending.clone());
        register(registry, &metric::WEBHOOK_DELIVERIES_PENDING, figures.deliveries.clone());
        figures
    }

    /// Reads the store, unless it was read a moment ago.
    pub(super) async fn refresh(&self, engine: &Engine) {
        if !self.is_due(engine.inner.clock.now()) {
            return;
        }
        match engine.inner.store.open_work().counts(&Behalf::Platform).await {
            Ok(counts) => self.show(&counts),
            Err(error) => {
                tracing::warn!(error = %error, "could not count the open work for the metrics");
            }
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let mut asked_at = self.asked_at.lock();
        let is_due = asked_at.is_none_or(|at| now < at || FRESH_MS <= now.millis_since(at));
        if is_due {
            *asked_at = Some(now);
        }
        is_due
    }

    fn show(&self, counts: &OpenWorkCounts) {
        for phase in TaskPhase::ALL {
            let found = counts.tasks.iter().find(|(it, _)| it == phase);
            let count = found.map_or(0, |(_, count)| *count);
            // Of the ended phases, only a task that waits for its next epoch is open.
            let is_end =
                matches!(phase, TaskPhase::Failed | TaskPhase::Expired | TaskPhase::Cancelled);
            if !is_end || count != 0 {
                self.tasks.get_or_create(&[("state", phase.as_str())]).set(whole(count));
            }
        }
        for status in AgentRunStatus::ALL.iter().filter(|it| !it.is_over()) {
            let found = counts.runs.iter().find(|(it, _)| it == status);
            let count = found.map_or(0, |(_, count)| *count);
            self.runs.get_or_create(&[("status", status.as_str())]).set(whole(count));
        }
        self.queued.set(whole(counts.queued.count));
        self.pending.set(whole(counts.events.count));
        self.deliveries.set(whole(counts.deliveries.count));
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
