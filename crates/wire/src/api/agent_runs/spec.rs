//! The spec of an agent run: its fields, their rules, and the conversion to the domain type.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    agent_run::{
        AgentRun, AgentRunSpec, AgentSpec, AggregationSpec, ConfidenceFields, NullAction,
        NullPolicy, ReexploreLimits, ReputationUnits, RetrySpec, TieBreak, TiePolicy,
        UnresolvedCause,
    },
    code::ProblemCode,
    time::Timestamp,
};
use serde_json::{Value, json};
use utoipa::openapi::{
    KnownFormat, RefOr, SchemaFormat,
    schema::{ObjectBuilder, Schema},
};

use super::step;
use crate::{
    api::{
        kit::{
            faults::RequestFaults,
            json::kind,
            request::{
                FieldFault, FieldPath, Hidden, ListOf, RequestField, SchemaParts, component,
                integer, named, object, one_of, request, text,
                unknown::FieldShape,
                values,
                values::{Count, FreeObject, PlainText, Whole, filled, list_of, number, texts_of},
            },
            words::{MissingReputation, NullStep, TieStep},
        },
        tasks::{ExecutorName, VoterList},
    },
    problem::Problem,
};

/// A run to submit: its spec alone, or with `kickoff`.
#[derive(Debug)]
pub struct SubmitRun;

named!(
    SubmitRun:
        one_of("A spec, alone or with `kickoff`.")
            .item(component::<AgentRunSpecBody>())
            .item(component::<AgentRunRequestBody>()),
    with AgentRunSpecBody, AgentRunRequestBody
);

