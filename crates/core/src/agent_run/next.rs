//! Decides what follows when a step ends, and when all steps have ended.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    AgentOutput, AgentRunSpec, Bucket, BucketName, BucketOutcome, ReexploreLimits, RetrySpec,
    UnresolvedCause, aggregate, tie::ReexplorePermission,
};
use crate::time::Timestamp;

/// The shortest wait before a retry.
const SHORTEST_WAIT_MS: u64 = 200;

/// What happens to a step whose attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRetryDecision {
    Retry { at: Timestamp },
    Failed,
}

/// Decides on a step whose attempt failed; attempts count from 1. A permanent failure is not
/// retried.
pub fn after_step(
    retry: RetrySpec,
    attempt: u32,
    is_lasting: bool,
    now: Timestamp,
) -> StepRetryDecision {
    if is_lasting || retry.max_attempts <= attempt {
        return StepRetryDecision::Failed;
    }
    let doublings = attempt.saturating_sub(1).min(16);
    let wait = retry.backoff_ms.saturating_mul(1 << doublings).max(SHORTEST_WAIT_MS);
    StepRetryDecision::Retry { at: now.plus_millis(wait) }
}

/// The progress of the iterations so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExploreProgress {
    /// How many times the agents were asked again.
    pub iterations: u32,
    /// How many iterations in a row brought no new evidence.
    pub without_new_evidence: u32,
    /// Digests of all evidence seen so far.
    pub evidence: BTreeSet<String>,
}

impl ExploreProgress {
    /// The progress after the first iteration, which gave this evidence.
    #[must_use]
    pub fn seeded(&self, evidence: &BTreeSet<String>) -> Self {
        let evidence = self.evidence.union(evidence).cloned().collect();
        Self { evidence, ..self.clone() }
    }

    /// The progress after a further iteration, which gave this evidence.
    #[must_use]
    pub fn after(&self, evidence: &BTreeSet<String>) -> Self {
        let has_new = !evidence.is_subset(&self.evidence);
        let without = if has_new { 0 } else { self.without_new_evidence.saturating_add(1) };
        Self {
            iterations: self.iterations.saturating_add(1),
            without_new_evidence: without,
            evidence: self.evidence.union(evidence).cloned().collect(),
        }
    }

    const fn allows(&self, reexplore: ReexploreLimits) -> bool {
        let is_stale = reexplore.require_new_evidence
            && reexplore.no_new_evidence_rounds < self.without_new_evidence;
        self.iterations < reexplore.max_iterations && !is_stale
    }
}

/// What agents are told when they are asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReexploreSignal {
    pub iteration: u32,
    pub unresolved: Vec<(BucketName, UnresolvedCause)>,
    /// Whether an iteration must bring new evidence to count.
    pub require_new_evidence: bool,
}

impl ReexploreSignal {
    /// What the agents are asked for.
    pub fn kind(&self) -> &'static str {
        let is_empty = |(_, why): &(BucketName, UnresolvedCause)| *why == UnresolvedCause::Empty;
        if self.unresolved.iter().all(is_empty) { "NEED_DECISION" } else { "NEED_MORE_EVIDENCE" }
    }

    /// Whether a tie is among the reasons.
    pub fn is_tie(&self) -> bool {
        self.unresolved.iter().any(|(_, why)| *why == UnresolvedCause::Tie)
    }

    /// The JSON that is added to the inputs of agents that are asked again.
    pub fn document(&self) -> Value {
        let buckets: Vec<&str> = self.unresolved.iter().map(|(name, _)| name.as_str()).collect();
        let missing =
            self.unresolved.iter().map(|(_, why)| *why).find(|it| *it != UnresolvedCause::Tie);
        let reason = missing.map(|why| match why {
            UnresolvedCause::Empty => "no agent said anything",
            UnresolvedCause::QuorumNull | UnresolvedCause::Tie => "too few agents said the same",
        });
        json!({
            "type": self.kind(),
            "path": if self.is_tie() { "tie" } else { "null" },
            "iteration": self.iteration,
            "unresolved_buckets": buckets,
            "require_new_evidence": self.require_new_evidence,
            "null_primary_kind": missing.map(UnresolvedCause::as_str),
            "null_reason": reason,
        })
    }
}

/// What follows when every step of a run has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRunOutcome {
    Finalized {
        buckets: Vec<Bucket>,
    },
    /// No step succeeded.
    Failed,
    Reexplore {
        signal: ReexploreSignal,
        buckets: Vec<Bucket>,
    },
}

/// Decides what follows from the outputs. `said` holds the outputs of the steps that succeeded, in
/// the order of the agents.
pub fn after_agent_run(
    spec: &AgentRunSpec,
    said: &[AgentOutput],
    explored: &ExploreProgress,
) -> AgentRunOutcome {
    if said.is_empty() {
        return AgentRunOutcome::Failed;
    }
    let aggregation = &spec.aggregation;
    let may = ReexplorePermission {
        for_ties: explored.allows(aggregation.tie.reexplore),
        for_nulls: explored.allows(aggregation.null.reexplore),
    };
    let buckets = aggregate(&spec.run_id, said, aggregation, may);
    let unresolved: Vec<(BucketName, UnresolvedCause)> = buckets
        .iter()
        .filter_map(|bucket| match bucket.outcome {
            BucketOutcome::Reexplore(why) => Some((bucket.name, why)),
            BucketOutcome::Value { .. } | BucketOutcome::None(_) => None,
        })
        .collect();
    if unresolved.is_empty() {
        return AgentRunOutcome::Finalized { buckets };
    }
    let is_tie = unresolved.iter().any(|(_, why)| *why == UnresolvedCause::Tie);
    let reexplore = if is_tie { aggregation.tie.reexplore } else { aggregation.null.reexplore };
    let iteration = explored.iterations.saturating_add(1);
    let require_new_evidence = reexplore.require_new_evidence;
    let signal = ReexploreSignal { iteration, unresolved, require_new_evidence };
    AgentRunOutcome::Reexplore { signal, buckets }
}
