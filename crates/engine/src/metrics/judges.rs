//! What is counted of judges. Providers are those of the configuration; models are not counted
//! apart, because callers name them.

use jurat_core::{figure, judge::Tokens};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tokio::time::Instant;

use super::{Histograms, histograms, register, since};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByProvider {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    provider: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDirection {
    provider: String,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    provider: String,
    result: &'static str,
}

/// What came of a request to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Answered,
    /// 429: too many requests.
    RateLimited,
    /// Another status below 500.
    Refused,
    /// A status from 500 on.
    Failed,
    Timeout,
    Unreachable,
    Unreadable,
    /// The round was called off meanwhile.
    BrokenOff,
}

impl CallOutcome {
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

/// Whether a verdict was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    Hit,
    Miss,
}

#[derive(Debug)]
pub(crate) struct JudgeFigures {
    calls: Family<ByOutcome, Counter>,
    seconds: Histograms<ByProvider>,
    tokens: Family<ByDirection, Counter>,
    cost: Family<ByProvider, Counter>,
    lookups: Family<ByResult, Counter>,
}

/// A request to a provider that is under way; it is counted when it is dropped, however it ends.
#[derive(Debug)]
pub(crate) struct JudgeCall<'a> {
    figures: &'a JudgeFigures,
    provider: &'a str,
    started: Instant,
    deadline: Instant,
    outcome: Option<CallOutcome>,
}

impl JudgeFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            calls: Family::default(),
            seconds: histograms(registry, &figure::JUDGE_CALL_SECONDS, super::Seconds),
            tokens: Family::default(),
            cost: Family::default(),
            lookups: Family::default(),
        };
        register(registry, &figure::JUDGE_CALLS, figures.calls.clone());
        register(registry, &figure::JUDGE_TOKENS, figures.tokens.clone());
        register(registry, &figure::JUDGE_COST, figures.cost.clone());
        register(registry, &figure::JUDGE_LOOKUPS, figures.lookups.clone());
        figures
    }

    /// Begins a request that has to end by the deadline.
    pub(crate) fn call<'a>(&'a self, provider: &'a str, deadline: Instant) -> JudgeCall<'a> {
        JudgeCall { figures: self, provider, started: Instant::now(), deadline, outcome: None }
    }

    pub(crate) fn tokens(&self, provider: &str, tokens: Tokens) {
        for (direction, count) in [("input", tokens.input), ("output", tokens.output)] {
            let labels = ByDirection { provider: provider.to_owned(), direction };
            self.tokens.get_or_create(&labels).inc_by(count);
        }
    }

    pub(crate) fn cost(&self, provider: &str, micros: u64) {
        let labels = ByProvider { provider: provider.to_owned() };
        self.cost.get_or_create(&labels).inc_by(micros);
    }

    pub(crate) fn lookup(&self, provider: &str, lookup: Lookup) {
        let result = match lookup {
            Lookup::Hit => "hit",
            Lookup::Miss => "miss",
        };
        let labels = ByResult { provider: provider.to_owned(), result };
        self.lookups.get_or_create(&labels).inc();
    }
}

impl JudgeCall<'_> {
    pub(crate) fn end(mut self, outcome: CallOutcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for JudgeCall<'_> {
    fn drop(&mut self) {
        let broken_off = || {
            let is_late = self.deadline <= Instant::now();
            if is_late { CallOutcome::Timeout } else { CallOutcome::BrokenOff }
        };
        let outcome = self.outcome.unwrap_or_else(broken_off).as_str();
        let provider = self.provider.to_owned();
        self.figures.calls.get_or_create(&ByOutcome { provider, outcome }).inc();
        let labels = ByProvider { provider: self.provider.to_owned() };
        self.figures.seconds.get_or_create(&labels).observe(since(self.started));
    }
}
