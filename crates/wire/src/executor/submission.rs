//! A contract with its executors, as submitted by a caller or made for a step of an agent run.

use jurat_core::{
    agent_run::{AgentRun, AgentSpec},
    policy::{PolicyBinding, SCHEMA_ONLY, policy_hash},
};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{ShapeError, TaskContract, WirePolicyBinding};

/// A task to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSubmission {
    pub contract: TaskContract,
    /// Executors that may propose; empty for all that declare the task type.
    pub executors: Vec<String>,
    /// Executors and judges that vote; empty for the executors that may propose.
    pub verifiers: Vec<String>,
    pub profile: Option<String>,
}

/// The input that tells an agent why it is asked again.
const SIGNAL: &str = "_aggregation_signal";
/// Minimum time from the start of a step to the expiry of its contract.
const SHORTEST_MS: u64 = 600_000;
/// Time that a contract lasts beyond its budget, because work may start late.
const MARGIN_MS: u64 = 60_000;
/// Members that replace the default as a whole, because each is a document of its own.
const DOCUMENTS: [&str; 3] = ["output_schema", "verifier_policy", "policy_params"];
/// Members whose nulls are kept, because they are the caller's documents.
const CALLERS: [&str; 3] = ["output_schema", "policy_params", "inputs"];

/// The task of an agent's step in its current attempt; `None` if the run has no such agent. Every
/// node makes the same task. The contract was accepted with its run, so the limits for new
/// contracts do not apply.
pub fn step_submission(
    run: &AgentRun,
    agent_id: &str,
) -> Option<Result<TaskSubmission, ShapeError>> {
    let agent = run.agent(agent_id)?;
    let mut contract = step_contract(run, agent_id)?;
    complete(&mut contract);
    let read = TaskContract::deserialize(contract)
        .map_err(|error| ShapeError::new("contract", error.to_string()));
    Some(read.map(|contract| TaskSubmission {
        contract,
        executors: vec![agent.executor.clone()],
        verifiers: step_voters(run, agent).to_vec(),
        profile: Some(agent.profile.clone()),
    }))
}

/// The voters of a step: its agent's own, or those of the run if the agent has none.
pub(crate) fn step_voters<'a>(run: &'a AgentRun, agent: &'a AgentSpec) -> &'a [String] {
    if agent.verifiers.is_empty() { &run.spec.verifiers } else { &agent.verifiers }
}

/// The contract of a step as a document: the sample, overridden by the contract members of the run,
/// and then of the agent.
pub(crate) fn step_contract(run: &AgentRun, agent_id: &str) -> Option<Value> {
    let (agent, step) = (run.agent(agent_id)?, run.step(agent_id)?);
    let begun_at = step.begun_at.unwrap_or(run.created_at);
    let begun_ms = u64::try_from(begun_at.millis()).unwrap_or(0);
    let task_id = run.task_id(agent_id, step.attempt);
    let mut contract = json!(TaskContract::sample(&task_id, begun_ms));
    let given = [&run.spec.contract, &agent.contract];
    for members in given.iter().filter_map(|it| it.as_object()) {
        if let Some(contract) = contract.as_object_mut() {
            lay(contract, members);
        }
    }
    let is_given = |pointer: &str| given.iter().any(|it| it.pointer(pointer).is_some());
    fit(&mut contract, is_given);
    if !is_given("/expiry_ms") {
        let time_ms = whole(&contract, "/budget/time_ms");
        let lasts = time_ms.saturating_add(MARGIN_MS).max(SHORTEST_MS);
        contract["expiry_ms"] = json!(begun_ms.saturating_add(lasts));
    }
    contract["task_type"] = json!(run.spec.task_type);
    contract["inputs"] = inputs(run, agent);
    Some(contract)
}

fn inputs(run: &AgentRun, agent: &AgentSpec) -> Value {
    let mut inputs = run.spec.shared_inputs.as_object().cloned().unwrap_or_default();
    inputs.insert("prompt".to_owned(), json!(agent.prompt));
    inputs.insert("agent_id".to_owned(), json!(agent.agent_id));
    if let Some(signal) = &run.signal {
        inputs.insert(SIGNAL.to_owned(), signal.document());
    }
    Value::Object(inputs)
}

/// Overrides members of an object with those of another, and merges objects within it the same way.
fn lay(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (under.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(value))
                if !DOCUMENTS.contains(&name.as_str()) =>
            {
                lay(inner, value);
            }
            _ => {
                under.insert(name.clone(), value.clone());
            }
        }
    }
}

fn whole(contract: &Value, pointer: &str) -> u64 {
    contract.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// Derives absent members from given ones, so that a spec need not state values that follow from
/// others.
fn fit(contract: &mut Value, is_given: impl Fn(&str) -> bool) {
    let quorum = whole(contract, "/acceptance/quorum_threshold").max(1);
    let mut at_least = |pointer: &str, least: u64| {
        if !is_given(pointer) && whole(contract, pointer) < least {
            set(contract, pointer, least);
        }
    };
    at_least("/assignment/verify/max_verifiers", quorum);
    at_least("/assignment/claim/max_concurrency/verify", quorum);
    at_least("/budget/max_steps", quorum.saturating_add(1));
    at_least("/budget/verify_cost_units", quorum);
    let stages = ["explore", "verify", "finalize"];
    let sum = stages
        .iter()
        .map(|stage| whole(contract, &format!("/budget/{stage}_cost_units")))
        .fold(0_u64, u64::saturating_add);
    if !is_given("/budget/cost_units") && whole(contract, "/budget/cost_units") < sum {
        set(contract, "/budget/cost_units", sum);
    }
    let limits = [
        ("/budget/reuse_verify_time_ms", whole(contract, "/budget/time_ms")),
        ("/budget/reuse_verify_cost_units", whole(contract, "/budget/cost_units")),
    ];
    for (pointer, most) in limits {
        if !is_given(pointer) && most < whole(contract, pointer) {
            set(contract, pointer, most);
        }
    }
}

fn set(contract: &mut Value, pointer: &str, number: u64) {
    if let Some(member) = contract.pointer_mut(pointer) {
        *member = json!(number);
    }
}

/// Expands the short forms that a request may use: null for an absent member, `open` for `CLAIM`,
/// and a policy with only an id.
fn complete(contract: &mut Value) {
    drop_nulls(contract);
    if let Some(mode) = contract.pointer_mut("/assignment/mode")
        && mode == "open"
    {
        *mode = json!("CLAIM");
    }
    let Some(acceptance) = contract.get_mut("acceptance").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(policy) = acceptance.get_mut("verifier_policy").and_then(Value::as_object_mut) else {
        let usual = WirePolicyBinding::from(PolicyBinding::new(SCHEMA_ONLY, json!({})));
        acceptance.insert("verifier_policy".to_owned(), json!(usual));
        return;
    };
    policy.entry("policy_version").or_insert_with(|| json!("1"));
    let params = policy.entry("policy_params").or_insert_with(|| json!({})).clone();
    let id = policy.get("policy_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    policy.entry("policy_hash").or_insert_with(|| json!(policy_hash(&id, &params)));
}

fn drop_nulls(document: &mut Value) {
    let Some(members) = document.as_object_mut() else { return };
    members.retain(|_, value| !value.is_null());
    for (_, value) in members.iter_mut().filter(|(name, _)| !CALLERS.contains(&name.as_str())) {
        drop_nulls(value);
    }
}
