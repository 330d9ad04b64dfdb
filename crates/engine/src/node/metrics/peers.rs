//! The metrics of other nodes.

use jurat_core::metric;
use jurat_wire::mesh::{NodeRequest, RefusalCode};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{LabelPairs, register};

#[derive(Debug)]
pub(crate) struct PeerMetrics {
    requests: Family<LabelPairs<1>, Counter>,
    refusals: Family<LabelPairs<1>, Counter>,
}

impl PeerMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self { requests: Family::default(), refusals: Family::default() };
        // A rate includes the first one only if there was a zero before.
        for kind in ["presence", "job", "join", "statement"] {
            drop(metrics.requests.get_or_create(&[("request", kind)]));
        }
        for code in REFUSALS {
            drop(metrics.refusals.get_or_create(&[("code", word(code))]));
        }
        register(registry, &metric::PEER_REQUESTS, metrics.requests.clone());
        register(registry, &metric::PEER_REFUSALS, metrics.refusals.clone());
        metrics
    }

    /// Counts a request of a trusted node.
    pub(crate) fn request(&self, request: &NodeRequest) {
        let kind = match request {
            NodeRequest::Presence(_) => "presence",
            NodeRequest::Job(_) => "job",
            NodeRequest::Join(_) => "join",
            NodeRequest::Statement(_) => "statement",
        };
        self.requests.get_or_create(&[("request", kind)]).inc();
    }

    /// Counts a request that was not carried out.
    pub(crate) fn refused(&self, code: RefusalCode) {
        self.refusals.get_or_create(&[("code", word(code))]).inc();
    }
}

const REFUSALS: [RefusalCode; 11] = [
    RefusalCode::NotTrusted,
    RefusalCode::BadMessage,
    RefusalCode::BadInvitation,
    RefusalCode::RateLimited,
    RefusalCode::TooLarge,
    RefusalCode::TaskTypeNotLent,
    RefusalCode::UnknownExecutor,
    RefusalCode::PriceTooHigh,
    RefusalCode::Mismatch,
    RefusalCode::Unavailable,
    RefusalCode::Unsupported,
];

const fn word(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::NotTrusted => "not_trusted",
        RefusalCode::BadMessage => "bad_message",
        RefusalCode::BadInvitation => "bad_invitation",
        RefusalCode::RateLimited => "rate_limited",
        RefusalCode::TooLarge => "too_large",
        RefusalCode::TaskTypeNotLent => "task_type_not_lent",
        RefusalCode::UnknownExecutor => "unknown_executor",
        RefusalCode::PriceTooHigh => "price_too_high",
        RefusalCode::Mismatch => "mismatch",
        RefusalCode::Unavailable => "unavailable",
        RefusalCode::Unsupported => "unsupported",
    }
}
