//! Reads what a run is asked to do, member by member, and says all that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    agent_run::{
        AgentRun, AgentRunSpec, AgentSpec, AggregationSpec, ConfidenceFields, MissingReputation,
        NullPolicy, ReexploreLimits, ReputationUnits, RetrySpec, TiePolicy,
    },
    code::ProblemCode,
    time::Timestamp,
};
use serde_json::{Value, json};

use super::{AgentRunSpecBody, step};
use crate::{
    api::{
        kit::{
            faults::RequestFaults,
            fields::{RequestFields, short},
            known_fields::SearchDepth,
        },
        tasks::{is_name, names},
    },
    problem::Problem,
};

const LONGEST_TYPE: usize = 128;
const LONGEST_PROFILE: usize = 128;
const LONGEST_LABEL: usize = 256;
const MOST_ROUNDS: u64 = 64;

/// Words for networks of nodes. They change nothing here, and are kept with the spec.
const LABELS: [&str; 3] = ["market_task_id", "feed_key", "scope_hint"];

/// Reads a spec that was checked when it came.
pub fn decode_spec(document: &Value) -> Result<AgentRunSpec, Problem> {
    read(&RequestFields::of_body(document, ProblemCode::ValidationError)?)
}

pub(super) fn read(fields: &RequestFields<'_>) -> Result<AgentRunSpec, Problem> {
    let mut faults = RequestFaults::default();
    let spec = decode(fields, &mut faults);
    match (faults.problem(ProblemCode::ValidationError), spec) {
        (None, Some(spec)) => Ok(spec),
        (Some(problem), _) => Err(problem),
        // A decoder that gives nothing has said why.
        (None, None) => Err(Problem::new(ProblemCode::ValidationError, "the run cannot be read")),
    }
}

/// Makes sure that the contract of every step can be made.
pub(super) fn check_steps(
    fields: &RequestFields<'_>,
    spec: AgentRunSpec,
    now: Timestamp,
) -> Result<(), Problem> {
    let mut faults = RequestFaults::default();
    let run = AgentRun::new(spec, now);
    for (index, agent) in run.spec.agents.iter().enumerate() {
        for problem in step::read_step_submission(&run, &agent.agent_id).err().into_iter().flatten()
        {
            // What stands in the contract of the run is wrong for all, and said once.
            faults.add_once(of_agent(fields, (index, agent), &problem));
        }
    }
    faults.problem(ProblemCode::ValidationError).map_or(Ok(()), Err)
}

/// Before a member of a contract: the first contract of the spec that has it.
pub(super) fn holder(spec: &Value, member: &str) -> String {
    let has = |it: &Value| it["contract"].get(member).is_some();
    let agents = spec["agents"].as_array();
    let agent = agents.and_then(|all| all.iter().position(has));
    match agent {
        Some(index) if !has(spec) => format!("agents.{index}.contract."),
        Some(_) | None => "contract.".to_owned(),
    }
}

/// A problem with the contract of a step, told of where the caller wrote it.
fn of_agent(
    fields: &RequestFields<'_>,
    (index, agent): (usize, &AgentSpec),
    problem: &Problem,
) -> Problem {
    let field = problem.field.as_deref().unwrap_or("contract");
    let member = field.strip_prefix("contract.").unwrap_or(field);
    let top = member.split('.').next().unwrap_or(member);
    let is_own = agent.contract.get(top).is_some();
    let name = if is_own { format!("agents.{index}.{field}") } else { field.to_owned() };
    let prefix = format!("`{field}` ");
    let reason = problem.detail.strip_prefix(&prefix).unwrap_or(&problem.detail);
    fields.wrong(&name, reason)
}

