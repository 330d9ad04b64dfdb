//! The spec of an agent run, and the check that finds its faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde_json::Value;

use crate::round::job::words;

/// Upper limits of the numbers in a spec.
const MOST_AGENTS: usize = 64;
const MOST_ATTEMPTS: u32 = 16;
const MOST_ITERATIONS: u32 = 8;
const LONGEST_WAIT_MS: u64 = 3_600_000;
const LONGEST_ID: usize = 64;
/// A task id is made of both ids, an iteration and an attempt, and has at most 128 characters.
const LONGEST_AGENT_ID: usize = 48;
const MOST_VERIFIERS: usize = 64;
const MOST_AT_ONCE: u32 = 64;
/// Members of a contract that the run fills in itself.
const OWN_MEMBERS: [&str; 3] = ["task_id", "task_type", "inputs"];

/// The spec of an agent run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunSpec {
    pub run_id: String,
    pub task_type: String,
    /// Inputs that every agent gets besides its own prompt.
    pub shared_inputs: Value,
    pub agents: Vec<AgentSpec>,
    /// Members that override the default contract of every step.
    pub contract: Value,
    /// Executors that vote on the outputs of the agents; if empty, the node chooses.
    pub verifiers: Vec<String>,
    /// How many of the run's steps one executor may work on at a time; `None` for no limit.
    pub per_executor: Option<u32>,
    pub retry: RetrySpec,
    pub aggregation: AggregationSpec,
}

/// One agent of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    pub agent_id: String,
    pub executor: String,
    pub profile: String,
    pub prompt: String,
    /// The weight of the agent's output.
    pub weight: f64,
    /// Steps with a higher priority start first.
    pub priority: i32,
    /// Members that override the contract of the run.
    pub contract: Value,
    /// Executors that vote on this agent's output, instead of those of the run.
    pub verifiers: Vec<String>,
}

/// When a failed step is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySpec {
    /// The maximum number of attempts, including the first.
    pub max_attempts: u32,
    /// The wait before the second attempt; it doubles before each further attempt.
    pub backoff_ms: u64,
}

impl Default for RetrySpec {
    fn default() -> Self {
        Self { max_attempts: 2, backoff_ms: 1_500 }
    }
}

/// How the outputs of the agents become one result.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregationSpec {
    /// A label from the caller, returned unchanged.
    pub mode: String,
    /// How many agents must give the same value; `None` for a majority.
    pub quorum: Option<u32>,
    pub tie: TiePolicy,
    pub null: NullPolicy,
}

impl Default for AggregationSpec {
    fn default() -> Self {
        let (tie, null) = (TiePolicy::default(), NullPolicy::default());
        Self { mode: "all_done".to_owned(), quorum: None, tie, null }
    }
}

words!(
    /// Why a bucket has no single value.
    UnresolvedCause {
        /// No agent gave a value.
        Empty => "EMPTY",
        /// Too few agents gave the same value.
        QuorumNull => "QUORUM_NULL",
        /// Several values share the highest weight.
        Tie => "TIE",
    }
);

words!(
    /// A way to break a tie.
    TieBreak {
        Reexplore => "REEXPLORE",
        ConfidenceWeighted => "CONFIDENCE_WEIGHTED",
        ReputationWeighted => "REPUTATION_WEIGHTED",
        Stochastic => "STOCHASTIC",
    }
);

words!(
    /// What to do if there is no value.
    NullAction {
        Reexplore => "REEXPLORE",
        FinalizeNull => "FINALIZE_NULL",
    }
);

words!(
    /// How agents without a reputation are counted.
    MissingReputation {
        /// They count for nothing.
        Skip => "SKIP",
        /// They count as one unit.
        Uniform => "UNIFORM",
    }
);

/// How ties are broken.
#[derive(Debug, Clone, PartialEq)]
pub struct TiePolicy {
    pub enabled_on: BTreeSet<UnresolvedCause>,
    /// Tried in order until one finds a value.
    pub chain: Vec<TieBreak>,
    pub reexplore: ReexploreLimits,
    pub confidence: ConfidenceFields,
    pub reputation: ReputationUnits,
}

