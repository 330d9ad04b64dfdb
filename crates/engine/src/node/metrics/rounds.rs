//! The metrics of rounds.

use jurat_core::{
    code::ProblemCode,
    metric,
    round::{OpenRound, RoundClosing, RoundEnding, job::JobKind},
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{
    HistogramFamily, LabelPairs, RatioBuckets, SecondsBuckets, histograms, register, seconds,
};

#[derive(Debug)]
pub(crate) struct RoundMetrics {
    ended: Family<LabelPairs<2>, Counter>,
    errors: Family<LabelPairs<2>, Counter>,
    seconds: HistogramFamily<LabelPairs<1>>,
    agreement: HistogramFamily<LabelPairs<1>, RatioBuckets>,
    confidence: HistogramFamily<LabelPairs<1>, RatioBuckets>,
}

impl RoundMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let ended = Family::default();
        register(registry, &metric::ROUNDS, ended.clone());
        let errors = Family::default();
        register(registry, &metric::ROUND_ERRORS, errors.clone());
        Self {
            ended,
            errors,
            seconds: histograms(registry, &metric::ROUND_SECONDS, SecondsBuckets),
            agreement: histograms(registry, &metric::AGREEMENT, RatioBuckets),
            confidence: histograms(registry, &metric::CONFIDENCE, RatioBuckets),
        }
    }

    /// Counts a round whose end is recorded.
    pub(crate) fn ended(&self, open: &OpenRound, closing: &RoundClosing) {
        let kind = ("kind", open.kind.as_str());
        let outcome = match closing.ending {
            RoundEnding::Closed => closing.consensus.outcome.as_str(),
            RoundEnding::Expired | RoundEnding::Cancelled => closing.ending.as_str(),
        };
        self.ended.get_or_create(&[kind, ("outcome", outcome)]).inc();
        if closing.ending != RoundEnding::Closed {
            return;
        }
        let took = closing.closed_at.millis_since(open.opened_at);
        self.seconds.get_or_create(&[kind]).observe(seconds(took));
        self.agreement.get_or_create(&[kind]).observe(closing.consensus.agreement);
        self.confidence.get_or_create(&[kind]).observe(closing.consensus.confidence);
    }

    /// Counts a round that was refused or failed.
    pub(crate) fn failed(&self, kind: JobKind, code: ProblemCode) {
        let labels = [("kind", kind.as_str()), ("code", code.as_str())];
        self.errors.get_or_create(&labels).inc();
    }
}
