//! The contract of a task as the API describes it; `contract.rs` reads it.

use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{OneOfBuilder, Ref, Schema},
    },
};

use crate::api::kit::{
    choices::{
        Always, AssignmentMode, BudgetMode, ExecutorName, FeedbackMode, TaskInputs, TaskMode,
        VerifierName,
    },
    words::TaskAggregation,
};

/// A task to submit: its contract alone, or with who is to work on it.
#[derive(Debug)]
pub struct SubmitTask;

impl PartialSchema for SubmitTask {
    fn schema() -> RefOr<Schema> {
        let choice = OneOfBuilder::new()
            .description(Some("A contract, alone or with the executors for it."))
            .item(Ref::from_schema_name(TaskContractBody::name()))
            .item(Ref::from_schema_name(TaskOrder::name()));
        RefOr::T(choice.build().into())
    }
}

impl ToSchema for SubmitTask {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((TaskContractBody::name().into_owned(), TaskContractBody::schema()));
        TaskContractBody::schemas(schemas);
        schemas.push((TaskOrder::name().into_owned(), TaskOrder::schema()));
        TaskOrder::schemas(schemas);
    }
}

/// A contract with the executors for it.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskOrder {
    pub contract: TaskContractBody,
    /// Executors that may propose and vote; defaults to all that declare the task type.
    #[schema(max_items = 64)]
    pub executors: Option<Vec<ExecutorName>>,
    /// Executors that vote; defaults to those of `executors`.
    #[schema(max_items = 64)]
    pub verifiers: Option<Vec<VerifierName>>,
    /// Profile that the executors use; defaults to `default`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub profile: Option<String>,
}

/// The terms of a task. All times are in milliseconds.
#[derive(Debug, ToSchema)]
#[schema(as = TaskContract)]
#[serde(deny_unknown_fields)]
pub struct TaskContractBody {
    /// Version of the contract format, such as `v0.1`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 64)]
    pub protocol_version: String,
    /// The id of the task, unique within the account.
    #[schema(pattern = r"^(?!(\.|\.\.|sample)$)[A-Za-z0-9_.:-]{1,128}$")]
    pub task_id: String,
    /// Task type that executors must declare to work on it.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub task_type: String,
    pub inputs: TaskInputs,
    /// The JSON Schema of every candidate.
    #[schema(value_type = Object)]
    pub output_schema: Value,
    pub budget: TaskBudget,
    pub assignment: TaskAssignment,
    pub acceptance: TaskAcceptance,
    /// Defaults to `ONE_SHOT`.
    pub task_mode: Option<TaskMode>,
    /// When the contract expires, in milliseconds since 1970.
    #[schema(minimum = 1, maximum = 253_402_300_799_999_u64)]
    pub expiry_ms: u64,
    pub evidence_policy: TaskEvidencePolicy,
}

/// The budget of a task. Each call to an executor is one step and costs one unit of its stage.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBudget {
    /// Time from the first lease to the end.
    #[schema(minimum = 1, maximum = 31_536_000_000_u64)]
    pub time_ms: u64,
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_steps: u32,
    /// At least the sum of the three stages.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub cost_units: u64,
    /// Defaults to `LIFETIME`.
    pub mode: Option<BudgetMode>,
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub explore_cost_units: u64,
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub verify_cost_units: u64,
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub finalize_cost_units: u64,
    /// Time for first trying to reuse an earlier decision; at most `time_ms`.
    #[schema(maximum = 31_536_000_000_u64)]
    pub reuse_verify_time_ms: u64,
    /// At most `cost_units`.
    #[schema(maximum = 1_000_000_000)]
    pub reuse_verify_cost_units: u64,
    #[schema(minimum = 1, maximum = 64)]
    pub reuse_max_attempts: u32,
}

/// How many executors may work on a task, concurrently and in total.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAssignment {
    pub mode: AssignmentMode,
    pub claim: TaskClaim,
    pub explore: Option<TaskExplore>,
    pub verify: Option<TaskVerify>,
    pub finalize: Option<TaskFinalize>,
}

/// How executors claim work.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskClaim {
    /// Duration of a lease unless it is renewed.
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: u64,
    pub max_concurrency: TaskConcurrency,
}

/// Maximum number of concurrent leases.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskConcurrency {
    #[schema(minimum = 1, maximum = 64)]
    pub propose: u32,
    #[schema(minimum = 1, maximum = 64)]
    pub verify: u32,
}