impl Default for TiePolicy {
    fn default() -> Self {
        Self {
            enabled_on: BTreeSet::from([UnresolvedCause::Tie]),
            chain: vec![TieBreak::Stochastic],
            reexplore: ReexploreLimits::default(),
            confidence: ConfidenceFields::default(),
            reputation: ReputationUnits::default(),
        }
    }
}

/// What happens if a bucket stays empty or short of its quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullPolicy {
    pub enabled_on: BTreeSet<UnresolvedCause>,
    pub chain: Vec<NullAction>,
    pub reexplore: ReexploreLimits,
}

impl Default for NullPolicy {
    fn default() -> Self {
        Self {
            enabled_on: BTreeSet::from([UnresolvedCause::Empty, UnresolvedCause::QuorumNull]),
            chain: vec![NullAction::Reexplore, NullAction::FinalizeNull],
            reexplore: ReexploreLimits::default(),
        }
    }
}

/// How many times the agents are asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReexploreLimits {
    pub max_iterations: u32,
    /// How many iterations in a row may bring no new evidence.
    pub no_new_evidence_rounds: u32,
    /// Whether an iteration without new evidence counts towards that limit.
    pub require_new_evidence: bool,
}

impl Default for ReexploreLimits {
    fn default() -> Self {
        Self { max_iterations: 1, no_new_evidence_rounds: 1, require_new_evidence: true }
    }
}

/// The output members in which an agent states its confidence.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfidenceFields {
    pub decision: String,
    pub answer: String,
    /// Used if neither of the two is present.
    pub any: String,
    /// The confidence of an output that states none.
    pub default: f64,
}

impl Default for ConfidenceFields {
    fn default() -> Self {
        Self {
            decision: "decision_confidence".to_owned(),
            answer: "answer_confidence".to_owned(),
            any: "confidence".to_owned(),
            default: 0.5,
        }
    }
}

/// Reputations that the caller gives for its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReputationUnits {
    pub units: BTreeMap<String, i64>,
    pub missing: MissingReputation,
}

impl Default for ReputationUnits {
    fn default() -> Self {
        Self { units: BTreeMap::new(), missing: MissingReputation::Skip }
    }
}

/// A fault of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The path of the faulty member, such as `agents.2.weight`.
    pub field: String,
    pub reason: String,
}

impl AgentRunSpec {
    /// All faults, by field.
    pub fn check(&self) -> Vec<SpecError> {
        let mut errors = SpecErrors::default();
        errors.name("run_id", &self.run_id, LONGEST_ID);
        errors.refuse(self.task_type.trim().is_empty(), "task_type", "must not be empty");
        let is_object = |value: &Value| value.is_object();
        errors.refuse(!is_object(&self.shared_inputs), "shared_inputs", "must be an object");
        errors.contract("contract", &self.contract);
        errors.verifiers("verifiers", &self.verifiers);
        let is_at_once = |it: u32| (1..=MOST_AT_ONCE).contains(&it);
        let at_once = format!("must be from 1 to {MOST_AT_ONCE}");
        errors.refuse(!self.per_executor.is_none_or(is_at_once), "per_executor", &at_once);
        let count = self.agents.len();
        let how_many = format!("must name from 1 to {MOST_AGENTS} agents");
        errors.refuse(count == 0 || MOST_AGENTS < count, "agents", &how_many);
        let mut seen = BTreeSet::new();
        for (index, agent) in self.agents.iter().enumerate() {
            let is_twice = !seen.insert(agent.agent_id.as_str());
            agent.check(&format!("agents.{index}"), is_twice, &mut errors);
        }
        let tries = format!("must be from 1 to {MOST_ATTEMPTS}");
        let max_attempts = self.retry.max_attempts;
        errors.refuse(!(1..=MOST_ATTEMPTS).contains(&max_attempts), "retry.max_attempts", &tries);
        let wait = format!("must be at most {LONGEST_WAIT_MS}");
        errors.refuse(LONGEST_WAIT_MS < self.retry.backoff_ms, "retry.backoff_ms", &wait);
        self.aggregation.check(count, &mut errors);
        errors.0
    }
}

