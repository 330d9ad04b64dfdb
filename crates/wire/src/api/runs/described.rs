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

use crate::api::{
    choices::{ExecutorName, NullCause, TieCause, VerifierName},
    words::{MissingReputation, NullStep, TieStep},
};

/// A run to submit: its spec alone, or with the word to begin.
#[derive(Debug)]
pub struct SubmitRun;

impl PartialSchema for SubmitRun {
    fn schema() -> RefOr<Schema> {
        let choice = OneOfBuilder::new()
            .description(Some("A spec alone, or with the word to begin."))
            .item(Ref::from_schema_name(RunSpecBody::name()))
            .item(Ref::from_schema_name(RunOrderBody::name()));
        RefOr::T(choice.build().into())
    }
}

impl ToSchema for SubmitRun {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RunSpecBody::name().into_owned(), RunSpecBody::schema()));
        RunSpecBody::schemas(schemas);
        schemas.push((RunOrderBody::name().into_owned(), RunOrderBody::schema()));
    }
}

/// A spec with the word to begin.
#[derive(Debug, ToSchema)]
#[schema(as = RunOrder)]
#[serde(deny_unknown_fields)]
pub struct RunOrderBody {
    /// Whether it begins at once; otherwise it waits for a kickoff.
    pub kickoff: Option<bool>,
    /// `run_spec` is another name for it.
    pub spec: RunSpecBody,
}

/// What a run of several agents does.
#[derive(Debug, ToSchema)]
#[schema(as = RunSpec)]
#[serde(deny_unknown_fields)]
pub struct RunSpecBody {
    /// The name of the run, which no other run of the account has.
    #[schema(pattern = r"^(?!(\.|\.\.|sample)$)[A-Za-z0-9_.-]{1,64}$")]
    pub run_id: String,
    /// What the executors must declare; `swarm` when left out.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub task_type: Option<String>,
    /// What every agent is given in `inputs`, beside its own `prompt` and `agent_id`.
    #[schema(value_type = Option<Object>)]
    pub shared_inputs: Option<Value>,
    #[schema(min_items = 1, max_items = 64)]
    pub agents: Vec<RunAgent>,
    /// Members of the contract of every step that differ from the sample, such as
    /// `output_schema`, `acceptance` or `budget`. The run fills `task_id`, `task_type` and
    /// `inputs` itself.
    #[schema(value_type = Option<Object>)]
    pub contract: Option<Value>,
    /// Executors that verify what the agents say; left out, as for any task.
    #[schema(max_items = 64)]
    pub verifiers: Option<Vec<VerifierName>>,
    /// How many steps of this run are with one executor at a time.
    #[schema(minimum = 1, maximum = 64)]
    pub per_executor: Option<u32>,
    pub retry: Option<RunRetry>,
    pub aggregation: Option<RunAggregation>,
    /// Kept with the spec.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub market_task_id: Option<String>,
    /// Kept with the spec.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub feed_key: Option<String>,
    /// Kept with the spec.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub scope_hint: Option<String>,
}

/// One agent of a run.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAgent {
    /// The name of the agent, which no other agent of the run has.
    #[schema(pattern = "^[A-Za-z0-9_.-]{1,48}$")]
    pub agent_id: String,
    pub executor: ExecutorName,
    /// `default` when left out.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub profile: Option<String>,
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    pub prompt: String,
    /// How much its word counts; 1 when left out.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub weight: Option<f64>,
    /// The higher, the sooner; 0 when left out.
    pub priority: Option<i32>,
    /// Members of the contract that differ from those of the run.
    #[schema(value_type = Option<Object>)]
    pub contract: Option<Value>,
    /// Executors that verify what it says, instead of those of the run.
    #[schema(max_items = 64)]
    pub verifiers: Option<Vec<VerifierName>>,
}

/// How often a step is tried.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRetry {
    /// With the first time; 2 when left out.
    #[schema(minimum = 1, maximum = 16)]
    pub max_attempts: Option<u32>,
    /// Before the second time, and twice as long before each that follows; 1500 when left out.
    #[schema(minimum = 0, maximum = 3_600_000)]
    pub backoff_ms: Option<u64>,
}

/// How what the agents say becomes one result.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAggregation {
    /// A word that is given back.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub mode: Option<String>,
    /// How many agents must say the same; 0 or left out for no such bound.
    #[schema(minimum = 0, maximum = 64)]
    pub quorum: Option<u32>,
    pub tie_policy: Option<RunTiePolicy>,
    pub null_policy: Option<RunNullPolicy>,
}

/// What is done when several values have the most.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTiePolicy {
    /// `TIE` when left out.
    pub enabled_on: Option<Vec<TieCause>>,
    /// Tried in order until one finds a value; `STOCHASTIC` when left out.
    pub chain: Option<Vec<TieStep>>,
    pub reexplore: Option<RunReexplore>,
    pub confidence_weighted: Option<RunConfidence>,
    pub reputation_weighted: Option<RunReputation>,
    /// Has nothing to set.
    pub stochastic: Option<RunDraw>,
}

/// What is done when there is no value.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunNullPolicy {
    /// Both when left out.
    pub enabled_on: Option<Vec<NullCause>>,
    /// `REEXPLORE` and then `FINALIZE_NULL` when left out.
    pub chain: Option<Vec<NullStep>>,
    pub reexplore: Option<RunReexplore>,
}

/// How often the agents are asked once more.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunReexplore {
    /// 1 when left out.
    #[schema(minimum = 0, maximum = 8)]
    pub max_tie_iterations: Option<u32>,
    /// How often in a row that may bring no new evidence; 1 when left out.
    #[schema(minimum = 0, maximum = 64)]
    pub no_new_evidence_rounds: Option<u32>,
    /// Whether that counts at all; true when left out.
    pub require_new_evidence: Option<bool>,
}

/// Where an output says how sure its agent is.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunConfidence {
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub decision_confidence_field: Option<String>,
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub answer_confidence_field: Option<String>,
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 256)]
    pub confidence_field: Option<String>,
    /// Of an output that says nothing; 0.5 when left out.
    #[schema(minimum = 0, maximum = 1)]
    pub default_confidence: Option<f64>,
}

/// What is known of the agents.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunReputation {
    /// By agent.
    pub agent_reputation_units: Option<BTreeMap<String, i64>>,
    pub missing_reputation: Option<MissingReputation>,
}

/// A draw that everybody can repeat.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunDraw {}

/// Why a run is called off.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRunRequest {
    /// Kept with the run.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 500)]
    pub reason: Option<String>,
}
