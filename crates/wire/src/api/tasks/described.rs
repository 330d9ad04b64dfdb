//! The contract of a task as the API describes it; `contract.rs` reads it.

use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{OneOfBuilder, Ref, Schema},
    },
};

use crate::api::{
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
            .description(Some("A contract alone, or with who is to work on it."))
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

/// A contract with who is to work on it.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskOrder {
    pub contract: TaskContractBody,
    /// Names of executors that may propose and verify; left out, all that declare the task type.
    #[schema(max_items = 64)]
    pub executors: Option<Vec<ExecutorName>>,
    /// Names of executors that verify; left out, those of `executors`.
    #[schema(max_items = 64)]
    pub verifiers: Option<Vec<VerifierName>>,
    /// Under which profile they work; `default` when left out.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub profile: Option<String>,
}

/// Under which terms a task is worked on. All times are in milliseconds.
#[derive(Debug, ToSchema)]
#[schema(as = TaskContract)]
#[serde(deny_unknown_fields)]
pub struct TaskContractBody {
    /// Of the contract's own form, such as `v0.1`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 64)]
    pub protocol_version: String,
    /// The name of the task, which no other task of the account has.
    #[schema(pattern = r"^(?!(\.|\.\.|sample)$)[A-Za-z0-9_.:-]{1,128}$")]
    pub task_id: String,
    /// What executors must declare to work on it.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub task_type: String,
    pub inputs: TaskInputs,
    /// The JSON Schema of every candidate.
    #[schema(value_type = Object)]
    pub output_schema: Value,
    pub budget: TaskBudget,
    pub assignment: TaskAssignment,
    pub acceptance: TaskAcceptance,
    /// `ONE_SHOT` when left out.
    pub task_mode: Option<TaskMode>,
    /// When the contract ends: a moment, in milliseconds since 1970.
    #[schema(minimum = 1, maximum = 253_402_300_799_999_u64)]
    pub expiry_ms: u64,
    pub evidence_policy: TaskEvidencePolicy,
}

/// What a task may use. A call of an executor is one step, and costs one unit of its stage.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBudget {
    /// From the first claim to the end.
    #[schema(minimum = 1, maximum = 31_536_000_000_u64)]
    pub time_ms: u64,
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_steps: u32,
    /// At least the sum of the three stages.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub cost_units: u64,
    /// `LIFETIME` when left out.
    pub mode: Option<BudgetMode>,
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub explore_cost_units: u64,
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub verify_cost_units: u64,
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub finalize_cost_units: u64,
    /// For how long an earlier decision is tried first; no more than `time_ms`.
    #[schema(maximum = 31_536_000_000_u64)]
    pub reuse_verify_time_ms: u64,
    /// No more than `cost_units`.
    #[schema(maximum = 1_000_000_000)]
    pub reuse_verify_cost_units: u64,
    #[schema(minimum = 1, maximum = 64)]
    pub reuse_max_attempts: u32,
}

/// Who may work on a task at a time, and how many in all.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAssignment {
    pub mode: AssignmentMode,
    pub claim: TaskClaim,
    pub explore: Option<TaskExplore>,
    pub verify: Option<TaskVerify>,
    pub finalize: Option<TaskFinalize>,
}

/// How work is claimed.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskClaim {
    /// How long a claim holds unless it is renewed.
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: u64,
    pub max_concurrency: TaskConcurrency,
}

/// Claims at a time.
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
    /// Executors that propose, in all; 1 when left out.
    #[schema(minimum = 1, maximum = 64)]
    pub max_proposers: Option<u32>,
    /// Candidates that are verified, at the most; 3 when left out.
    #[schema(minimum = 1, maximum = 64)]
    pub topk: Option<u32>,
    pub stop: Option<TaskExploreStop>,
    /// How often proposing begins anew when everybody failed; 3 when left out.
    #[schema(maximum = 64)]
    pub max_retries: Option<u32>,
    /// How long to wait before the first of those, doubled each time; 1000 when left out.
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub backoff_ms: Option<u64>,
}

/// When no more candidates are looked for.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskExploreStop {
    /// 3 when left out.
    #[schema(minimum = 1, maximum = 64)]
    pub no_new_evidence_rounds: Option<u32>,
}

/// How candidates are verified.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskVerify {
    /// Verdicts on one candidate, at the most; 1 when left out.
    #[schema(minimum = 1, maximum = 64)]
    pub max_verifiers: Option<u32>,
    /// How often a verification that decided nothing is made anew; 2 when left out.
    #[schema(maximum = 64)]
    pub max_repeats: Option<u32>,
}

/// How a decision is made final.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFinalize {
    /// 1 when left out.
    #[schema(minimum = 1, maximum = 64)]
    pub max_finalizers: Option<u32>,
}

/// What a decision needs.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskAcceptance {
    /// Approvals by different verifiers.
    #[schema(minimum = 1, maximum = 64)]
    pub quorum_threshold: u32,
    /// `vp.schema_only.v1` when left out: a candidate must match `output_schema`.
    pub verifier_policy: Option<TaskPolicy>,
    pub vote: TaskVote,
    pub settlement: TaskSettlement,
    /// Verifiers for which each piece of evidence was there; left out, evidence is not fetched.
    #[schema(minimum = 1, maximum = 64)]
    pub da_quorum_threshold: Option<u32>,
    pub aggregation: Option<TaskAggregation>,
}

/// Under which policy candidates are verified.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPolicy {
    /// Such as `vp.schema_only.v1`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub policy_id: String,
    /// `1` when left out.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 64)]
    pub policy_version: Option<String>,
    /// Computed when left out; one that is given must be right.
    #[schema(pattern = "^([Ss][Hh][Aa]256:)?[0-9A-Fa-f]{64}$")]
    pub policy_hash: Option<String>,
    /// Empty when left out.
    #[schema(value_type = Option<Object>)]
    pub policy_params: Option<Value>,
}

/// How votes are taken.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskVote {
    pub commit_reveal: Always,
    /// How long votes may be revealed after the last one was committed.
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub reveal_deadline_ms: u64,
}

/// What follows a decision. Kept with the contract and shown to executors.
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

/// What a bad decision costs.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBadPenalty {
    #[serde(rename = "P")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub p: i64,
}

/// Who may say that a decision was bad.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFeedback {
    pub mode: FeedbackMode,
    /// `ed25519:` and 64 hex digits, or `ed25519:placeholder` for nobody.
    #[schema(pattern = "^ed25519:([0-9A-Fa-f]{64}|placeholder)$")]
    pub authority_pubkey: String,
}

/// What evidence may come with a candidate.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEvidencePolicy {
    /// 65536.
    #[schema(minimum = 65_536, maximum = 65_536)]
    pub max_inline_evidence_bytes: u64,
    /// 0.
    #[schema(minimum = 0, maximum = 0)]
    pub max_inline_media_bytes: u64,
    /// Has `application/json`, `text/plain`, `text/markdown` and `text/csv`.
    #[schema(min_items = 4, max_items = 32)]
    pub inline_mime_allowlist: Vec<String>,
    /// The most bytes of one piece of inline evidence; 8192 when left out.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_snippet_bytes: Option<u64>,
    /// The most tokens of one piece of inline evidence, of four bytes each; 2048 when left out.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub max_snippet_tokens: Option<u64>,
}
