//! Checks the contract of a step as strictly as a contract that a caller submits.

use jurat_core::{agent_run::AgentRun, code::ProblemCode};
use serde_json::json;

use crate::{
    api::{kit::faults::RequestFaults, tasks::read_submit},
    executor::{TaskSubmission, step_contract, step_voters},
    problem::Problem,
};

/// The task of an agent's step, or all faults of the contract.
pub(super) fn read_step_submission(
    run: &AgentRun,
    agent_id: &str,
) -> Result<TaskSubmission, RequestFaults> {
    let (Some(agent), Some(contract)) = (run.agent(agent_id), step_contract(run, agent_id)) else {
        let detail = format!("the run has no agent `{agent_id}`");
        return Err(Problem::new(ProblemCode::NotFound, detail).into());
    };
    let order = json!({
        "contract": contract,
        "executors": [agent.executor],
        "verifiers": step_voters(run, agent),
        "profile": agent.profile,
    });
    read_submit(&order)
}

#[cfg(test)]
mod tests {
    use jurat_core::time::Timestamp;

    use super::*;
    use crate::executor::step_submission;

    /// A node that makes a step's contract from a stored run must get the contract that was
    /// checked. Otherwise it would submit a different task under the same id.
    #[test]
    fn a_step_is_the_same_task_when_it_is_checked_and_when_it_starts() {
        let contracts = [
            json!({}),
            json!({ "assignment": { "mode": "open", "explore": null, "verify": null } }),
            json!({ "task_mode": null, "budget": { "mode": null, "time_ms": 5_000 } }),
            json!({ "acceptance": { "verifier_policy": null, "quorum_threshold": 2 } }),
            json!({ "acceptance": { "verifier_policy": { "policy_id": "vp.crosscheck.v1" } } }),
            json!({ "acceptance": {
                "verifier_policy": {
                    "policy_id": "vp.crosscheck.v1", "policy_version": null,
                    "policy_params": { "x": null },
                },
                "aggregation": "CONFIDENCE_WEIGHTED",
                "da_quorum_threshold": 1,
            } }),
            json!({ "output_schema": { "const": null } }),
            json!({ "evidence_policy": { "max_snippet_bytes": null } }),
        ];
        for contract in contracts {
            let spec = json!({
                "run_id": "r1",
                "shared_inputs": { "topic": null },
                "agents": [{ "agent_id": "a", "executor": "one", "prompt": "why?" }],
                "contract": contract,
            });
            let now = Timestamp::from_millis(1_800_000_000_000);
            let order = super::super::decode_submit(&spec, now).unwrap();
            let run = AgentRun::new(order.spec, now);
            let checked = read_step_submission(&run, "a").ok();
            let started = step_submission(&run, "a").and_then(Result::ok);
            assert!(checked.is_some() && checked == started, "{contract}");
        }
    }
}