/// How candidates are found.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskExplore {
    /// Total number of executors that propose; defaults to 1.
    #[schema(minimum = 1, maximum = 64)]
    pub max_proposers: Option<u32>,
    /// Maximum number of candidates that are voted on; defaults to 3.
    #[schema(minimum = 1, maximum = 64)]
    pub topk: Option<u32>,
    pub stop: Option<TaskExploreStop>,
    /// How often proposing restarts after all proposers failed; defaults to 3.
    #[schema(maximum = 64)]
    pub max_retries: Option<u32>,
    /// Delay before the first restart, doubled each time; defaults to 1000.
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub backoff_ms: Option<u64>,
}

/// When to stop looking for candidates.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskExploreStop {
    /// Defaults to 3.
    #[schema(minimum = 1, maximum = 64)]
    pub no_new_evidence_rounds: Option<u32>,
}

/// How candidates are voted on.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskVerify {
    /// Maximum number of verdicts per candidate; defaults to 1.
    #[schema(minimum = 1, maximum = 64)]
    pub max_verifiers: Option<u32>,
    /// How often an undecided vote is repeated; defaults to 2.
    #[schema(maximum = 64)]
    pub max_repeats: Option<u32>,
}

/// How a decision is made final.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFinalize {
    /// Defaults to 1.
    #[schema(minimum = 1, maximum = 64)]
    pub max_finalizers: Option<u32>,
}

/// Requirements for a decision.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAcceptance {
    /// Number of approvals by different voters.
    #[schema(minimum = 1, maximum = 64)]
    pub quorum_threshold: u32,
    /// Defaults to `vp.schema_only.v1`: a candidate must match `output_schema`.
    pub verifier_policy: Option<TaskPolicy>,
    pub vote: TaskVote,
    pub settlement: TaskSettlement,
    /// Number of voters that must be able to fetch each piece of evidence; if left out, evidence is
    /// not fetched.
    #[schema(minimum = 1, maximum = 64)]
    pub da_quorum_threshold: Option<u32>,
    pub aggregation: Option<TaskAggregation>,
}

/// The policy that candidates are voted on under.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPolicy {
    /// Such as `vp.schema_only.v1`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub policy_id: String,
    /// Defaults to `1`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 64)]
    pub policy_version: Option<String>,
    /// Computed if left out; otherwise it must be correct.
    #[schema(pattern = "^([Ss][Hh][Aa]256:)?[0-9A-Fa-f]{64}$")]
    pub policy_hash: Option<String>,
    /// Defaults to empty.
    #[schema(value_type = Option<Object>)]
    pub policy_params: Option<Value>,
}

/// How votes are taken.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskVote {
    pub commit_reveal: Always,
    /// How long votes may be revealed after the last commit.
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub reveal_deadline_ms: u64,
}

/// Settlement of a decision. Stored with the contract and shown to executors.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSettlement {
    #[schema(maximum = 31_536_000_000_u64)]
    pub window_ms: u64,
    #[schema(minimum = 0, maximum = 1)]
    pub implicit_weight: f64,
    pub implicit_diminishing_returns: TaskDiminishingReturns,
    pub bad_penalty: TaskBadPenalty,
    pub feedback: TaskFeedback,
}

/// How much less each further success counts.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskDiminishingReturns {
    #[serde(rename = "W")]
    #[schema(maximum = 4_294_967_295_u64)]
    pub w: u32,
    #[serde(rename = "K")]
    #[schema(minimum = 1, maximum = 4_294_967_295_u64)]
    pub k: u32,
}

/// Penalty for a bad decision.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBadPenalty {
    #[serde(rename = "P")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub p: i64,
}

/// Who may dispute a decision.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFeedback {
    pub mode: FeedbackMode,
    /// `ed25519:` and 64 hex digits, or `ed25519:placeholder` for no key.
    #[schema(pattern = "^ed25519:([0-9A-Fa-f]{64}|placeholder)$")]
    pub authority_pubkey: String,
}

/// Evidence allowed with a candidate.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEvidencePolicy {
    /// Must be 65536.
    #[schema(minimum = 65_536, maximum = 65_536)]
    pub max_inline_evidence_bytes: u64,
    /// Must be 0.
    #[schema(minimum = 0, maximum = 0)]
    pub max_inline_media_bytes: u64,
    /// Must contain `application/json`, `text/plain`, `text/markdown` and `text/csv`.
    #[schema(min_items = 4, max_items = 32)]
    pub inline_mime_allowlist: Vec<String>,
    /// Maximum bytes of one piece of inline evidence; defaults to 8192.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_snippet_bytes: Option<u64>,
    /// Maximum tokens of one piece of inline evidence, at four bytes each; defaults to 2048.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_snippet_tokens: Option<u64>,
}
