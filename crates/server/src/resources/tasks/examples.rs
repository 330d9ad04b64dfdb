//! Example requests and replies for tasks, which a test replays.

use serde_json::{Value, json};

const AT: &str = "2026-09-21T14:13:20Z";
const END: &str = "2026-09-21T14:23:20Z";
const DIGEST: &str = "sha256:6b23c0d5f35d1b11f9b683f0b0a617355deb11277d91ae091d399c655b87940d";
const CANDIDATE: &str = "cand-exec-1";

pub(in crate::resources) fn contract() -> Value {
    json!({
        "protocol_version": "v0.1",
        "task_id": "task-001",
        "task_type": "swarm",
        "inputs": { "prompt": "hello" },
        "output_schema": {
            "type": "object",
            "required": ["answer"],
            "properties": {
                "answer": { "type": "string" },
                "confidence": { "type": "number" },
                "check_summary": { "type": "string" },
            },
        },
        "budget": {
            "time_ms": 120_000, "max_steps": 10, "cost_units": 1_000, "mode": "LIFETIME",
            "explore_cost_units": 350, "verify_cost_units": 450, "finalize_cost_units": 200,
            "reuse_verify_time_ms": 20_000, "reuse_verify_cost_units": 200,
            "reuse_max_attempts": 1,
        },
        "assignment": {
            "mode": "CLAIM",
            "claim": { "lease_ms": 5_000, "max_concurrency": { "propose": 1, "verify": 1 } },
            "explore": {
                "max_proposers": 1, "topk": 3, "stop": { "no_new_evidence_rounds": 3 },
            },
            "verify": { "max_verifiers": 1 },
            "finalize": { "max_finalizers": 1 },
        },
        "acceptance": acceptance(),
        "task_mode": "ONE_SHOT",
        "expiry_ms": 1_790_000_600_000_u64,
        "evidence_policy": {
            "max_inline_evidence_bytes": 65_536, "max_inline_media_bytes": 0,
            "inline_mime_allowlist": [
                "application/json", "text/plain", "text/markdown", "text/csv",
            ],
            "max_snippet_bytes": 8_192, "max_snippet_tokens": 2_048,
        },
    })
}

fn acceptance() -> Value {
    json!({
        "quorum_threshold": 1,
        "verifier_policy": {
            "policy_id": "vp.schema_only.v1", "policy_version": "1",
            "policy_hash": "sha256:d0f1ab9dbffa3f18e26ed9f5b4fba4cd5cd3bf16b29d2d1fa6a3ac9cd05ddbf5",
            "policy_params": {},
        },
        "vote": { "commit_reveal": true, "reveal_deadline_ms": 10_000 },
        "settlement": {
            "window_ms": 86_400_000, "implicit_weight": 0.1,
            "implicit_diminishing_returns": { "W": 10, "K": 50 },
            "bad_penalty": { "P": 3 },
            "feedback": { "mode": "CAPABILITY", "authority_pubkey": "ed25519:placeholder" },
        },
        "aggregation": "QUORUM",
    })
}

pub(in crate::resources) fn order() -> Value {
    let mut contract = contract();
    // The server computes the hash if it is left out.
    if let Some(policy) = contract["acceptance"]["verifier_policy"].as_object_mut() {
        policy.remove("policy_hash");
    }
    json!({ "contract": contract, "executors": ["s1", "s2"] })
}

/// A task that was just submitted.
pub(in crate::resources) fn task() -> Value {
    let account = |limit: u64| json!({ "limit": limit, "spent": 0, "left": limit });
    json!({
        "task_id": "task-001", "task_type": "swarm", "state": "created", "epoch": 1,
        "contract_digest": DIGEST,
        "panel": {
            "executors": ["s1", "s2"], "verifiers": ["s1", "s2"], "profile": "default",
            "node_votes": false,
        },
        "created_at": AT, "started_at": null, "updated_at": AT, "ended_at": null,
        "deadline_at": END, "retry_at": null, "retries": 0,
        "spent": {
            "steps": account(10), "cost_units": account(1_000),
            "explore_cost_units": account(350), "verify_cost_units": account(450),
            "finalize_cost_units": account(200),
        },
        "claims": [], "candidates": [], "committed_candidate_id": null,
        "finalized_candidate_id": null, "settling": [], "reason": null, "events": 1,
    })
}

/// A continuous task at the start of its second epoch.
pub(in crate::resources) fn next_epoch() -> Value {
    let mut task = task();
    task["epoch"] = json!(2);
    task["settling"] = json!([settling(1, None)]);
    task["events"] = json!(14);
    task
}

