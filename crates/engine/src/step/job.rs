//! The job that a step of a task is.

use std::{collections::BTreeSet, sync::Arc};

use jurat_core::{
    candidate::{Candidate, Evidence, InlineEvidence},
    canonical::{canonical, digest_json},
    job::{Job, PoolEntry, Step, StepCandidate, Terms, Work},
    policy::{CROSSCHECK, PolicyBinding, Rules, SCHEMA_ONLY, SEMANTIC},
    session::BUILTIN_LANE,
};
use jurat_wire::executor::read_task_contract;
use serde_json::{Map, Value, json};

use super::{StepBy, StepOrder, StepWork};
use crate::{EngineError, places::JUDGE_PREFIX};

pub(super) fn job(order: &StepOrder) -> Result<Job, EngineError> {
    // It was read when the task was submitted.
    let contract = read_task_contract(&order.contract)
        .map_err(|_| EngineError::Bug("the contract of a task does not read"))?;
    let (work, policy) = match &order.work {
        StepWork::Propose { .. } => (
            Work::Delegate {
                objective: String::new(),
                input: contract.inputs,
                task_type: contract.task_type,
            },
            form_policy(&PolicyBinding::from(contract.acceptance.verifier_policy)),
        ),
        StepWork::Verify { candidate, others, .. } => {
            let policy = PolicyBinding::from(contract.acceptance.verifier_policy);
            let evidence = evidence(candidate, others, &policy);
            (Work::Validate { output: candidate.output.clone(), evidence }, policy)
        }
    };
    let pool = pool(&order.by, &policy, &work)?;
    Ok(Job {
        request_digest: request_digest(order),
        request: None,
        step: Some(step(order)),
        work,
        policy,
        has_schema: contract.output_schema != Value::Object(Map::new()),
        output_schema: contract.output_schema,
        context: None,
        passed_on: Map::new(),
        tier: None,
        labels: BTreeSet::new(),
        terms: Terms::plain(1, pool),
        timeout_ms: order.timeout_ms,
        max_steps: Some(contract.budget.max_steps),
    })
}

/// A proposal must have the form that the contract asks for, as whoever verifies it reads that.
fn form_policy(verifier_policy: &PolicyBinding) -> PolicyBinding {
    let peers = match verifier_policy.rules() {
        Rules::WattSwarm => PolicyBinding::of_wattswarm(SCHEMA_ONLY, json!({})),
        Rules::Jurat => None,
    };
    peers.unwrap_or_else(|| PolicyBinding::new(SCHEMA_ONLY, json!({})))
}

fn step(order: &StepOrder) -> Step {
    let (seed_bundle, candidate, fetch_evidence) = match &order.work {
        StepWork::Propose { seed_bundle } => (seed_bundle.clone(), None, false),
        StepWork::Verify { candidate, proposed_at, producer, turn, fetch_evidence, .. } => {
            let proposed = StepCandidate {
                candidate_id: candidate.candidate_id.clone(),
                execution_id: candidate.execution_id.clone(),
                proposed_at: *proposed_at,
                producer: producer.clone(),
                turn: *turn,
            };
            (None, Some(proposed), *fetch_evidence)
        }
    };
    Step {
        task_id: order.task_id.clone(),
        execution_id: order.execution_id.clone(),
        attempt: order.attempt,
        contract: Arc::clone(&order.contract),
        seed_bundle,
        candidate,
        fetch_evidence,
    }
}

/// Other answers travel as evidence that is marked as such, where the policy compares.
fn evidence(candidate: &Candidate, others: &[(String, Value)], policy: &PolicyBinding) -> Evidence {
    let mut evidence = candidate.evidence.clone();
    if policy.policy_id == CROSSCHECK {
        evidence.inline.extend(others.iter().map(|(id, output)| {
            let tagged = json!({ "kind": "candidate", "candidate_id": id, "output": output });
            InlineEvidence {
                mime: "application/json".to_owned(),
                content: String::from_utf8_lossy(&canonical(&tagged)).into_owned(),
            }
        }));
    }
    evidence
}

/// Who may take the one seat. What a verifier of the registry judges never leaves this node, so
/// that no executor can be asked.
fn pool(by: &StepBy, policy: &PolicyBinding, work: &Work) -> Result<Vec<PoolEntry>, EngineError> {
    let is_semantic = policy.policy_id == SEMANTIC;
    let refused = |reason: &str| EngineError::NotSupported {
        field: "acceptance.verifier_policy.policy_id",
        reason: reason.to_owned(),
    };
    match (by, work) {
        (StepBy::Node, Work::Validate { .. }) if is_semantic => Ok(Vec::new()),
        (StepBy::Node, Work::Validate { .. }) => {
            Ok(vec![PoolEntry::Session(BUILTIN_LANE.to_owned())])
        }
        (StepBy::Node, Work::Delegate { .. } | Work::Factcheck { .. }) => {
            Err(EngineError::Bug("the node was asked to propose"))
        }
        (StepBy::Executor { name, .. }, _) if name.starts_with(JUDGE_PREFIX) => {
            if is_semantic {
                Ok(vec![PoolEntry::Session(name.clone())])
            } else {
                Err(refused("is not decided by a judge of this node"))
            }
        }
        (StepBy::Executor { .. }, _) if is_semantic => {
            Err(refused("is judged by this node and never by an executor"))
        }
        (StepBy::Executor { name, profile }, _) => {
            Ok(vec![PoolEntry::Executor { name: name.clone(), profile: profile.clone() }])
        }
    }
}

fn request_digest(order: &StepOrder) -> String {
    let candidate = match &order.work {
        StepWork::Propose { .. } => None,
        StepWork::Verify { candidate, .. } => Some(&candidate.candidate_id),
    };
    digest_json(&json!({
        "task_id": order.task_id,
        "execution_id": order.execution_id,
        "attempt": order.attempt,
        "contract": digest_json(&order.contract),
        "candidate_id": candidate,
    }))
}
