//! What is counted of rounds.

use jurat_core::{
    code::Code,
    figure,
    job::Kind,
    round::{Closing, Ending, OpenRound},
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{Histograms, Labels, Seconds, Shares, histograms, register, seconds};

#[derive(Debug)]
pub(crate) struct RoundFigures {
    ended: Family<Labels<2>, Counter>,
    errors: Family<Labels<2>, Counter>,
    seconds: Histograms<Labels<1>>,
    agreement: Histograms<Labels<1>, Shares>,
    confidence: Histograms<Labels<1>, Shares>,
}

impl RoundFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let ended = Family::default();
        register(registry, &figure::ROUNDS, ended.clone());
        let errors = Family::default();
        register(registry, &figure::ROUND_ERRORS, errors.clone());
        Self {
            ended,
            errors,
            seconds: histograms(registry, &figure::ROUND_SECONDS, Seconds),
            agreement: histograms(registry, &figure::AGREEMENT, Shares),
            confidence: histograms(registry, &figure::CONFIDENCE, Shares),
        }
    }

    /// Counts a round whose end is on record.
    pub(crate) fn ended(&self, open: &OpenRound, closing: &Closing) {
        let kind = ("kind", open.kind.as_str());
        let outcome = match closing.ending {
            Ending::Closed => closing.consensus.outcome.as_str(),
            Ending::Expired | Ending::Cancelled => closing.ending.as_str(),
        };
        self.ended.get_or_create(&[kind, ("outcome", outcome)]).inc();
        if closing.ending != Ending::Closed {
            return;
        }
        let took = closing.closed_at.millis_since(open.opened_at);
        self.seconds.get_or_create(&[kind]).observe(seconds(took));
        self.agreement.get_or_create(&[kind]).observe(closing.consensus.agreement);
        self.confidence.get_or_create(&[kind]).observe(closing.consensus.confidence);
    }

    /// Counts a round that was refused, or that broke off.
    pub(crate) fn failed(&self, kind: Kind, code: Code) {
        let labels = [("kind", kind.as_str()), ("code", code.as_str())];
        self.errors.get_or_create(&labels).inc();
    }
}
