//! The metrics of executors. Their names come from the registry, and removing an executor removes
//! its series.

use std::{collections::BTreeSet, sync::atomic::AtomicU64};

use jurat_core::{
    executor::{BreakerState, Probe},
    metric,
    round::replica::{FailureCode, Label, Replica},
};
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{HistogramFamily, SecondsBuckets, histograms, register, seconds};
use crate::Engine;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExecutorLabels {
    executor: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReplicaLabels {
    executor: String,
    label: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    executor: String,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CircuitLabels {
    executor: String,
    state: &'static str,
}

#[derive(Debug)]
pub(crate) struct ExecutorMetrics {
    /// Executors with series.
    known: Mutex<BTreeSet<String>>,
    replicas: Family<ReplicaLabels, Counter>,
    seconds: HistogramFamily<ExecutorLabels>,
    failures: Family<FailureLabels, Counter>,
    circuit: Family<CircuitLabels, Gauge>,
    up: Family<ExecutorLabels, Gauge>,
    probe_age: Family<ExecutorLabels, Gauge<f64, AtomicU64>>,
}

impl ExecutorMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            known: Mutex::default(),
            replicas: Family::default(),
            seconds: histograms(registry, &metric::REPLICA_SECONDS, SecondsBuckets),
            failures: Family::default(),
            circuit: Family::default(),
            up: Family::default(),
            probe_age: Family::default(),
        };
        register(registry, &metric::REPLICAS, figures.replicas.clone());
        register(registry, &metric::REPLICA_FAILURES, figures.failures.clone());
        register(registry, &metric::EXECUTOR_CIRCUIT, figures.circuit.clone());
        register(registry, &metric::EXECUTOR_UP, figures.up.clone());
        register(registry, &metric::EXECUTOR_PROBE_AGE, figures.probe_age.clone());
        figures
    }

    /// Counts ended replicas.
    pub(crate) fn ended(&self, replicas: &[Replica]) {
        for replica in replicas {
            self.count(replica);
        }
    }

    fn count(&self, replica: &Replica) {
        let executor = &replica.executor;
        let mut known = self.known.lock();
        if !known.contains(executor) {
            known.insert(executor.clone());
        }
        let labels =
            ReplicaLabels { executor: executor.clone(), label: replica.answer.label().as_str() };
        self.replicas.get_or_create(&labels).inc();
        let labels = ExecutorLabels { executor: executor.clone() };
        let failure = replica.answer.failure();
        // An executor that was not called took no time.
        if failure.is_none_or(|failure| failure.code != FailureCode::Unavailable) {
            self.seconds.get_or_create(&labels).observe(seconds(replica.latency_ms));
        }
        if let Some(failure) = failure {
            let labels = FailureLabels { executor: executor.clone(), code: failure.code.as_str() };
            self.failures.get_or_create(&labels).inc();
        }
    }

    /// Reads the health of the executors, and drops the series of removed ones.
    pub(super) fn refresh(&self, engine: &Engine) {
        self.circuit.clear();
        self.up.clear();
        self.probe_age.clear();
        let Some(view) = engine.inner.pool.last_view() else { return };
        let mut known = self.known.lock();
        known.retain(|name| {
            let stays = view.pool.executors.contains_key(name);
            if !stays {
                self.forget(name);
            }
            stays
        });
        drop(known);
        let now = engine.inner.clock.now();
        for name in view.pool.executors.keys() {
            let standing = engine.inner.pool.health_of(name);
            let state = state(standing.conduct.strictest(now).0);
            for word in ["closed", "open", "half_open"] {
                let labels = CircuitLabels { executor: name.clone(), state: word };
                self.circuit.get_or_create(&labels).set(i64::from(word == state));
            }
            let labels = ExecutorLabels { executor: name.clone() };
            let is_up = standing.probe.as_ref().is_some_and(Probe::is_healthy);
            self.up.get_or_create(&labels).set(i64::from(is_up));
            if let Some(probe) = &standing.probe {
                self.probe_age.get_or_create(&labels).set(seconds(now.millis_since(probe.at)));
            }
        }
    }

    /// Drops the series of a removed executor.
    pub(crate) fn forget(&self, name: &str) {
        for label in Label::ALL {
            self.replicas
                .remove(&ReplicaLabels { executor: name.to_owned(), label: label.as_str() });
        }
        for code in FailureCode::ALL {
            self.failures.remove(&FailureLabels { executor: name.to_owned(), code: code.as_str() });
        }
        self.seconds.remove(&ExecutorLabels { executor: name.to_owned() });
    }
}

const fn state(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "closed",
        BreakerState::Open(_) => "open",
        BreakerState::HalfOpen => "half_open",
    }
}