impl AgentSpec {
    fn check(&self, at: &str, is_twice: bool, errors: &mut SpecErrors) {
        errors.name(&format!("{at}.agent_id"), &self.agent_id, LONGEST_AGENT_ID);
        let twice = format!("`{}` is already the name of another agent", self.agent_id);
        errors.refuse(is_twice, &format!("{at}.agent_id"), &twice);
        for (member, text) in
            [("executor", &self.executor), ("profile", &self.profile), ("prompt", &self.prompt)]
        {
            let is_blank = text.trim().is_empty();
            errors.refuse(is_blank, &format!("{at}.{member}"), "must not be empty");
        }
        let is_weight = self.weight.is_finite() && (0.0..=1_000_000.0).contains(&self.weight);
        errors.refuse(!is_weight, &format!("{at}.weight"), "must be from 0 to 1000000");
        errors.contract(&format!("{at}.contract"), &self.contract);
        errors.verifiers(&format!("{at}.verifiers"), &self.verifiers);
    }
}

impl AggregationSpec {
    fn check(&self, agents: usize, errors: &mut SpecErrors) {
        let quorum = usize::try_from(self.quorum.unwrap_or(0)).unwrap_or(usize::MAX);
        let reachable = format!("contradicts `agents`: {agents} agents cannot reach it");
        errors.refuse(agents < quorum, "aggregation.quorum", &reachable);
        let (tie, null) = (&self.tie, &self.null);
        errors.refuse(
            tie.enabled_on.contains(&UnresolvedCause::Empty),
            "aggregation.tie_policy.enabled_on",
            "takes TIE and QUORUM_NULL; EMPTY has no values to choose from",
        );
        errors.refuse(
            null.enabled_on.contains(&UnresolvedCause::Tie),
            "aggregation.null_policy.enabled_on",
            "takes EMPTY and QUORUM_NULL; TIE has values",
        );
        for (reexplore, policy) in [(tie.reexplore, "tie_policy"), (null.reexplore, "null_policy")]
        {
            let at = format!("aggregation.{policy}.reexplore.max_tie_iterations");
            let most = format!("must be at most {MOST_ITERATIONS}");
            errors.refuse(MOST_ITERATIONS < reexplore.max_iterations, &at, &most);
        }
        let default = tie.confidence.default;
        errors.refuse(
            !(0.0..=1.0).contains(&default),
            "aggregation.tie_policy.confidence_weighted.default_confidence",
            "must be from 0 to 1",
        );
    }
}

#[derive(Default)]
struct SpecErrors(Vec<SpecError>);

impl SpecErrors {
    fn refuse(&mut self, is_wrong: bool, field: &str, reason: &str) {
        if is_wrong {
            self.0.push(SpecError { field: field.to_owned(), reason: reason.to_owned() });
        }
    }

    /// Checks a name that becomes part of a task id.
    fn name(&mut self, field: &str, name: &str, longest: usize) {
        let is_formed = (1..=longest).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let reason = format!("must be 1 to {longest} letters, digits, `-`, `_` or `.`");
        self.refuse(!is_formed, field, &reason);
    }

    /// Checks members that override the default contract.
    fn contract(&mut self, field: &str, contract: &Value) {
        self.refuse(!contract.is_object(), field, "must be an object");
        for member in OWN_MEMBERS {
            let reason = "is set by the run itself; leave it out";
            self.refuse(contract.get(member).is_some(), &format!("{field}.{member}"), reason);
        }
    }

    fn verifiers(&mut self, field: &str, verifiers: &[String]) {
        let distinct: BTreeSet<&String> = verifiers.iter().collect();
        let is_blank = verifiers.iter().any(|name| name.trim().is_empty());
        self.refuse(is_blank, field, "must not contain an empty name");
        self.refuse(distinct.len() < verifiers.len(), field, "names an executor twice");
        let most = format!("must name at most {MOST_VERIFIERS} executors");
        self.refuse(MOST_VERIFIERS < verifiers.len(), field, &most);
    }
}
