//! Builds the job of a task call.

use std::{collections::BTreeSet, sync::Arc};

use jurat_core::{
    canonical::{canonical, digest_json},
    executor::session::BUILTIN_SESSION,
    policy::{CROSSCHECK, PolicyBinding, PolicyRules, SCHEMA_ONLY, SEMANTIC},
    round::{
        candidate::{Candidate, Evidence, InlineEvidence},
        job::{AgreementTerms, Job, JobWork, PoolEntry, TaskCall, TaskCallCandidate},
    },
};
use jurat_wire::executor::read_task_contract;
use serde_json::{Map, Value, json};

use super::{TaskCallOrder, TaskCallTarget, TaskCallWork};
use crate::{EngineError, rounds::seats::JUDGE_PREFIX};

pub(super) fn task_call_job(order: &TaskCallOrder) -> Result<Job, EngineError> {
    // It was read when the task was submitted.
    let contract = read_task_contract(&order.contract)
        .map_err(|_| EngineError::Bug("the contract of a task does not read"))?;
    let (work, policy) = match &order.work {
        TaskCallWork::Propose { .. } => (
            JobWork::Delegate {
                objective: String::new(),
                input: contract.inputs,
                task_type: contract.task_type,
            },
            form_policy(&PolicyBinding::from(contract.acceptance.verifier_policy)),
        ),
        TaskCallWork::Vote { candidate, others, .. } => {
            let policy = PolicyBinding::from(contract.acceptance.verifier_policy);
            let evidence = evidence(candidate, others, &policy);
            (JobWork::Validate { output: candidate.output.clone(), evidence }, policy)
        }
    };
    let pool = seat_pool(&order.target, &policy, &work)?;
    Ok(Job {
        request_digest: request_digest(order),
        request: None,
        step: Some(task_call(order)),
        relayed: None,
        work,
        policy,
        has_schema: contract.output_schema != Value::Object(Map::new()),
        output_schema: contract.output_schema,
        context: None,
        passed_on: Map::new(),
        tier: None,
        labels: BTreeSet::new(),
        terms: AgreementTerms::plain(1, pool),
        timeout_ms: order.timeout_ms,
        max_steps: Some(contract.budget.max_steps),
    })
}

/// A proposal must have the form that the contract asks for, read by the same rules as the voters'.
fn form_policy(verifier_policy: &PolicyBinding) -> PolicyBinding {
    let peers = match verifier_policy.rules() {
        PolicyRules::WattSwarm => PolicyBinding::of_wattswarm(SCHEMA_ONLY, json!({})),
        PolicyRules::Jurat => None,
    };
    peers.unwrap_or_else(|| PolicyBinding::new(SCHEMA_ONLY, json!({})))
}

fn task_call(order: &TaskCallOrder) -> TaskCall {
    let (seed_bundle, candidate, fetch_evidence) = match &order.work {
        TaskCallWork::Propose { seed_bundle } => (seed_bundle.clone(), None, false),
        TaskCallWork::Vote { candidate, proposed_at, producer, turn, fetch_evidence, .. } => {
            let proposed = TaskCallCandidate {
                candidate_id: candidate.candidate_id.clone(),
                execution_id: candidate.execution_id.clone(),
                proposed_at: *proposed_at,
                producer: producer.clone(),
                turn: *turn,
            };
            (None, Some(proposed), *fetch_evidence)
        }
    };
    TaskCall {
        task_id: order.task_id.clone(),
        execution_id: order.execution_id.clone(),
        attempt: order.attempt,
        contract: Arc::clone(&order.contract),
        seed_bundle,
        candidate,
        fetch_evidence,
    }
}

/// Other answers are sent as marked evidence if the policy compares.
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

/// Who may take the only seat. The criterion of a verifier never leaves this node, so no executor
/// can be asked.
fn seat_pool(
    by: &TaskCallTarget,
    policy: &PolicyBinding,
    work: &JobWork,
) -> Result<Vec<PoolEntry>, EngineError> {
    let is_semantic = policy.policy_id == SEMANTIC;
    let refused =
        |reason: &str| EngineError::not_supported("acceptance.verifier_policy.policy_id", reason);
    match (by, work) {
        (TaskCallTarget::Node, JobWork::Validate { .. }) if is_semantic => Ok(Vec::new()),
        (TaskCallTarget::Node, JobWork::Validate { .. }) => {
            Ok(vec![PoolEntry::Session(BUILTIN_SESSION.to_owned())])
        }
        (TaskCallTarget::Node, JobWork::Delegate { .. } | JobWork::Factcheck { .. }) => {
            Err(EngineError::Bug("the node was asked to propose"))
        }
        (TaskCallTarget::Executor { name, .. }, _) if name.starts_with(JUDGE_PREFIX) => {
            if is_semantic {
                Ok(vec![PoolEntry::Session(name.clone())])
            } else {
                Err(refused("is not decided by a judge of this node"))
            }
        }
        (TaskCallTarget::Executor { .. }, _) if is_semantic => {
            Err(refused("is judged by this node and never by an executor"))
        }
        (TaskCallTarget::Executor { name, profile }, _) => {
            Ok(vec![PoolEntry::Executor { name: name.clone(), profile: profile.clone() }])
        }
    }
}

fn request_digest(order: &TaskCallOrder) -> String {
    let candidate = match &order.work {
        TaskCallWork::Propose { .. } => None,
        TaskCallWork::Vote { candidate, .. } => Some(&candidate.candidate_id),
    };
    digest_json(&json!({
        "task_id": order.task_id,
        "execution_id": order.execution_id,
        "attempt": order.attempt,
        "contract": digest_json(&order.contract),
        "candidate_id": candidate,
    }))
}