pub(in crate::resources) fn knowledge() -> Value {
    json!({
        "items": [{
            "task_id": "task-001", "epoch": 1, "task_type": "swarm",
            "decision_ref": { "task_id": "task-001", "epoch": 1, "final_commit_hash": DIGEST },
            "candidate_id": CANDIDATE, "output": { "answer": "hello", "confidence": 0.9 },
            "confidence": 0.8, "reason_codes": [],
            "quorum": { "threshold": 1, "approvals": 1, "rejections": 0 },
            "policy_id": "vp.schema_only.v1", "input_digest": DIGEST,
            "output_schema_digest": DIGEST, "policy_params_digest": DIGEST,
            "final_hash": DIGEST, "created_at": AT, "deprecated_at": null,
        }],
        "next_cursor": null,
    })
}

pub(in crate::resources) fn complaint() -> Value {
    json!({ "reason": "the river is the Rhone" })
}

/// A task whose decision is disputed.
pub(in crate::resources) fn complained() -> Value {
    let mut task = whole();
    if let Some(members) = task.as_object_mut() {
        members.remove("contract");
    }
    task["settling"] = json!([settling(1, Some("the river is the Rhone"))]);
    task["events"] = json!(14);
    task
}

fn settling(epoch: u64, complaint: Option<&str>) -> Value {
    json!({
        "epoch": epoch, "candidate_id": CANDIDATE, "settles_at": "2026-09-22T14:13:20Z",
        "complaint": complaint,
    })
}

/// A task that ended, with its contract.
pub(in crate::resources) fn whole() -> Value {
    let account =
        |limit: u64, spent: u64| json!({ "limit": limit, "spent": spent, "left": limit - spent });
    let mut task = task();
    task["state"] = json!("finalized");
    task["started_at"] = json!(AT);
    task["ended_at"] = json!(AT);
    task["deadline_at"] = json!("2026-09-21T14:15:20Z");
    task["spent"] = json!({
        "steps": account(10, 2), "cost_units": account(1_000, 3),
        "explore_cost_units": account(350, 1), "verify_cost_units": account(450, 1),
        "finalize_cost_units": account(200, 1),
    });
    task["candidates"] = json!([{
        "candidate_id": CANDIDATE, "output_digest": DIGEST, "proposers": ["s1"], "source": null,
        "standing": "approved", "gap": null, "turn": 1, "votes": [vote()], "evidence": {},
    }]);
    task["committed_candidate_id"] = json!(CANDIDATE);
    task["finalized_candidate_id"] = json!(CANDIDATE);
    task["settling"] = json!([settling(1, None)]);
    task["events"] = json!(13);
    task["contract"] = contract();
    task
}

fn vote() -> Value {
    json!({
        "voter": "s2", "independence": "family-2/model-2@127.0.0.1", "turn": 1,
        "commitment": DIGEST, "verdict": "passed", "score": 0.99, "reason_codes": [],
        "verdict_digest": DIGEST, "forfeited": null,
    })
}

pub(in crate::resources) fn cancelled() -> Value {
    let mut task = task();
    task["state"] = json!("cancelled");
    task["ended_at"] = json!(AT);
    task["reason"] = json!("asked twice");
    task["events"] = json!(2);
    task
}

pub(in crate::resources) fn list() -> Value {
    json!({
        "items": [{
            "task_id": "task-001", "task_type": "swarm", "state": "finalized", "events": 13,
            "created_at": AT, "updated_at": AT, "ended_at": AT, "reason": null,
        }],
        "next_cursor": null,
    })
}

pub(in crate::resources) fn events() -> Value {
    json!({
        "items": [{
            "task_id": "task-001", "seq": 1, "type": "BUDGET_CHARGED", "at": AT,
            "data": { "role": "propose", "reuse": false },
        }],
        "next_cursor": "1a4f0c9d2WyIxIl0",
    })
}

pub(in crate::resources) fn decision() -> Value {
    let output = json!({ "answer": "hello", "confidence": 0.9 });
    json!({
        "task_id": "task-001", "task_type": "swarm", "epoch": 1, "state": "finalized",
        "terminal_state": "finalized", "reason": null, "candidate_id": CANDIDATE,
        "committed_candidate_id": CANDIDATE, "finalized_candidate_id": CANDIDATE,
        "output": output, "candidate_output": output, "final_answer": "hello",
        "final_decision": null, "aggregation": "QUORUM", "quorum_threshold": 1, "approvals": 1,
        "rejections": 0, "agreement": 1.0, "confidence": 0.8, "basis": "executors",
        "votes": [vote()],
        "executor": "s1", "provider_family": "family-1", "model_id": "model-1",
        "profile": "default", "source": null, "evidence_digests": [],
        "rounds": {
            "propose": "rnd_01KHG5YN40MXBR5YWT0Q2YFEDS",
            "verify": { "s2": "rnd_01KHG5YN41MXBR5YWT0Q2YFEDS" },
        },
        "final_hash": DIGEST,
    })
}
