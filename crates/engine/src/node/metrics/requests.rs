//! The metrics of a surface: requests, their durations, and refused keys.

use jurat_core::{code::ProblemCode, metric};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use tokio::time::Instant;

use super::{HistogramFamily, LabelPairs, SecondsBuckets, histograms, register, since};

/// The metrics of requests. Labels are templates and classes, never input of a caller.
#[derive(Debug)]
pub struct RequestMetrics {
    ended: Family<RequestLabels, Counter>,
    seconds: HistogramFamily<RouteLabels>,
    in_flight: Gauge,
    shed: Family<LabelPairs<1>, Counter>,
    connections: Gauge,
    connections_refused: Counter,
    key_refusals: Family<LabelPairs<1>, Counter>,
}

/// An open connection, for as long as this lives.
#[derive(Debug)]
pub struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: &'static str,
}

/// A request in progress. It is counted when it ends, or when it is dropped because its caller
/// left.
#[derive(Debug)]
pub struct RequestInFlight<'a> {
    metrics: &'a RequestMetrics,
    labels: RequestLabels,
    started: Instant,
}

impl RequestMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            ended: Family::default(),
            seconds: histograms(registry, &metric::REQUEST_SECONDS, SecondsBuckets),
            in_flight: Gauge::default(),
            shed: Family::default(),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            key_refusals: Family::default(),
        };
        register(registry, &metric::REQUESTS, figures.ended.clone());
        register(registry, &metric::REQUESTS_IN_FLIGHT, figures.in_flight.clone());
        register(registry, &metric::REQUESTS_SHED, figures.shed.clone());
        register(registry, &metric::CONNECTIONS, figures.connections.clone());
        register(registry, &metric::CONNECTIONS_REFUSED, figures.connections_refused.clone());
        register(registry, &metric::KEY_REFUSALS, figures.key_refusals.clone());
        figures
    }

    /// Starts to count a request by the template of its route.
    pub fn begin(&self, method: &'static str, route: &str) -> RequestInFlight<'_> {
        self.in_flight.inc();
        let labels = RequestLabels { method, route: route.to_owned(), status: "gone" };
        RequestInFlight { metrics: self, labels, started: Instant::now() }
    }

    /// Counts a request that was refused because of the state of the node.
    pub fn shed(&self, code: ProblemCode) {
        self.shed.get_or_create(&[("code", code.as_str())]).inc();
    }

    /// Counts a connection until it is dropped.
    pub fn connection(&self) -> OpenConnection {
        self.connections.inc();
        OpenConnection(self.connections.clone())
    }

    /// Counts a connection that was refused because the limit was reached.
    pub fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    /// Counts a request that was refused because of its key.
    pub fn key_refused(&self, reason: &'static str) {
        self.key_refusals.get_or_create(&[("reason", reason)]).inc();
    }
}

impl RequestInFlight<'_> {
    /// Ends the request with the class of its status.
    pub fn end(mut self, status: &'static str) {
        self.labels.status = status;
    }
}

impl Drop for RequestInFlight<'_> {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        self.metrics.ended.get_or_create(&self.labels).inc();
        let RequestLabels { method, route, .. } = &mut self.labels;
        let labels = RouteLabels { method, route: std::mem::take(route) };
        self.metrics.seconds.get_or_create(&labels).observe(since(self.started));
    }
}
