//! The metrics of work in progress and of queues, read on demand.

use std::sync::atomic::Ordering;

use jurat_core::metric;
use jurat_store::StoreLoad;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{LabelPairs, register};
use crate::Engine;

#[derive(Debug, Default)]
pub(super) struct LoadMetrics {
    rounds: Gauge,
    rounds_limit: Gauge,
    writes_waiting: Gauge,
    connections: Family<LabelPairs<1>, Gauge>,
    checks_waiting: Gauge,
    checks_refused: Counter,
}

impl LoadMetrics {
    pub(super) fn new(registry: &mut Registry, store: &StoreLoad) -> Self {
        let figures = Self::default();
        register(registry, &metric::ROUNDS_IN_FLIGHT, figures.rounds.clone());
        register(registry, &metric::ROUNDS_LIMIT, figures.rounds_limit.clone());
        register(registry, &metric::STORE_WRITES_WAITING, figures.writes_waiting.clone());
        register(registry, &metric::STORE_CONNECTIONS, figures.connections.clone());
        register(registry, &metric::CHECKS_WAITING, figures.checks_waiting.clone());
        register(registry, &metric::CHECKS_REFUSED, figures.checks_refused.clone());
        if let Some(sizes) = &store.commit_sizes {
            register(registry, &metric::STORE_COMMIT_WRITES, sizes.clone());
        }
        figures
    }

    pub(super) fn refresh(&self, engine: &Engine) {
        let inner = &engine.inner;
        let limit = inner.limits.rounds;
        self.rounds.set(whole(inner.round_capacity.in_use()));
        self.rounds_limit.set(whole(limit));
        let store = inner.store.load();
        self.writes_waiting.set(whole(store.writes_waiting));
        if let Some(connections) = store.connections {
            for (state, count) in [("used", connections.used), ("idle", connections.idle)] {
                self.connections.get_or_create(&[("state", state)]).set(i64::from(count));
            }
        }
        self.checks_waiting.set(whole(inner.bounded.waiting()));
        self.checks_refused.inner().store(inner.bounded.refused(), Ordering::Relaxed);
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
