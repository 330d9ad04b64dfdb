//! Policies: rule sets that decide a candidate.

mod checks;
mod crosscheck;
mod equivalence_params;
mod params;
mod result_hash;
mod schema_only;
mod schema_thresholds;
mod semantic;
mod wattswarm;

use serde_json::Value;

pub use self::{
    checks::Checks,
    crosscheck::{CrosscheckParams, PRIOR_DECISIONS},
    equivalence_params::{EquivalenceError, parse_equivalence},
    params::BindError,
    result_hash::{HashCheck, ResultFields, check_result_hash, result_hash},
    schema_thresholds::{OutputThresholds, Threshold, ThresholdOperator},
    semantic::{JudgeInputs, SemanticParams},
};
use crate::{
    canonical, reason,
    round::candidate::Candidate,
    schema::{Schema, WorkEstimate},
};

/// The output matches the schema.
pub const SCHEMA_ONLY: &str = "vp.schema_only.v1";
/// The output matches the schema, and its fields satisfy thresholds.
pub const SCHEMA_THRESHOLDS: &str = "vp.schema_thresholds.v1";
/// The output belongs to the majority of the answers, itself included.
pub const CROSSCHECK: &str = "vp.crosscheck.v1";
/// The claim is true; only a judge can decide it.
pub const CLAIM: &str = "vp.claim.v1";
/// The output passes the caller's structural and functional checks.
pub const CHECKS: &str = "vp.checks.v1";
/// The output passes a verifier of the registry; its judge decides.
pub const SEMANTIC: &str = "vp.semantic.v1";

/// The version of every built-in policy.
const VERSION: &str = "1";

/// A policy with its parameters, as it is sent to an executor.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyBinding {
    pub policy_id: String,
    pub policy_version: String,
    pub policy_hash: String,
    pub policy_params: Value,
}

impl PolicyBinding {
    /// A binding at version 1, with its hash.
    pub fn new(policy_id: &str, params: Value) -> Self {
        Self {
            policy_id: policy_id.to_owned(),
            policy_version: VERSION.to_owned(),
            policy_hash: policy_hash(policy_id, &params),
            policy_params: params,
        }
    }

    /// A binding of a WattSwarm policy, by its fixed hash; `None` if WattSwarm has no such policy.
    pub fn of_wattswarm(policy_id: &str, params: Value) -> Option<Self> {
        Some(Self {
            policy_id: policy_id.to_owned(),
            policy_version: VERSION.to_owned(),
            policy_hash: wattswarm::fixed_hash(policy_id)?.to_owned(),
            policy_params: params,
        })
    }

    /// The rules that the hash selects: ours, unless it is one of WattSwarm's fixed hashes.
    pub fn rules(&self) -> PolicyRules {
        PolicyRules::by_hash(&self.policy_id, &self.policy_hash)
    }

    /// Whether the references of the candidate are fetched and checked.
    pub fn fetches_evidence(&self) -> bool {
        self.policy_params.get(params::FETCH_EVIDENCE).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Returns `sha256:` and the digest of the policy's name followed by its canonical parameters.
pub fn policy_hash(policy_id: &str, params: &Value) -> String {
    let mut bytes = policy_id.as_bytes().to_vec();
    bytes.extend(canonical::canonical(params));
    canonical::digest(&bytes)
}

/// A policy with parsed and checked parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    SchemaOnly {
        rules: PolicyRules,
    },
    SchemaThresholds {
        rules: PolicyRules,
        limits: OutputThresholds,
    },
    Crosscheck {
        rules: PolicyRules,
        against: CrosscheckParams,
    },
    /// Whether a claim is true and useful. Only a judge can decide it.
    Claim,
    Checks(Checks),
    /// A verifier of the registry. Its judge decides.
    Semantic(SemanticParams),
}

/// The system whose reading of a policy applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyRules {
    Jurat,
    /// Selected by the fixed hash of a WattSwarm policy.
    WattSwarm,
}

impl PolicyRules {
    /// The rules that a hash selects: a fixed hash selects WattSwarm's, any other hash ours.
    pub fn by_hash(policy_id: &str, policy_hash: &str) -> Self {
        let given = policy_hash.to_ascii_lowercase();
        let bare = given.strip_prefix("sha256:").unwrap_or(&given);
        if wattswarm::fixed_hash(policy_id) == Some(bare) { Self::WattSwarm } else { Self::Jurat }
    }
}

/// The verdict of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluationStatus {
    Passed,
    Failed,
    Inconclusive,
}

impl EvaluationStatus {
    /// The name of the status in replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The result of a policy for a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    pub status: EvaluationStatus,
    /// Confidence in the verdict, between 0 and 1.
    pub score: f64,
    /// Empty on a clean pass.
    pub reason_codes: Vec<u16>,
    /// The reasons in words.
    pub notes: Vec<String>,
}

impl Evaluation {
    /// A clean pass.
    pub fn passed(notes: Vec<String>) -> Self {
        Self { status: EvaluationStatus::Passed, score: 1.0, reason_codes: Vec::new(), notes }
    }

    /// A failure with its reasons.
    pub fn failed(reason_codes: Vec<u16>, notes: Vec<String>) -> Self {
        Self { status: EvaluationStatus::Failed, score: 1.0, reason_codes, notes }
    }

    /// No verdict, and therefore no confidence in one.
    pub fn inconclusive(reason_code: u16, note: impl Into<String>) -> Self {
        Self {
            status: EvaluationStatus::Inconclusive,
            score: 0.0,
            reason_codes: vec![reason_code],
            notes: vec![note.into()],
        }
    }
}

