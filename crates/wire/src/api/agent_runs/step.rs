//! The task of a step of a run: the usual contract, with the changes of the run and the agent.

use jurat_core::{
    agent_run::{AgentRun, AgentSpec},
    code::ProblemCode,
};
use serde_json::{Map, Value, json};

use crate::{
    api::{
        kit::faults::RequestFaults,
        tasks::{TaskSubmission, read_submit},
    },
    executor::TaskContract,
    problem::Problem,
};

/// Where an agent finds why it is asked once more.
const SIGNAL: &str = "_aggregation_signal";
/// How long a step may take at least, from its first moment to the end of its contract.
const SHORTEST_MS: u64 = 600_000;
/// How much longer than its budget a contract lasts: its work may not begin at once.
const MARGIN_MS: u64 = 60_000;
/// Members that are documents of their own: they replace the usual ones as a whole.
const DOCUMENTS: [&str; 3] = ["output_schema", "verifier_policy", "policy_params"];

/// The task that an agent's step is at its present attempt. It is the same whoever makes it.
pub fn step_submission(run: &AgentRun, agent_id: &str) -> Result<TaskSubmission, Problem> {
    read_step_submission(run, agent_id)
        .map_err(|faults| faults.into_problem(ProblemCode::ValidationError))
}

/// The same, with each fault for itself.
pub(super) fn read_step_submission(
    run: &AgentRun,
    agent_id: &str,
) -> Result<TaskSubmission, RequestFaults> {
    let (Some(agent), Some(step)) = (run.agent(agent_id), run.step(agent_id)) else {
        let detail = format!("the run has no agent `{agent_id}`");
        return Err(Problem::new(ProblemCode::NotFound, detail).into());
    };
    let begun_at = step.begun_at.unwrap_or(run.created_at);
    let begun_ms = u64::try_from(begun_at.millis()).unwrap_or(0);
    let task_id = run.task_id(agent_id, step.attempt);
    let mut contract = json!(TaskContract::sample(&task_id, begun_ms));
    let said = [&run.spec.contract, &agent.contract];
    for members in said.iter().filter_map(|it| it.as_object()) {
        if let Some(contract) = contract.as_object_mut() {
            lay(contract, members);
        }
    }
    let is_said = |pointer: &str| said.iter().any(|it| it.pointer(pointer).is_some());
    fit(&mut contract, is_said);
    if !is_said("/expiry_ms") {
        let time_ms = whole(&contract, "/budget/time_ms");
        let lasts = time_ms.saturating_add(MARGIN_MS).max(SHORTEST_MS);
        contract["expiry_ms"] = json!(begun_ms.saturating_add(lasts));
    }
    contract["task_type"] = json!(run.spec.task_type);
    contract["inputs"] = inputs(run, agent);
    let verifiers = if agent.verifiers.is_empty() { &run.spec.verifiers } else { &agent.verifiers };
    let order = json!({
        "contract": contract,
        "executors": [agent.executor],
        "verifiers": verifiers,
        "profile": agent.profile,
    });
    read_submit(&order)
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

/// Lays members over others, the inner ones too.
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

/// Lets what was left out follow what was said: nobody has to repeat what has one answer.
fn fit(contract: &mut Value, is_said: impl Fn(&str) -> bool) {
    let quorum = whole(contract, "/acceptance/quorum_threshold").max(1);
    let mut at_least = |pointer: &str, least: u64| {
        if !is_said(pointer) && whole(contract, pointer) < least {
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
    if !is_said("/budget/cost_units") && whole(contract, "/budget/cost_units") < sum {
        set(contract, "/budget/cost_units", sum);
    }
    let bounds = [
        ("/budget/reuse_verify_time_ms", whole(contract, "/budget/time_ms")),
        ("/budget/reuse_verify_cost_units", whole(contract, "/budget/cost_units")),
    ];
    for (pointer, most) in bounds {
        if !is_said(pointer) && most < whole(contract, pointer) {
            set(contract, pointer, most);
        }
    }
}

fn set(contract: &mut Value, pointer: &str, number: u64) {
    if let Some(member) = contract.pointer_mut(pointer) {
        *member = json!(number);
    }
}
