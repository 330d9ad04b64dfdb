//! The metrics of payments.

use jurat_core::{metric, payment::state::PaymentState};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{LabelPairs, register};

/// How a facilitator answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FacilitatorAnswer {
    Yes,
    No,
    Unclear,
}

#[derive(Debug)]
pub(crate) struct PaymentMetrics {
    states: Family<LabelPairs<1>, Counter>,
    calls: Family<LabelPairs<2>, Counter>,
}

impl PaymentMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self { states: Family::default(), calls: Family::default() };
        // A rate includes the first one only if there was a zero before.
        for state in [PaymentState::Settled, PaymentState::FailedFinal, PaymentState::Unknown] {
            drop(metrics.states.get_or_create(&[("state", state.as_str())]));
        }
        drop(metrics.states.get_or_create(&[("state", "released")]));
        for call in ["verify", "settle"] {
            for answer in
                [FacilitatorAnswer::Yes, FacilitatorAnswer::No, FacilitatorAnswer::Unclear]
            {
                drop(metrics.calls.get_or_create(&[("call", call), ("outcome", answer.word())]));
            }
        }
        register(registry, &metric::PAYMENTS, metrics.states.clone());
        register(registry, &metric::FACILITATOR_CALLS, metrics.calls.clone());
        metrics
    }

    /// Counts an attempt to settle.
    pub(crate) fn ended(&self, state: PaymentState) {
        self.states.get_or_create(&[("state", state.as_str())]).inc();
    }

    /// Counts a purchase that was not charged.
    pub(crate) fn released(&self) {
        self.states.get_or_create(&[("state", "released")]).inc();
    }

    /// Counts a call to the facilitator.
    pub(crate) fn called(&self, call: &'static str, answer: FacilitatorAnswer) {
        self.calls.get_or_create(&[("call", call), ("outcome", answer.word())]).inc();
    }
}

impl FacilitatorAnswer {
    const fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unclear => "unclear",
        }
    }
}
