//! The metrics of judges. Providers come from the configuration; models have no label, because
//! callers name them.

use jurat_core::{judge::Tokens, metric};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tokio::time::Instant;

use super::{HistogramFamily, histograms, register, since};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JudgeCallLabels {
    provider: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    provider: String,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheLookupLabels {
    provider: String,
    result: &'static str,
}

/// The outcome of a request to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JudgeCallOutcome {
    Answered,
    /// 429: too many requests.
    RateLimited,
    /// Another status below 500.
    Refused,
    /// A status of 500 or more.
    Failed,
    Timeout,
    Unreachable,
    Unreadable,
    /// The round was cancelled meanwhile.
    BrokenOff,
}

impl JudgeCallOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::RateLimited => "rate_limited",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Unreadable => "unreadable",
            Self::BrokenOff => "broken_off",
        }
    }
}

/// Whether a verdict was cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    Hit,
    Miss,
}

#[derive(Debug)]
pub(crate) struct JudgeMetrics {
    calls: Family<JudgeCallLabels, Counter>,
    seconds: HistogramFamily<ProviderLabels>,
    tokens: Family<TokenLabels, Counter>,
    cost: Family<ProviderLabels, Counter>,
    lookups: Family<CacheLookupLabels, Counter>,
}

/// A request to a provider in progress; it is counted when this is dropped, however it ends.
#[derive(Debug)]
pub(crate) struct JudgeCallTimer<'a> {
    metrics: &'a JudgeMetrics,
    provider: &'a str,
    started: Instant,
    deadline: Instant,
    outcome: Option<JudgeCallOutcome>,
}

impl JudgeMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            calls: Family::default(),
            seconds: histograms(registry, &metric::JUDGE_CALL_SECONDS, super::SecondsBuckets),
            tokens: Family::default(),
            cost: Family::default(),
            lookups: Family::default(),
        };
        register(registry, &metric::JUDGE_CALLS, figures.calls.clone());
        register(registry, &metric::JUDGE_TOKENS, figures.tokens.clone());
        register(registry, &metric::JUDGE_COST, figures.cost.clone());
        register(registry, &metric::JUDGE_LOOKUPS, figures.lookups.clone());
        figures
    }

    /// Starts a request that must end by the deadline.
    pub(crate) fn call<'a>(&'a self, provider: &'a str, deadline: Instant) -> JudgeCallTimer<'a> {
        JudgeCallTimer { metrics: self, provider, started: Instant::now(), deadline, outcome: None }
    }

    pub(crate) fn tokens(&self, provider: &str, tokens: Tokens) {
        for (direction, count) in [("input", tokens.input), ("output", tokens.output)] {
            let labels = TokenLabels { provider: provider.to_owned(), direction };
            self.tokens.get_or_create(&labels).inc_by(count);
        }
    }

    pub(crate) fn cost(&self, provider: &str, micros: u64) {
        let labels = ProviderLabels { provider: provider.to_owned() };
        self.cost.get_or_create(&labels).inc_by(micros);
    }

    pub(crate) fn lookup(&self, provider: &str, lookup: CacheLookup) {
        let result = match lookup {
            CacheLookup::Hit => "hit",
            CacheLookup::Miss => "miss",
        };
        let labels = CacheLookupLabels { provider: provider.to_owned(), result };
        self.lookups.get_or_create(&labels).inc();
    }
}

impl JudgeCallTimer<'_> {
    pub(crate) fn end(mut self, outcome: JudgeCallOutcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for JudgeCallTimer<'_> {
    fn drop(&mut self) {
        let broken_off = || {
            let is_late = self.deadline <= Instant::now();
            if is_late { JudgeCallOutcome::Timeout } else { JudgeCallOutcome::BrokenOff }
        };
        let outcome = self.outcome.unwrap_or_else(broken_off).as_str();
        let provider = self.provider.to_owned();
        self.metrics.calls.get_or_create(&JudgeCallLabels { provider, outcome }).inc();
        let labels = ProviderLabels { provider: self.provider.to_owned() };
        self.metrics.seconds.get_or_create(&labels).observe(since(self.started));
    }
}
