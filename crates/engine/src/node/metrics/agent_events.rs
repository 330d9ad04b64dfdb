//! The metrics of agent events.

use jurat_core::{metric, task::agent_event::Delivery};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{LabelPairs, register};

#[derive(Debug)]
pub(crate) struct AgentEventMetrics {
    ended: Family<LabelPairs<1>, Counter>,
}

impl AgentEventMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self { ended: Family::default() };
        let states = Delivery::ALL.iter().filter(|it| it.is_over()).map(|it| it.as_str());
        // A rate includes the first event only if there was a zero before.
        for outcome in states.chain(["crowded", "refused"]) {
            drop(figures.ended.get_or_create(&[("outcome", outcome)]));
        }
        register(registry, &metric::AGENT_EVENTS, figures.ended.clone());
        figures
    }

    /// Counts an event whose delivery has ended.
    pub(crate) fn ended(&self, state: Delivery) {
        if state.is_over() {
            self.ended.get_or_create(&[("outcome", state.as_str())]).inc();
        }
    }

    /// Counts events of tasks that were dropped because too many waited.
    pub(crate) fn crowded(&self, count: usize) {
        self.count("crowded", count);
    }

    /// Counts an event that was refused because too many waited.
    pub(crate) fn refused(&self) {
        self.count("refused", 1);
    }

    fn count(&self, outcome: &'static str, count: usize) {
        if count != 0 {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            self.ended.get_or_create(&[("outcome", outcome)]).inc_by(count);
        }
    }
}
