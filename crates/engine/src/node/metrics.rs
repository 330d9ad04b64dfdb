//! The metrics of this node, in one explicit registry.

mod agent_events;
mod executors;
mod judges;
mod load;
mod open_work;
mod payments;
mod peers;
mod process;
mod prometheus;
mod requests;
mod rounds;
mod tasks;
mod webhooks;

use std::{fmt, future::Future, sync::Arc};

use jurat_core::{
    account::caller::{Caller, Scope},
    metric::{self, MetricSpec},
    policy::{Evaluation, Policy},
};
use jurat_store::{Behalf, StoreLoad};
use parking_lot::Mutex;
use prometheus_client::{
    encoding::text,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        histogram::Histogram,
        info::Info,
    },
    registry::{Metric, Registry},
};
use tokio::time::Instant;
use tracing::Instrument as _;

pub(crate) use self::judges::{CacheLookup, JudgeCallOutcome};
pub(crate) use self::payments::FacilitatorAnswer;
pub use self::requests::{OpenConnection, RequestInFlight, RequestMetrics};
use self::{
    agent_events::AgentEventMetrics, executors::ExecutorMetrics, judges::JudgeMetrics,
    load::LoadMetrics, open_work::OpenWorkMetrics, payments::PaymentMetrics, peers::PeerMetrics,
    process::ProcessMetrics, rounds::RoundMetrics, tasks::TaskMetrics, webhooks::WebhookMetrics,
};
use super::pressure::WritesInFlight;
use crate::{Engine, EngineError, access::require_scope, trace};

/// Labels are pairs of a name and a word from a limited set.
type LabelPairs<const N: usize> = [(&'static str, &'static str); N];

/// Bucket limits for durations from a fraction of a millisecond to a minute.
const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// The text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricFormat {
    /// The text format of Prometheus, version 0.0.4, which everything reads.
    Prometheus,
    OpenMetrics,
}

/// All metrics of a node. None of them is global.
pub struct Metrics {
    registry: Mutex<Registry>,
    requests: RequestMetrics,
    pub(crate) rounds: RoundMetrics,
    pub(crate) executors: ExecutorMetrics,
    pub(crate) judges: JudgeMetrics,
    pub(crate) tasks: TaskMetrics,
    pub(crate) agent_events: AgentEventMetrics,
    pub(crate) webhooks: WebhookMetrics,
    pub(crate) payments: PaymentMetrics,
    pub(crate) peers: PeerMetrics,
    open: OpenWorkMetrics,
    policies: Family<LabelPairs<2>, Counter>,
    store_writes: HistogramFamily<LabelPairs<1>>,
    writes_in_flight: Arc<WritesInFlight>,
    load: LoadMetrics,
    process: ProcessMetrics,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new(store: &StoreLoad, now: jurat_core::time::Timestamp) -> Self {
        let mut registry = Registry::default();
        let policies = Family::default();
        register(&mut registry, &metric::POLICY_VERDICTS, policies.clone());
        let store_writes = histograms(&mut registry, &metric::STORE_WRITE_SECONDS, SecondsBuckets);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        register(&mut registry, &metric::BUILD, build);
        Self {
            requests: RequestMetrics::new(&mut registry),
            rounds: RoundMetrics::new(&mut registry),
            executors: ExecutorMetrics::new(&mut registry),
            judges: JudgeMetrics::new(&mut registry),
            tasks: TaskMetrics::new(&mut registry),
            agent_events: AgentEventMetrics::new(&mut registry),
            webhooks: WebhookMetrics::new(&mut registry),
            payments: PaymentMetrics::new(&mut registry),
            peers: PeerMetrics::new(&mut registry),
            open: OpenWorkMetrics::new(&mut registry),
            policies,
            store_writes,
            writes_in_flight: Arc::default(),
            load: LoadMetrics::new(&mut registry, store),
            process: ProcessMetrics::new(&mut registry, now),
            registry: Mutex::new(registry),
        }
    }

    /// The metrics of the surfaces.
    pub fn requests(&self) -> &RequestMetrics {
        &self.requests
    }

    /// Counts the verdict of a policy check.
    pub(crate) fn verdict(&self, policy: &Policy, evaluation: &Evaluation) {
        let labels = [("policy", policy.id()), ("status", evaluation.status.as_str())];
        self.policies.get_or_create(&labels).inc();
    }

    /// The writes to the store in progress.
    pub(crate) fn writes(&self) -> Arc<WritesInFlight> {
        Arc::clone(&self.writes_in_flight)
    }

    /// Times a write to the store, in a span of its own.
    pub(crate) async fn write<T>(&self, name: &'static str, write: impl Future<Output = T>) -> T {
        let _waiting = self.writes_in_flight.begin();
        let started = Instant::now();
        let done = write.instrument(trace::write_span(name)).await;
        self.store_writes.get_or_create(&[("write", name)]).observe(since(started));
        done
    }
}

impl Engine {
    /// The metrics that surfaces count.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// All metrics, as text.
    pub async fn metrics_show(
        &self,
        caller: &Caller,
        form: MetricFormat,
    ) -> Result<String, EngineError> {
        require_scope(caller, Scope::MetricsRead)?;
        // Metrics matter most when the store is gone.
        if let Err(error) = self.pool_view().await {
            tracing::warn!(error = %error, "could not read the executors for the metrics");
        }
        let due = self.inner.store.tasks().next_due(&Behalf::Platform).await;
        let due = due.unwrap_or_else(|error| {
            tracing::warn!(error = %error, "could not read the due tasks for the metrics");
            None
        });
        let metrics = &self.inner.metrics;
        metrics.open.refresh(self).await;
        let registry = metrics.registry.lock();
        metrics.executors.refresh(self);
        metrics.load.refresh(self);
        metrics.tasks.refresh(self, due);
        metrics.process.refresh();
        let mut text = String::new();
        text::encode(&mut text, &registry)
            .map_err(|_| EngineError::Bug("could not write the metrics"))?;
        Ok(match form {
            MetricFormat::OpenMetrics => text,
            MetricFormat::Prometheus => prometheus::prometheus_text(&text),
        })
    }
}

/// Registers a metric under its name and description.
fn register(registry: &mut Registry, figure: &MetricSpec, metric: impl Metric) {
    // The registry adds the full stop itself.
    registry.register(figure.name, figure.help.trim_end_matches('.'), metric);
}

type HistogramFamily<S, B = SecondsBuckets> = Family<S, Histogram, B>;

fn histograms<S, B>(
    registry: &mut Registry,
    figure: &MetricSpec,
    buckets: B,
) -> HistogramFamily<S, B>
where
    S: prometheus_client::encoding::EncodeLabelSet
        + fmt::Debug
        + std::hash::Hash
        + Eq
        + Clone
        + Send
        + Sync
        + 'static,
    B: MetricConstructor<Histogram> + Clone + Send + Sync + 'static,
{
    let family = Family::new_with_constructor(buckets);
    register(registry, figure, family.clone());
    family
}

/// Builds histograms of durations.
#[derive(Debug, Clone, Copy)]
struct SecondsBuckets;

impl MetricConstructor<Histogram> for SecondsBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// Builds histograms of shares between 0 and 1.
#[derive(Debug, Clone, Copy)]
struct RatioBuckets;

impl MetricConstructor<Histogram> for RatioBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.2, 0.34, 0.4, 0.5, 0.6, 0.67, 0.8, 0.9, 0.95, 0.99, 1.0])
    }
}

fn since(started: Instant) -> f64 {
    started.elapsed().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "no round takes 285,000 years")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}