request! {
    /// A spec with `kickoff`.
    pub strict struct AgentRunRequestBody as "RunOrder" {
        /// Whether to start the run immediately; otherwise it waits for a kickoff.
        kickoff: Option<bool>,
        /// The spec; `run_spec` is an alias.
        spec | run_spec: AgentRunSpecBody,
    }

    /// The spec of an agent run.
    pub strict struct AgentRunSpecBody as "RunSpec" {
        /// Stored with the spec.
        market_task_id: Option<PlainText<256>>,
        /// Stored with the spec.
        feed_key: Option<PlainText<256>>,
        /// Stored with the spec.
        scope_hint: Option<PlainText<256>>,
        round_policy: Hidden<NoRoundPolicy>,
        /// The id of the run, unique within the account.
        run_id: RunName,
        /// Task type that the executors must declare; defaults to `swarm`.
        task_type: Option<PlainText<128>>,
        /// Input of every agent in `inputs`, in addition to its own `prompt` and `agent_id`.
        shared_inputs: Option<FreeObject>,
        agents: AgentList,
        /// Contract members of every step that differ from the sample, such as `output_schema`,
        /// `acceptance` or `budget`. The run sets `task_id`, `task_type` and `inputs` itself.
        contract: Option<FreeObject>,
        /// Executors that vote on the agents' outputs; if left out, as for any task.
        verifiers: Option<VoterList>,
        /// Maximum number of concurrent steps of this run per executor.
        per_executor: Option<Count<1, 64>>,
        retry: Option<RunRetry>,
        aggregation: Option<RunAggregation>,
    }

    /// One agent of a run.
    pub strict struct RunAgent {
        /// The id of the agent, unique within the run.
        agent_id: AgentName,
        executor: ExecutorName,
        /// Defaults to `default`.
        profile: Option<PlainText<128>>,
        prompt: PlainText,
        /// Weight of the agent's value; defaults to 1.
        weight: Option<AgentWeight>,
        /// Higher priorities run first; defaults to 0.
        priority: Option<Priority>,
        /// Contract members that differ from those of the run.
        contract: Option<FreeObject>,
        /// Executors that vote on its output, instead of those of the run.
        verifiers: Option<VoterList>,
    }

    /// How often a step is attempted.
    pub strict struct RunRetry {
        /// Number of attempts, including the first; defaults to 2.
        max_attempts: Option<Count<1, 16>>,
        /// Delay before the second attempt, doubled before each later one; defaults to 1500.
        backoff_ms: Option<Whole<0, 3_600_000>>,
    }

    /// How the agents' values are combined into one result.
    pub strict struct RunAggregation {
        /// A name that is returned unchanged.
        mode: Option<PlainText<256>>,
        /// Number of agents that must agree; 0 or left out for no minimum.
        quorum: Option<Count<0, 64>>,
        tie_policy: Option<RunTiePolicy>,
        null_policy: Option<RunNullPolicy>,
    }

    /// What to do when several values are tied.
    pub strict struct RunTiePolicy {
        /// Defaults to `TIE`.
        enabled_on: Option<TieCauses>,
        /// Tried in order until one gives a value; defaults to `STOCHASTIC`.
        chain: Option<TieSteps>,
        reexplore: Option<RunReexplore>,
        confidence_weighted: Option<RunConfidence>,
        reputation_weighted: Option<RunReputation>,
        /// Has no settings.
        stochastic: Option<RunDraw>,
    }

    /// What to do when there is no value.
    pub strict struct RunNullPolicy {
        /// Defaults to both.
        enabled_on: Option<NullCauses>,
        /// Defaults to `REEXPLORE`, then `FINALIZE_NULL`.
        chain: Option<NullSteps>,
        reexplore: Option<RunReexplore>,
    }

    /// How often the agents are asked again.
    pub strict struct RunReexplore {
        /// Defaults to 1.
        max_tie_iterations: Option<Count<0, 8>>,
        /// How many iterations in a row may bring no new evidence; defaults to 1.
        no_new_evidence_rounds: Option<Count<0, 64>>,
        /// Whether to apply that limit; defaults to true.
        require_new_evidence: Option<bool>,
    }

    /// Where an output states its agent's confidence.
    pub strict struct RunConfidence {
        decision_confidence_field: Option<PlainText<256>>,
        answer_confidence_field: Option<PlainText<256>>,
        confidence_field: Option<PlainText<256>>,
        /// Confidence of an output that states none; defaults to 0.5.
        default_confidence: Option<DefaultConfidence>,
    }

    /// Reputation of the agents.
    pub strict struct RunReputation {
        /// Reputation by agent.
        agent_reputation_units: Option<UnitsByAgent>,
        missing_reputation: Option<MissingReputation>,
    }

    /// A reproducible draw.
    pub strict struct RunDraw {}

    /// Why a run is cancelled.
    pub strict struct CancelRunRequest, draft CancelRunDraft {
        /// Stored with the run.
        reason: Option<PlainText<500>>,
    }
}

// The core checks the limits that these readers do not.
values! {
    /// The id of a run.
    pub struct RunName(String):
        text().pattern(Some(r"^(?!(\.|\.\.|sample)$)[A-Za-z0-9_.-]{1,64}$")) => filled;

    /// The id of an agent.
    pub struct AgentName(String): text().pattern(Some("^[A-Za-z0-9_.-]{1,48}$")) => filled;

    /// The weight of an agent's value.
    pub struct AgentWeight(f64): number().minimum(Some(0)).maximum(Some(1_000_000)) => any_number;

    /// The confidence of an output that states none.
    pub struct DefaultConfidence(f64): number().minimum(Some(0)).maximum(Some(1)) => any_number;

    /// The priority of an agent.
    pub struct Priority(i32):
        integer().format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32))) => priority;

    /// A field for agents that join over a network of nodes, which is not supported.
    pub struct NoRoundPolicy(()): text() => no_round_policy;

    /// Why there is no single value.
    pub(crate) named struct TieCause(UnresolvedCause as String):
        text().enum_values(Some(TIE_CAUSES)).description(Some("Why there is no single value."))
        => tie_cause;

    /// Causes for which ties are broken.
    pub struct TieCauses(BTreeSet<UnresolvedCause> as Vec<String>):
        list_of::<TieCause>() => tie_causes, with TieCause;

    /// Why there is no value.
    pub(crate) named struct NullCause(UnresolvedCause as String):
        text().enum_values(Some(NULL_CAUSES)).description(Some("Why there is no value."))
        => null_cause;

    /// Causes for which the null policy applies.
    pub struct NullCauses(BTreeSet<UnresolvedCause> as Vec<String>):
        list_of::<NullCause>() => null_causes, with NullCause;

    /// Ways to break a tie, in order.
    pub struct TieSteps(Vec<TieBreak> as Vec<String>): list_of::<TieStep>() => tie_steps, with TieStep;

    /// Ways to proceed without a value, in order.
    pub struct NullSteps(Vec<NullAction> as Vec<String>): list_of::<NullStep>() => null_steps, with NullStep;

    /// Reputation by agent.
    pub struct UnitsByAgent(BTreeMap<String, i64>): units_schema() => units;
}

