//! What a run is asked to do as the API describes it; `spec.rs` reads it.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{OneOfBuilder, Ref, Schema},
    },
};

use crate::api::kit::{
    choices::{ExecutorName, NullCause, TieCause, VerifierName},
    words::{MissingReputation, NullStep, TieStep},
};

/// A run to submit: its spec alone, or with the word to begin.
#[derive(Debug)]
pub struct SubmitRun;

impl PartialSchema for SubmitRun {
    fn schema() -> RefOr<Schema> {
        let choice = OneOfBuilder::new()
            .description(Some("A spec, alone or with `kickoff`."))
            .item(Ref::from_schema_name(AgentRunSpecBody::name()))
            .item(Ref::from_schema_name(AgentRunRequestBody::name()));
        RefOr::T(choice.build().into())
    }
}

impl ToSchema for SubmitRun {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((AgentRunSpecBody::name().into_owned(), AgentRunSpecBody::schema()));
        AgentRunSpecBody::schemas(schemas);
        schemas.push((AgentRunRequestBody::name().into_owned(), AgentRunRequestBody::schema()));
    }
}

/// A spec with `kickoff`.
#[derive(Debug, ToSchema)]
#[schema(as = RunOrder)]
#[serde(deny_unknown_fields)]
pub struct AgentRunRequestBody {
    /// Whether to start the run immediately; otherwise it waits for a kickoff.
    pub kickoff: Option<bool>,
    /// The spec; `run_spec` is an alias.
    pub spec: AgentRunSpecBody,
}

/// The spec of an agent run.
#[derive(Debug, ToSchema)]
#[schema(as = RunSpec)]
#[serde(deny_unknown_fields)]
pub struct AgentRunSpecBody {
    /// The id of the run, unique within the account.
    #[schema(pattern = r"^(?!(\.|\.\.|sample)$)[A-Za-z0-9_.-]{1,64}$")]
    pub run_id: String,
    /// Task type that the executors must declare; defaults to `swarm`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub task_type: Option<String>,
    /// Input of every agent in `inputs`, in addition to its own `prompt` and `agent_id`.
    #[schema(value_type = Option<Object>)]
    pub shared_inputs: Option<Value>,
    #[schema(min_items = 1, max_items = 64)]
    pub agents: Vec<RunAgent>,
    /// Contract members of every step that differ from the sample, such as `output_schema`,
    /// `acceptance` or `budget`. The run sets `task_id`, `task_type` and `inputs` itself.
    #[schema(value_type = Option<Object>)]
    pub contract: Option<Value>,
    /// Executors that vote on the agents' outputs; if left out, as for any task.
    #[schema(max_items = 64)]
    pub verifiers: Option<Vec<VerifierName>>,
    /// Maximum number of concurrent steps of this run per executor.
    #[schema(minimum = 1, maximum = 64)]
    pub per_executor: Option<u32>,
    pub retry: Option<RunRetry>,
    pub aggregation: Option<RunAggregation>,
    /// Stored with the spec.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub market_task_id: Option<String>,
    /// Stored with the spec.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub feed_key: Option<String>,
    /// Stored with the spec.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub scope_hint: Option<String>,
}

/// One agent of a run.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAgent {
    /// The id of the agent, unique within the run.
    #[schema(pattern = "^[A-Za-z0-9_.-]{1,48}$")]
    pub agent_id: String,
    pub executor: ExecutorName,
    /// Defaults to `default`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub profile: Option<String>,
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    pub prompt: String,
    /// Weight of the agent's value; defaults to 1.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub weight: Option<f64>,
    /// Higher priorities run first; defaults to 0.
    pub priority: Option<i32>,
    /// Contract members that differ from those of the run.
    #[schema(value_type = Option<Object>)]
    pub contract: Option<Value>,
    /// Executors that vote on its output, instead of those of the run.
    #[schema(max_items = 64)]
    pub verifiers: Option<Vec<VerifierName>>,
}

/// How often a step is attempted.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRetry {
    /// Number of attempts, including the first; defaults to 2.
    #[schema(minimum = 1, maximum = 16)]
    pub max_attempts: Option<u32>,
    /// Delay before the second attempt, doubled before each later one; defaults to 1500.
    #[schema(minimum = 0, maximum = 3_600_000)]
    pub backoff_ms: Option<u64>,
}

/// How the agents' values are combined into one result.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAggregation {
    /// A name that is returned unchanged.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub mode: Option<String>,
    /// Number of agents that must agree; 0 or left out for no minimum.
    #[schema(minimum = 0, maximum = 64)]
    pub quorum: Option<u32>,
    pub tie_policy: Option<RunTiePolicy>,
    pub null_policy: Option<RunNullPolicy>,
}

/// What to do when several values are tied.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTiePolicy {
    /// Defaults to `TIE`.
    pub enabled_on: Option<Vec<TieCause>>,
    /// Tried in order until one gives a value; defaults to `STOCHASTIC`.
    pub chain: Option<Vec<TieStep>>,
    pub reexplore: Option<RunReexplore>,
    pub confidence_weighted: Option<RunConfidence>,
    pub reputation_weighted: Option<RunReputation>,
    /// Has no settings.
    pub stochastic: Option<RunDraw>,
}

/// What to do when there is no value.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunNullPolicy {
    /// Defaults to both.
    pub enabled_on: Option<Vec<NullCause>>,
    /// Defaults to `REEXPLORE`, then `FINALIZE_NULL`.
    pub chain: Option<Vec<NullStep>>,
    pub reexplore: Option<RunReexplore>,
}

/// How often the agents are asked again.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunReexplore {
    /// Defaults to 1.
    #[schema(minimum = 0, maximum = 8)]
    pub max_tie_iterations: Option<u32>,
    /// How many iterations in a row may bring no new evidence; defaults to 1.
    #[schema(minimum = 0, maximum = 64)]
    pub no_new_evidence_rounds: Option<u32>,
    /// Whether to apply that limit; defaults to true.
    pub require_new_evidence: Option<bool>,
}

/// Where an output states its agent's confidence.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunConfidence {
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub decision_confidence_field: Option<String>,
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub answer_confidence_field: Option<String>,
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub confidence_field: Option<String>,
    /// Confidence of an output that states none; defaults to 0.5.
    #[schema(minimum = 0, maximum = 1)]
    pub default_confidence: Option<f64>,
}

/// Reputation of the agents.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunReputation {
    /// Reputation by agent.
    pub agent_reputation_units: Option<BTreeMap<String, i64>>,
    pub missing_reputation: Option<MissingReputation>,
}

/// A reproducible draw.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunDraw {}

/// Why a run is cancelled.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRunRequest {
    /// Stored with the run.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 500)]
    pub reason: Option<String>,
}