fn decode(fields: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<AgentRunSpec> {
    faults.note_unknown::<AgentRunSpecBody>(fields, SearchDepth::All);
    for label in LABELS {
        faults.take(text(fields, (label, LONGEST_LABEL)));
    }
    if fields.get("round_policy").is_some() {
        let reason = "is for agents that join over a network of nodes, which is not supported; name the agents";
        faults.add(fields.unsupported("round_policy", reason));
    }
    let run_id = faults.take(fields.required_text("run_id"));
    let task_type = faults.take(text(fields, ("task_type", LONGEST_TYPE)));
    let shared_inputs = object(fields, faults, "shared_inputs");
    let agents = agents(fields, faults);
    let contract = object(fields, faults, "contract");
    let verifiers = faults.take(names(fields, "verifiers"));
    let per_executor = faults.take(fields.whole("per_executor", 1, 64));
    let retry = retry(fields, faults);
    let aggregation = aggregation(fields, faults);
    let spec = AgentRunSpec {
        run_id: run_id?.to_owned(),
        task_type: task_type?.unwrap_or_else(|| "swarm".to_owned()),
        shared_inputs: shared_inputs?,
        agents: agents?,
        contract: contract?,
        verifiers: verifiers?,
        per_executor: per_executor?.and_then(|it| u32::try_from(it).ok()),
        retry: retry?,
        aggregation: aggregation?,
    };
    for error in spec.check() {
        faults.add(fields.wrong(&error.field, &error.reason));
    }
    Some(spec)
}

/// A text that may be left out.
fn text(
    fields: &RequestFields<'_>,
    (name, most): (&str, usize),
) -> Result<Option<String>, Problem> {
    if fields.get(name).is_none() {
        return Ok(None);
    }
    let text = fields.plain_text(name)?;
    if most < text.chars().count() {
        return Err(fields.wrong(name, &format!("must have at most {most} characters")));
    }
    Ok(Some(text.to_owned()))
}

/// An object that is empty when it is left out.
fn object(fields: &RequestFields<'_>, faults: &mut RequestFaults, name: &str) -> Option<Value> {
    faults.take(fields.object(name))?;
    Some(fields.get(name).cloned().unwrap_or_else(|| json!({})))
}

fn agents(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<Vec<AgentSpec>> {
    if parent.get("agents").is_none() {
        faults.add(parent.wrong("agents", "is required: name the agents of the run"));
        return None;
    }
    let all = faults.take(parent.objects("agents"))?;
    let count = all.len();
    let read: Vec<AgentSpec> = all.iter().filter_map(|it| agent(it, faults)).collect();
    (read.len() == count).then_some(read)
}

fn agent(fields: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<AgentSpec> {
    let agent_id = faults.take(fields.required_text("agent_id"));
    let executor = faults.take(executor(fields));
    let profile = faults.take(text(fields, ("profile", LONGEST_PROFILE)));
    let prompt = faults.take(fields.plain_text("prompt"));
    let weight = number(fields, faults, ("weight", 1.0));
    let priority = priority(fields, faults);
    let contract = object(fields, faults, "contract");
    let verifiers = faults.take(names(fields, "verifiers"));
    Some(AgentSpec {
        agent_id: agent_id?.to_owned(),
        executor: executor?.to_owned(),
        profile: profile?.unwrap_or_else(|| "default".to_owned()),
        prompt: prompt?.to_owned(),
        weight: weight?,
        priority: priority?,
        contract: contract?,
        verifiers: verifiers?,
    })
}

fn executor<'a>(fields: &RequestFields<'a>) -> Result<&'a str, Problem> {
    let name = fields.required_text("executor")?;
    let reason = format!("has `{}`, which is not a valid executor name", short(name));
    if is_name(name) { Ok(name) } else { Err(fields.wrong("executor", &reason)) }
}

fn number(
    fields: &RequestFields<'_>,
    faults: &mut RequestFaults,
    (name, usual): (&str, f64),
) -> Option<f64> {
    let Some(value) = fields.get(name) else { return Some(usual) };
    let number = value.as_f64();
    if number.is_none() {
        faults.add(fields.wrong(name, "must be a number"));
    }
    number
}

fn priority(fields: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<i32> {
    let Some(value) = fields.get("priority") else { return Some(0) };
    let read = value.as_i64().and_then(|it| i32::try_from(it).ok());
    if read.is_none() {
        let reason = "must be a whole number from -2147483648 to 2147483647";
        faults.add(fields.wrong("priority", reason));
    }
    read
}

fn retry(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<RetrySpec> {
    let usual = RetrySpec::default();
    let Some(fields) = faults.optional(parent, "retry") else { return Some(usual) };
    let max_attempts = faults.count_or(&fields, "max_attempts", (1..=16, usual.max_attempts));
    let backoff = (0..=3_600_000, usual.backoff_ms);
    let backoff_ms = faults.whole_or(&fields, "backoff_ms", backoff);
    Some(RetrySpec { max_attempts: max_attempts?, backoff_ms: backoff_ms? })
}

fn aggregation(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<AggregationSpec> {
    let usual = AggregationSpec::default();
    let Some(fields) = faults.optional(parent, "aggregation") else { return Some(usual) };
    let mode = faults.take(text(&fields, ("mode", LONGEST_LABEL)));
    let quorum = faults.count_or(&fields, "quorum", (0..=64, 0));
    let tie = tie_policy(&fields, faults);
    let null = null_policy(&fields, faults);
    Some(AggregationSpec {
        mode: mode?.unwrap_or(usual.mode),
        quorum: Some(quorum?).filter(|quorum| *quorum > 0),
        tie: tie?,
        null: null?,
    })
}

fn tie_policy(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<TiePolicy> {
    let usual = TiePolicy::default();
    let Some(fields) = faults.optional(parent, "tie_policy") else { return Some(usual) };
    let enabled_on = faults.take(words(&fields, ("enabled_on", &["QUORUM_NULL", "TIE"])));
    let steps = ["REEXPLORE", "CONFIDENCE_WEIGHTED", "REPUTATION_WEIGHTED", "STOCHASTIC"];
    let chain = faults.take(words(&fields, ("chain", &steps)));
    let reexplore = reexplore(&fields, faults);
    let confidence = confidence(&fields, faults);
    let reputation = reputation(&fields, faults);
    faults.optional(&fields, "stochastic");
    let enabled_on = enabled_on?.map(BTreeSet::from_iter);
    Some(TiePolicy {
        enabled_on: enabled_on.unwrap_or(usual.enabled_on),
        chain: chain?.unwrap_or(usual.chain),
        reexplore: reexplore?,
        confidence: confidence?,
        reputation: reputation?,
    })
}

fn null_policy(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<NullPolicy> {
    let usual = NullPolicy::default();
    let Some(fields) = faults.optional(parent, "null_policy") else { return Some(usual) };
    let enabled_on = faults.take(words(&fields, ("enabled_on", &["EMPTY", "QUORUM_NULL"])));
    let chain = faults.take(words(&fields, ("chain", &["REEXPLORE", "FINALIZE_NULL"])));
    let reexplore = reexplore(&fields, faults);
    let enabled_on = enabled_on?.map(BTreeSet::from_iter);
    Some(NullPolicy {
        enabled_on: enabled_on.unwrap_or(usual.enabled_on),
        chain: chain?.unwrap_or(usual.chain),
        reexplore: reexplore?,
    })
}

/// A list of words of a set, which may be left out.
fn words<T: std::str::FromStr>(
    fields: &RequestFields<'_>,
    (name, known): (&str, &[&str]),
) -> Result<Option<Vec<T>>, Problem> {
    if fields.get(name).is_none() {
        return Ok(None);
    }
    let read = fields.texts(name)?;
    let parsed: Option<Vec<T>> =
        read.iter().map(|word| known.contains(word).then(|| word.parse().ok()).flatten()).collect();
    let reason = || format!("must be a list of {}", known.join(", "));
    parsed.map(Some).ok_or_else(|| fields.wrong(name, &reason()))
}

fn reexplore(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ReexploreLimits> {
    let usual = ReexploreLimits::default();
    let Some(fields) = faults.optional(parent, "reexplore") else { return Some(usual) };
    let most = faults.count_or(&fields, "max_tie_iterations", (0..=8, usual.max_iterations));
    let without = faults.take(fields.whole("no_new_evidence_rounds", 0, MOST_ROUNDS));
    let new = faults.take(fields.flag("require_new_evidence"));
    let without = without?.and_then(|it| u32::try_from(it).ok());
    Some(ReexploreLimits {
        max_iterations: most?,
        no_new_evidence_rounds: without.unwrap_or(usual.no_new_evidence_rounds),
        require_new_evidence: new?.unwrap_or(usual.require_new_evidence),
    })
}

fn confidence(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ConfidenceFields> {
    let usual = ConfidenceFields::default();
    let Some(fields) = faults.optional(parent, "confidence_weighted") else {
        return Some(usual);
    };
    let mut name = |name: &str| faults.take(text(&fields, (name, LONGEST_LABEL)));
    let decision = name("decision_confidence_field");
    let answer = name("answer_confidence_field");
    let any = name("confidence_field");
    let default = number(&fields, faults, ("default_confidence", usual.default));
    Some(ConfidenceFields {
        decision: decision?.unwrap_or(usual.decision),
        answer: answer?.unwrap_or(usual.answer),
        any: any?.unwrap_or(usual.any),
        default: default?,
    })
}

fn reputation(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ReputationUnits> {
    let usual = ReputationUnits::default();
    let Some(fields) = faults.optional(parent, "reputation_weighted") else {
        return Some(usual);
    };
    let units = units(&fields, faults);
    let words: Vec<&str> = MissingReputation::ALL.iter().map(|it| it.as_str()).collect();
    let missing = faults.take(fields.word("missing_reputation", &words));
    Some(ReputationUnits { units: units?, missing: missing?.unwrap_or(usual.missing) })
}

fn units(fields: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<BTreeMap<String, i64>> {
    const NAME: &str = "agent_reputation_units";
    faults.take(fields.object(NAME))?;
    let members = fields.get(NAME).and_then(Value::as_object).cloned().unwrap_or_default();
    let whole = |value: Value| value.as_i64().filter(|it| it.unsigned_abs() <= 1_000_000_000);
    let read: Option<BTreeMap<String, i64>> =
        members.into_iter().map(|(agent, value)| Some((agent, whole(value)?))).collect();
    if read.is_none() {
        let reason = "must contain whole numbers from -1000000000 to 1000000000";
        faults.add(fields.wrong(NAME, reason));
    }
    read
}