impl Policy {
    /// Whether the policy is built in.
    pub fn is_builtin(policy_id: &str) -> bool {
        let known = [SCHEMA_ONLY, SCHEMA_THRESHOLDS, CROSSCHECK, CLAIM, CHECKS, SEMANTIC];
        known.contains(&policy_id)
    }

    /// The name by which a binding selects this policy.
    pub const fn id(&self) -> &'static str {
        match self {
            Self::SchemaOnly { .. } => SCHEMA_ONLY,
            Self::SchemaThresholds { .. } => SCHEMA_THRESHOLDS,
            Self::Crosscheck { .. } => CROSSCHECK,
            Self::Claim => CLAIM,
            Self::Checks(_) => CHECKS,
            Self::Semantic(_) => SEMANTIC,
        }
    }

    /// Whether parsing the parameters takes considerable work.
    pub fn is_compiled(policy_id: &str) -> bool {
        policy_id == CHECKS
    }

    /// Reads a binding: name, version, hash, parameters, in this order.
    pub fn bind(binding: &PolicyBinding) -> Result<Self, BindError> {
        let policy_id = binding.policy_id.as_str();
        if !Self::is_builtin(policy_id) {
            return Err(BindError::Unknown { policy_id: policy_id.to_owned() });
        }
        if binding.policy_version != VERSION {
            return Err(BindError::Version {
                policy_id: policy_id.to_owned(),
                given: binding.policy_version.clone(),
            });
        }
        let rules = rules_of(binding)?;
        let params = &binding.policy_params;
        match policy_id {
            SCHEMA_ONLY => schema_only::bind(rules, params),
            SCHEMA_THRESHOLDS => schema_thresholds::bind(rules, params),
            CROSSCHECK => crosscheck::bind(rules, params),
            CHECKS => checks::bind(params),
            SEMANTIC => semantic::bind(params),
            _ => Ok(Self::Claim),
        }
    }

    /// The rules that apply to the policy and to its schema.
    pub const fn rules(&self) -> PolicyRules {
        match self {
            Self::SchemaOnly { rules }
            | Self::SchemaThresholds { rules, .. }
            | Self::Crosscheck { rules, .. } => *rules,
            Self::Claim | Self::Checks(_) | Self::Semantic(_) => PolicyRules::Jurat,
        }
    }

    /// Whether only a judge can decide.
    pub const fn needs_judge(&self) -> bool {
        matches!(self, Self::Claim | Self::Semantic(_))
    }

    /// An upper limit of the work of [`Policy::evaluate`].
    pub fn estimate(&self, candidate: &Candidate, schema: &Schema) -> WorkEstimate {
        match self {
            Self::SchemaOnly { .. } => schema.estimate(&candidate.output),
            Self::SchemaThresholds { limits, .. } => {
                let compared = schema_thresholds::estimate(limits, &candidate.output);
                schema.estimate(&candidate.output).and(compared)
            }
            Self::Crosscheck { against, .. } => {
                schema.estimate(&candidate.output).and(crosscheck::estimate(against, candidate))
            }
            Self::Checks(checks) => {
                schema.estimate(&candidate.output).and(checks::estimate(checks, candidate))
            }
            Self::Claim | Self::Semantic(_) => WorkEstimate::default(),
        }
    }

    /// Evaluates the candidate.
    pub fn evaluate(&self, candidate: &Candidate, schema: &Schema) -> Evaluation {
        let output = &candidate.output;
        match self {
            Self::SchemaOnly { rules: PolicyRules::Jurat } => schema_only::evaluate(output, schema),
            Self::SchemaOnly { rules: PolicyRules::WattSwarm } => {
                wattswarm::schema_only(output, schema)
            }
            Self::SchemaThresholds { rules: PolicyRules::Jurat, limits } => {
                schema_thresholds::evaluate(limits, output, schema)
            }
            Self::SchemaThresholds { rules: PolicyRules::WattSwarm, limits } => {
                wattswarm::schema_thresholds(limits, output, schema)
            }
            Self::Crosscheck { rules: PolicyRules::Jurat, against } => {
                crosscheck::evaluate(against, candidate, schema)
            }
            Self::Crosscheck { rules: PolicyRules::WattSwarm, against } => {
                wattswarm::crosscheck(against, output, schema)
            }
            Self::Claim => Evaluation::inconclusive(
                reason::CLAIM_UNDECIDED,
                "A judge must decide whether the claim is true and useful.",
            ),
            Self::Checks(checks) => checks::evaluate(checks, candidate, schema),
            Self::Semantic(_) => Evaluation::inconclusive(
                reason::CLAIM_UNDECIDED,
                "The verifier's judge must decide, on the registry that hosts the verifier.",
            ),
        }
    }
}

/// The rules that the hash selects.
fn rules_of(binding: &PolicyBinding) -> Result<PolicyRules, BindError> {
    if binding.rules() == PolicyRules::WattSwarm {
        return Ok(PolicyRules::WattSwarm);
    }
    let given = binding.policy_hash.to_ascii_lowercase();
    let bare = given.strip_prefix("sha256:").unwrap_or(&given);
    let expected = policy_hash(&binding.policy_id, &binding.policy_params);
    if expected.strip_prefix("sha256:") == Some(bare) {
        return Ok(PolicyRules::Jurat);
    }
    Err(BindError::Hash {
        policy_id: binding.policy_id.clone(),
        given: binding.policy_hash.chars().take(80).collect(),
        expected,
    })
}
