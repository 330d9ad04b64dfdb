//! The task contract: the terms under which an executor works.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use jurat_core::{policy, round::evidence::InlineTerms, task::VoteAggregation};

use super::WirePolicyBinding;

/// The terms of a task. `I` is the inputs: code that only passes them on keeps them as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskContract<I = Value> {
    pub protocol_version: String,
    pub task_id: String,
    pub task_type: String,
    pub inputs: I,
    pub output_schema: Value,
    pub budget: ContractBudget,
    pub assignment: Assignment,
    pub acceptance: Acceptance,
    #[serde(default = "one_shot")]
    pub task_mode: String,
    /// Expiry time, in milliseconds since 1970.
    pub expiry_ms: u64,
    pub evidence_policy: EvidencePolicy,
}

/// Time, steps and cost units of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractBudget {
    pub time_ms: u64,
    pub max_steps: u32,
    pub cost_units: u64,
    #[serde(default = "lifetime")]
    pub mode: String,
    #[serde(default)]
    pub explore_cost_units: u64,
    #[serde(default)]
    pub verify_cost_units: u64,
    #[serde(default)]
    pub finalize_cost_units: u64,
    pub reuse_verify_time_ms: u64,
    pub reuse_verify_cost_units: u64,
    pub reuse_max_attempts: u32,
}

/// How many executors may work on a task, concurrently and in total.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub mode: String,
    pub claim: ContractClaim,
    #[serde(default)]
    pub explore: ContractExplore,
    #[serde(default)]
    pub verify: ContractVerify,
    #[serde(default)]
    pub finalize: ContractFinalize,
}

/// How executors claim work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractClaim {
    pub lease_ms: u64,
    pub max_concurrency: MaxConcurrency,
}

/// Maximum number of concurrent leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaxConcurrency {
    pub propose: u32,
    pub verify: u32,
}

/// How candidates are found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContractExplore {
    pub max_proposers: u32,
    pub topk: u32,
    pub stop: ExploreStop,
    /// How often proposing restarts after all proposers failed. Only Jurat has this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Delay before the first restart. Only Jurat has this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
}

impl Default for ContractExplore {
    fn default() -> Self {
        let stop = ExploreStop::default();
        Self { max_proposers: 1, topk: 3, stop, max_retries: None, backoff_ms: None }
    }
}

/// When to stop looking for candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExploreStop {
    pub no_new_evidence_rounds: u32,
}

impl Default for ExploreStop {
    fn default() -> Self {
        Self { no_new_evidence_rounds: 3 }
    }
}

/// How candidates are voted on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContractVerify {
    pub max_verifiers: u32,
    /// How often an undecided vote is repeated. Only Jurat has this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_repeats: Option<u32>,
}

impl Default for ContractVerify {
    fn default() -> Self {
        Self { max_verifiers: 1, max_repeats: None }
    }
}

/// How a decision is made final.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContractFinalize {
    pub max_finalizers: u32,
}

impl Default for ContractFinalize {
    fn default() -> Self {
        Self { max_finalizers: 1 }
    }
}

/// Requirements for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    pub quorum_threshold: u32,
    pub verifier_policy: WirePolicyBinding,
    pub vote: ContractVote,
    pub settlement: ContractSettlement,
    /// Number of voters that must be able to fetch each piece of evidence. If left out, it is 1 if
    /// the policy's `fetch_evidence` is true; otherwise no evidence is fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub da_quorum_threshold: Option<u32>,
    /// How votes become a decision; if left out, the quorum alone decides. Only Jurat has this
    /// member.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "aggregation")]
    pub aggregation: Option<VoteAggregation>,
}

/// How votes are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractVote {
    pub commit_reveal: bool,
    pub reveal_deadline_ms: u64,
}

/// Settlement of a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContractSettlement {
    pub window_ms: u64,
    pub implicit_weight: f64,
    pub implicit_diminishing_returns: DiminishingReturns,
    pub bad_penalty: BadPenalty,
    pub feedback: ContractFeedback,
}

