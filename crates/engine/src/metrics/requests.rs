//! What a surface counts: requests, how long they took, and keys that were refused.

use jurat_core::figure;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use tokio::time::Instant;

use super::{Histograms, Labels, Seconds, histograms, register, since};

/// What is counted of requests. Whoever counts passes templates and classes, never what a caller sent.
#[derive(Debug)]
pub struct RequestFigures {
    ended: Family<EndedLabels, Counter>,
    seconds: Histograms<RouteLabels>,
    in_flight: Gauge,
    key_refusals: Family<Labels<1>, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndedLabels {
    method: &'static str,
    route: String,
    status: &'static str,
}

/// A request under way. It is counted when it ends, or when it is dropped because its caller left.
#[derive(Debug)]
pub struct RequestInFlight<'a> {
    figures: &'a RequestFigures,
    labels: EndedLabels,
    started: Instant,
}

impl RequestFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let ended = Family::default();
        register(registry, &figure::REQUESTS, ended.clone());
        let seconds = histograms(registry, &figure::REQUEST_SECONDS, Seconds);
        let in_flight = Gauge::default();
        register(registry, &figure::REQUESTS_IN_FLIGHT, in_flight.clone());
        let key_refusals = Family::default();
        register(registry, &figure::KEY_REFUSALS, key_refusals.clone());
        Self { ended, seconds, in_flight, key_refusals }
    }

    /// Begins to count a request by the template of its route.
    pub fn begin(&self, method: &'static str, route: &str) -> RequestInFlight<'_> {
        self.in_flight.inc();
        let labels = EndedLabels { method, route: route.to_owned(), status: "gone" };
        RequestInFlight { figures: self, labels, started: Instant::now() }
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
        self.figures.in_flight.dec();
        self.figures.ended.get_or_create(&self.labels).inc();
        let EndedLabels { method, route, .. } = &mut self.labels;
        let labels = RouteLabels { method, route: std::mem::take(route) };
        self.figures.seconds.get_or_create(&labels).observe(since(self.started));
    }
}