const TIE_CAUSES: [&str; 2] = ["QUORUM_NULL", "TIE"];
const NULL_CAUSES: [&str; 2] = ["EMPTY", "QUORUM_NULL"];

/// The agents of a run.
#[derive(Debug)]
pub struct AgentList(pub Vec<RunAgent>);

/// The same list with its bounds, for the description.
type BoundedAgents = ListOf<RunAgent, 1, 64>;

impl RequestField for AgentList {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        BoundedAgents::read(value, at, faults).map(|agents| Self(agents.0))
    }

    fn absent() -> Result<Self, &'static str> {
        Err("is required: name the agents of the run")
    }

    fn describe() -> RefOr<Schema> {
        BoundedAgents::describe()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        BoundedAgents::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        BoundedAgents::shape()
    }
}

/// Labels for networks of nodes. Jurat only stores them with the spec.
pub(super) const LABELS: [&str; 3] = ["market_task_id", "feed_key", "scope_hint"];

/// Converts a spec and checks the rules across its fields.
pub(super) fn checked(body: AgentRunSpecBody, at: &FieldPath<'_>) -> Result<AgentRunSpec, Problem> {
    let spec = AgentRunSpec::from(body);
    let mut faults = RequestFaults::default();
    for error in spec.check() {
        faults.add(at.member(&error.field).wrong(&error.reason));
    }
    faults.problem(ProblemCode::ValidationError).map_or(Ok(spec), Err)
}

/// Checks that the contract of every step can be made.
pub(super) fn check_steps(
    at: &FieldPath<'_>,
    spec: AgentRunSpec,
    now: Timestamp,
) -> Result<(), Problem> {
    let mut faults = RequestFaults::default();
    let run = AgentRun::new(spec, now);
    for (index, agent) in run.spec.agents.iter().enumerate() {
        for problem in step::read_step_submission(&run, &agent.agent_id).err().into_iter().flatten()
        {
            // A fault in the run's own contract occurs in every step, but is reported once.
            faults.add_once(of_agent(at, (index, agent), &problem));
        }
    }
    faults.problem(ProblemCode::ValidationError).map_or(Ok(()), Err)
}

/// Path prefix of a contract member: the run's contract, unless only an agent's contract has the
/// member.
pub(super) fn holder(spec: &Value, member: &str) -> String {
    let has = |it: &Value| it["contract"].get(member).is_some();
    let agents = spec["agents"].as_array();
    let agent = agents.and_then(|all| all.iter().position(has));
    match agent {
        Some(index) if !has(spec) => format!("agents.{index}.contract."),
        Some(_) | None => "contract.".to_owned(),
    }
}

/// A problem with the contract of a step, with the path at which the caller wrote the member.
fn of_agent(at: &FieldPath<'_>, (index, agent): (usize, &AgentSpec), problem: &Problem) -> Problem {
    let field = problem.field.as_deref().unwrap_or("contract");
    let member = field.strip_prefix("contract.").unwrap_or(field);
    let top = member.split('.').next().unwrap_or(member);
    let is_own = agent.contract.get(top).is_some();
    let name = if is_own { format!("agents.{index}.{field}") } else { field.to_owned() };
    let prefix = format!("`{field}` ");
    let reason = problem.detail.strip_prefix(&prefix).unwrap_or(&problem.detail);
    at.member(&name).wrong(reason)
}