/// How much less each further success counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiminishingReturns {
    #[serde(rename = "W")]
    pub w: u32,
    #[serde(rename = "K")]
    pub k: u32,
}

/// Penalty for a bad decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadPenalty {
    #[serde(rename = "P")]
    pub p: i64,
}

/// The right to dispute a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractFeedback {
    pub mode: String,
    pub authority_pubkey: String,
}

/// Evidence allowed with a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidencePolicy {
    pub max_inline_evidence_bytes: u64,
    pub max_inline_media_bytes: u64,
    pub inline_mime_allowlist: Vec<String>,
    #[serde(default = "snippet_bytes")]
    pub max_snippet_bytes: u64,
    #[serde(default = "snippet_tokens")]
    pub max_snippet_tokens: u64,
}

/// The parts of a contract that differ between jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct JobContract<I = Value> {
    pub task_id: String,
    pub task_type: String,
    pub inputs: I,
    pub output_schema: Value,
    pub timeout_ms: u64,
    pub max_steps: u32,
    pub policy: policy::PolicyBinding,
    /// Expiry time, in milliseconds since 1970.
    pub expiry_ms: u64,
}

impl<I> TaskContract<I> {
    /// A complete contract for one job, like those that the real kernel makes.
    pub fn for_job(job: JobContract<I>) -> Self {
        Self {
            protocol_version: "v0.1".to_owned(),
            task_id: job.task_id,
            task_type: job.task_type,
            inputs: job.inputs,
            output_schema: job.output_schema,
            budget: ContractBudget::within(job.timeout_ms, job.max_steps),
            assignment: Assignment::single(),
            acceptance: Acceptance::under(job.policy.into()),
            task_mode: one_shot(),
            expiry_ms: job.expiry_ms,
            evidence_policy: EvidencePolicy::standard(),
        }
    }
}

impl TaskContract {
    /// A contract to start from: its quorum is 1, its schema alone decides, and it expires after
    /// ten minutes.
    pub fn sample(task_id: &str, now_ms: u64) -> Self {
        let mut sample = Self::for_job(JobContract {
            task_id: task_id.to_owned(),
            task_type: "swarm".to_owned(),
            inputs: json!({ "prompt": "hello" }),
            output_schema: json!({
                "type": "object",
                "required": ["answer"],
                "properties": {
                    "answer": { "type": "string" },
                    "confidence": { "type": "number" },
                    "check_summary": { "type": "string" },
                },
            }),
            timeout_ms: 120_000,
            max_steps: 10,
            policy: policy::PolicyBinding::new(policy::SCHEMA_ONLY, json!({})),
            expiry_ms: now_ms.saturating_add(600_000),
        });
        sample.acceptance.da_quorum_threshold = None;
        sample.acceptance.aggregation = Some(VoteAggregation::Quorum);
        sample
    }
}

impl ContractBudget {
    fn within(time_ms: u64, max_steps: u32) -> Self {
        Self {
            time_ms,
            max_steps,
            cost_units: 1_000,
            mode: lifetime(),
            explore_cost_units: 350,
            verify_cost_units: 450,
            finalize_cost_units: 200,
            // A kernel refuses a contract that allows more time for reuse than for the whole task.
            reuse_verify_time_ms: time_ms.min(20_000),
            reuse_verify_cost_units: 200,
            reuse_max_attempts: 1,
        }
    }
}

impl Assignment {
    fn single() -> Self {
        let max_concurrency = MaxConcurrency { propose: 1, verify: 1 };
        Self {
            mode: "CLAIM".to_owned(),
            claim: ContractClaim { lease_ms: 5_000, max_concurrency },
            explore: ContractExplore::default(),
            verify: ContractVerify::default(),
            finalize: ContractFinalize::default(),
        }
    }
}

impl Acceptance {
    fn under(verifier_policy: WirePolicyBinding) -> Self {
        Self {
            quorum_threshold: 1,
            verifier_policy,
            vote: ContractVote { commit_reveal: true, reveal_deadline_ms: 10_000 },
            settlement: ContractSettlement {
                window_ms: 86_400_000,
                implicit_weight: 0.1,
                implicit_diminishing_returns: DiminishingReturns { w: 10, k: 50 },
                bad_penalty: BadPenalty { p: 3 },
                feedback: ContractFeedback {
                    mode: "CAPABILITY".to_owned(),
                    authority_pubkey: "ed25519:placeholder".to_owned(),
                },
            },
            da_quorum_threshold: Some(1),
            aggregation: None,
        }
    }
}

