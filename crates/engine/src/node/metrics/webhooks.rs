//! The metrics of webhooks.

use jurat_core::metric;
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{LabelPairs, register};

const OUTCOMES: [&str; 4] = ["delivered", "retried", "failed", "disabled"];

#[derive(Debug)]
pub(crate) struct WebhookMetrics {
    attempts: Family<LabelPairs<1>, Counter>,
}

impl WebhookMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self { attempts: Family::default() };
        // A rate includes the first attempt only if there was a zero before.
        for outcome in OUTCOMES {
            drop(metrics.attempts.get_or_create(&[("outcome", outcome)]));
        }
        register(registry, &metric::WEBHOOK_DELIVERIES, metrics.attempts.clone());
        metrics
    }

    /// Counts an attempt by one of the outcomes.
    pub(crate) fn ended(&self, outcome: &'static str) {
        self.attempts.get_or_create(&[("outcome", outcome)]).inc();
    }
}