fn priority(value: &Value) -> Result<i32, FieldFault> {
    let read = value.as_i64().and_then(|it| i32::try_from(it).ok());
    read.ok_or_else(|| "must be a whole number from -2147483648 to 2147483647".into())
}

fn any_number(value: &Value) -> Result<f64, FieldFault> {
    value.as_f64().ok_or_else(|| "must be a number".into())
}

fn no_round_policy(_: &Value) -> Result<(), FieldFault> {
    let reason =
        "is for agents that join over a network of nodes, which is not supported; name the agents";
    Err(FieldFault::Unsupported(reason.into()))
}

fn tie_cause(value: &Value) -> Result<UnresolvedCause, FieldFault> {
    values::word(value, TIE_CAUSES.into_iter())
}

fn tie_causes(value: &Value) -> Result<BTreeSet<UnresolvedCause>, FieldFault> {
    words(value, &TIE_CAUSES).map(BTreeSet::from_iter)
}

fn null_cause(value: &Value) -> Result<UnresolvedCause, FieldFault> {
    values::word(value, NULL_CAUSES.into_iter())
}

fn null_causes(value: &Value) -> Result<BTreeSet<UnresolvedCause>, FieldFault> {
    words(value, &NULL_CAUSES).map(BTreeSet::from_iter)
}

fn tie_steps(value: &Value) -> Result<Vec<TieBreak>, FieldFault> {
    words(value, &["REEXPLORE", "CONFIDENCE_WEIGHTED", "REPUTATION_WEIGHTED", "STOCHASTIC"])
}

fn null_steps(value: &Value) -> Result<Vec<NullAction>, FieldFault> {
    words(value, &["REEXPLORE", "FINALIZE_NULL"])
}

/// Reads a list of known words.
fn words<T: std::str::FromStr>(value: &Value, known: &[&str]) -> Result<Vec<T>, FieldFault> {
    let read = |word: &str| known.contains(&word).then(|| word.parse().ok()).flatten();
    let words: Option<Vec<T>> = texts_of(value)?.into_iter().map(read).collect();
    words.ok_or_else(|| format!("must be a list of {}", known.join(", ")).into())
}

fn units_schema() -> ObjectBuilder {
    let units = integer().format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
    let names = Schema::from(text().build());
    object().property_names(Some(names)).additional_properties(Some(units))
}

fn units(value: &Value) -> Result<BTreeMap<String, i64>, FieldFault> {
    let Some(members) = value.as_object() else {
        return Err(format!("must be an object, not {}", kind(value)).into());
    };
    let whole = |value: &Value| value.as_i64().filter(|it| it.unsigned_abs() <= 1_000_000_000);
    let units = members.iter().map(|(agent, value)| Some((agent.clone(), whole(value)?))).collect();
    let units: Option<BTreeMap<String, i64>> = units;
    units.ok_or_else(|| "must contain whole numbers from -1000000000 to 1000000000".into())
}

impl From<AgentRunSpecBody> for AgentRunSpec {
    fn from(body: AgentRunSpecBody) -> Self {
        Self {
            run_id: body.run_id.0,
            task_type: body.task_type.map_or_else(|| "swarm".to_owned(), |it| it.0),
            shared_inputs: object_or_empty(body.shared_inputs),
            agents: body.agents.0.into_iter().map(Into::into).collect(),
            contract: object_or_empty(body.contract),
            verifiers: body.verifiers.map(|names| names.0).unwrap_or_default(),
            per_executor: body.per_executor.map(|it| it.0),
            retry: body.retry.map(Into::into).unwrap_or_default(),
            aggregation: body.aggregation.map(Into::into).unwrap_or_default(),
        }
    }
}