impl EvidencePolicy {
    /// The terms for inline evidence.
    pub fn terms(self) -> InlineTerms {
        InlineTerms {
            most_bytes: self.max_inline_evidence_bytes,
            snippet_bytes: self.max_snippet_bytes,
            snippet_tokens: self.max_snippet_tokens,
            mimes: self.inline_mime_allowlist,
            may_hold_media: 0 < self.max_inline_media_bytes,
        }
    }

    fn standard() -> Self {
        let mimes = ["application/json", "text/plain", "text/markdown", "text/csv"];
        Self {
            max_inline_evidence_bytes: 65_536,
            max_inline_media_bytes: 0,
            inline_mime_allowlist: mimes.map(str::to_owned).to_vec(),
            max_snippet_bytes: snippet_bytes(),
            max_snippet_tokens: snippet_tokens(),
        }
    }
}

/// Reads and writes the aggregation as a word.
mod aggregation {
    use jurat_core::task::VoteAggregation;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        word: &Option<VoteAggregation>,
        writer: S,
    ) -> Result<S::Ok, S::Error> {
        word.map(VoteAggregation::as_str).serialize(writer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        reader: D,
    ) -> Result<Option<VoteAggregation>, D::Error> {
        let word = Option::<String>::deserialize(reader)?;
        let read = |word: String| {
            word.parse().map_err(|()| {
                let known: Vec<&str> = VoteAggregation::ALL.iter().map(|it| it.as_str()).collect();
                D::Error::custom(format!("must be one of {}", known.join(", ")))
            })
        };
        word.map(read).transpose()
    }
}

/// Fills in members that the `task_contract` of an execute request leaves out.
///
/// A missing contract and members of the wrong type stay as they are: the decoder names them.
pub(super) fn complete(request: &mut Value) {
    let Some(request) = request.as_object_mut() else { return };
    let Some(contract @ Value::Object(_)) = request.get_mut("task_contract") else { return };
    let Value::Object(mut given) = contract.take() else { return };
    for name in ["task_id", "task_type", "inputs"] {
        if let (None, Some(value)) = (given.get(name), request.get(name)) {
            given.insert(name.to_owned(), value.clone());
        }
    }
    if let Ok(Value::Object(sample)) = serde_json::to_value(form()) {
        fill(&mut given, sample);
    }
    request.insert("task_contract".to_owned(), Value::Object(given));
}

fn form() -> TaskContract {
    TaskContract::for_job(JobContract {
        task_id: String::new(),
        task_type: String::new(),
        inputs: json!({}),
        output_schema: json!({}),
        timeout_ms: 30_000,
        max_steps: 10,
        policy: policy::PolicyBinding {
            policy_id: "vp.schema_only.v1".to_owned(),
            policy_version: "1".to_owned(),
            policy_hash: String::new(),
            policy_params: json!({}),
        },
        expiry_ms: 0,
    })
}

fn fill(given: &mut Map<String, Value>, sample: Map<String, Value>) {
    for (name, value) in sample {
        // The schema, the inputs and the policy's parameters are the caller's own documents: the
        // sample adds nothing to them.
        let is_document = matches!(name.as_str(), "output_schema" | "inputs" | "policy_params");
        match (given.get_mut(&name), value) {
            (None, value) => {
                given.insert(name, value);
            }
            (Some(Value::Object(inner)), Value::Object(sample)) if !is_document => {
                fill(inner, sample);
            }
            (Some(_), _) => {}
        }
    }
}

fn one_shot() -> String {
    "ONE_SHOT".to_owned()
}

fn lifetime() -> String {
    "LIFETIME".to_owned()
}

const fn snippet_bytes() -> u64 {
    8_192
}

const fn snippet_tokens() -> u64 {
    2_048
}