fn object_or_empty(given: Option<FreeObject>) -> Value {
    given.map_or_else(|| json!({}), |given| given.0)
}

impl From<RunAgent> for AgentSpec {
    fn from(agent: RunAgent) -> Self {
        Self {
            agent_id: agent.agent_id.0,
            executor: agent.executor.0,
            profile: agent.profile.map_or_else(|| "default".to_owned(), |it| it.0),
            prompt: agent.prompt.0,
            weight: agent.weight.map_or(1.0, |it| it.0),
            priority: agent.priority.map_or(0, |it| it.0),
            contract: object_or_empty(agent.contract),
            verifiers: agent.verifiers.map(|names| names.0).unwrap_or_default(),
        }
    }
}

impl From<RunRetry> for RetrySpec {
    fn from(retry: RunRetry) -> Self {
        let usual = Self::default();
        Self {
            max_attempts: retry.max_attempts.map_or(usual.max_attempts, |it| it.0),
            backoff_ms: retry.backoff_ms.map_or(usual.backoff_ms, |it| it.0),
        }
    }
}

impl From<RunAggregation> for AggregationSpec {
    fn from(aggregation: RunAggregation) -> Self {
        Self {
            mode: aggregation.mode.map_or(Self::default().mode, |it| it.0),
            quorum: aggregation.quorum.map(|it| it.0).filter(|quorum| 0 < *quorum),
            tie: aggregation.tie_policy.map(Into::into).unwrap_or_default(),
            null: aggregation.null_policy.map(Into::into).unwrap_or_default(),
        }
    }
}

impl From<RunTiePolicy> for TiePolicy {
    fn from(policy: RunTiePolicy) -> Self {
        let usual = Self::default();
        Self {
            enabled_on: policy.enabled_on.map_or(usual.enabled_on, |it| it.0),
            chain: policy.chain.map_or(usual.chain, |it| it.0),
            reexplore: policy.reexplore.map(Into::into).unwrap_or_default(),
            confidence: policy.confidence_weighted.map(Into::into).unwrap_or_default(),
            reputation: policy.reputation_weighted.map(Into::into).unwrap_or_default(),
        }
    }
}

impl From<RunNullPolicy> for NullPolicy {
    fn from(policy: RunNullPolicy) -> Self {
        let usual = Self::default();
        Self {
            enabled_on: policy.enabled_on.map_or(usual.enabled_on, |it| it.0),
            chain: policy.chain.map_or(usual.chain, |it| it.0),
            reexplore: policy.reexplore.map(Into::into).unwrap_or_default(),
        }
    }
}

impl From<RunReexplore> for ReexploreLimits {
    fn from(limits: RunReexplore) -> Self {
        let usual = Self::default();
        let rounds = limits.no_new_evidence_rounds;
        Self {
            max_iterations: limits.max_tie_iterations.map_or(usual.max_iterations, |it| it.0),
            no_new_evidence_rounds: rounds.map_or(usual.no_new_evidence_rounds, |it| it.0),
            require_new_evidence: limits.require_new_evidence.unwrap_or(usual.require_new_evidence),
        }
    }
}

impl From<RunConfidence> for ConfidenceFields {
    fn from(fields: RunConfidence) -> Self {
        let usual = Self::default();
        Self {
            decision: fields.decision_confidence_field.map_or(usual.decision, |it| it.0),
            answer: fields.answer_confidence_field.map_or(usual.answer, |it| it.0),
            any: fields.confidence_field.map_or(usual.any, |it| it.0),
            default: fields.default_confidence.map_or(usual.default, |it| it.0),
        }
    }
}

impl From<RunReputation> for ReputationUnits {
    fn from(reputation: RunReputation) -> Self {
        let usual = Self::default();
        Self {
            units: reputation.agent_reputation_units.map_or(usual.units, |it| it.0),
            missing: reputation.missing_reputation.map_or(usual.missing, |it| it.0),
        }
    }
}
