//! Decoding of task contracts: accepted contracts, and messages about faulty ones.

use jurat_core::{code::ProblemCode, policy::policy_hash, task::VoteAggregation};
use jurat_wire::{
    api::tasks::{decode_cancel, decode_submit, located},
    executor::{TaskContract, TaskSubmission},
    problem::Problem,
};
use serde_json::{Value, json};

fn contract() -> Value {
    json!(TaskContract::sample("task-1", 1_800_000_000_000))
}

/// The contract with another value at a pointer; null removes the member.
fn with(pointer: &str, value: Value) -> Value {
    let mut contract = contract();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = contract.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(name);
    } else {
        parent.insert(name.to_owned(), value);
    }
    contract
}

fn submitted(body: &Value) -> Result<TaskSubmission, Problem> {
    decode_submit(body)
}

fn refused(body: &Value) -> Problem {
    submitted(body).unwrap_err()
}

fn fields(problem: &Problem) -> Vec<String> {
    let body = problem.body();
    let errors = body["errors"].as_array().unwrap().iter();
    errors.map(|it| it["field"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_sample_is_taken_as_it_is_and_with_who_works_on_it() {
    let bare = submitted(&contract()).unwrap();
    assert_eq!(json!(bare.contract), contract());
    assert!(bare.executors.is_empty() && bare.verifiers.is_empty() && bare.profile.is_none());
    let order = json!({
        "contract": contract(), "executors": ["a", "b"], "verifiers": ["c"], "profile": "careful",
    });
    let order = submitted(&order).unwrap();
    assert_eq!(order.contract, bare.contract);
    assert_eq!(order.executors, ["a", "b"]);
    assert_eq!(order.verifiers, ["c"]);
    assert_eq!(order.profile.as_deref(), Some("careful"));
}

#[test]
fn what_is_left_out_is_filled_up() {
    let mut contract = contract();
    contract.as_object_mut().unwrap().remove("task_mode");
    let assignment = contract["assignment"].as_object_mut().unwrap();
    assignment.retain(|name, _| name == "mode" || name == "claim");
    contract["acceptance"].as_object_mut().unwrap().remove("aggregation");
    contract["acceptance"]["verifier_policy"] = json!({ "policy_id": "vp.crosscheck.v1" });
    let read = submitted(&contract).unwrap().contract;
    assert_eq!(read.task_mode, "ONE_SHOT");
    assert_eq!(read.assignment.explore.topk, 3);
    assert_eq!(read.assignment.verify.max_verifiers, 1);
    assert_eq!(read.acceptance.aggregation, None);
    let policy = read.acceptance.verifier_policy;
    assert_eq!(policy.policy_hash, policy_hash("vp.crosscheck.v1", &json!({})));
    assert_eq!((policy.policy_version.as_str(), policy.policy_params), ("1", json!({})));
}

#[test]
fn a_contract_without_a_policy_is_decided_by_its_schema() {
    let taken = submitted(&with("/acceptance/verifier_policy", Value::Null)).unwrap().contract;
    let policy = taken.acceptance.verifier_policy;
    assert_eq!(
        (policy.policy_id.as_str(), policy.policy_version.as_str()),
        ("vp.schema_only.v1", "1")
    );
    assert_eq!(policy.policy_hash, policy_hash("vp.schema_only.v1", &json!({})));
}

#[test]
fn whether_evidence_is_asked_for_can_be_told() {
    let read = |body: &Value| submitted(body).unwrap().contract.acceptance;
    assert_eq!(read(&contract()).da_quorum_threshold, None);
    let given = with("/acceptance/da_quorum_threshold", json!(1));
    assert_eq!(read(&given).da_quorum_threshold, Some(1));
    // Executors receive the threshold only if the contract sets it.
    assert_eq!(json!(read(&contract())).get("da_quorum_threshold"), None);
    let weighted = with("/acceptance/aggregation", json!("REPUTATION_WEIGHTED"));
    assert_eq!(read(&weighted).aggregation, Some(VoteAggregation::ReputationWeighted));
}

#[test]
fn both_words_for_claimed_work_mean_the_same() {
    let open = submitted(&with("/assignment/mode", json!("open"))).unwrap();
    assert_eq!(open, submitted(&contract()).unwrap());
}

/// Each line: the pointer to change, the new value, and the expected message.
const FAULTS: &str = r#"
/protocol_version | " " | `protocol_version` must not be blank
/task_id | "a b" | `task_id` must have 1 to 128 letters, digits, `-`, `_`, `.` and `:`, and must not be `.`, `..` or `sample`
/task_id | "." | `task_id` must have 1 to 128 letters, digits, `-`, `_`, `.` and `:`, and must not be `.`, `..` or `sample`
/task_id | ".." | `task_id` must have 1 to 128 letters, digits, `-`, `_`, `.` and `:`, and must not be `.`, `..` or `sample`
/task_id | "sample" | `task_id` must have 1 to 128 letters, digits, `-`, `_`, `.` and `:`, and must not be `.`, `..` or `sample`
/task_type | null | `task_type` is required
/task_type | "a\u0000b" | `task_type` must not contain a NUL character
/acceptance/verifier_policy/policy_id | "a\u0000b" | `acceptance.verifier_policy.policy_id` must not contain a NUL character
/inputs | null | `inputs` is required; use {} for none
/output_schema | true | `output_schema` must be an object
/budget | 1 | `budget` must be an object, not a number
/budget/time_ms | "1" | `budget.time_ms` must be a whole number from 1 to 31536000000
/budget/explore_cost_units | null | `budget.explore_cost_units` is required
/budget/reuse_verify_time_ms | 120001 | `budget.reuse_verify_time_ms` must be at most 120000, the budget's `time_ms`
/budget/surplus | 1 | `budget.surplus` is not a known field; known are cost_units, explore_cost_units, finalize_cost_units, max_steps, mode, reuse_max_attempts, reuse_verify_cost_units, reuse_verify_time_ms, time_ms, verify_cost_units
/assignment/mode | "PUSH" | `assignment.mode` must be CLAIM; `open` means the same
/assignment/claim/lease_ms | 99 | `assignment.claim.lease_ms` must be a whole number from 100 to 86400000
/assignment/claim/max_concurrency/verify | 0 | `assignment.claim.max_concurrency.verify` must be a whole number from 1 to 64
/assignment/explore/stop/no_new_evidence_rounds | 0 | `assignment.explore.stop.no_new_evidence_rounds` must be a whole number from 1 to 64
/acceptance/quorum_threshold | 0 | `acceptance.quorum_threshold` must be a whole number from 1 to 64
/acceptance/vote/commit_reveal | false | `acceptance.vote.commit_reveal` must be true: votes are always committed before they are revealed
/acceptance/verifier_policy/policy_hash | "sha256:placeholder" | `acceptance.verifier_policy.policy_hash` must be `sha256:` and 64 hex digits, or the digits alone; leave it out to have it computed
/acceptance/aggregation | "MEDIAN" | `acceptance.aggregation` must be one of QUORUM, CONFIDENCE_WEIGHTED, REPUTATION_WEIGHTED, not `MEDIAN`
/acceptance/settlement/implicit_weight | 1.1 | `acceptance.settlement.implicit_weight` must be a number from 0 to 1
/acceptance/settlement/implicit_diminishing_returns/K | 0 | `acceptance.settlement.implicit_diminishing_returns.K` must be a whole number from 1 to 4294967295
/acceptance/settlement/feedback/mode | "OPEN" | `acceptance.settlement.feedback.mode` must be CAPABILITY
/acceptance/settlement/feedback/authority_pubkey | "ed25519:12" | `acceptance.settlement.feedback.authority_pubkey` must be `ed25519:` and 64 hex digits, or `ed25519:placeholder` for no key
/task_mode | "CONTINUOUS" | `budget.mode` must be EPOCH_RENEW for a task in mode CONTINUOUS
/budget/verify_cost_units | 451 | `budget.cost_units` must be at least 1001, the sum of its stages
/acceptance/quorum_threshold | 2 | `acceptance.quorum_threshold` cannot be reached: at most 1 verifier is asked
/expiry_ms | -1 | `expiry_ms` must be a whole number from 1 to 253402300799999
/evidence_policy/max_inline_media_bytes | 1 | `evidence_policy.max_inline_media_bytes` must be 0
/evidence_policy/inline_mime_allowlist | ["text/plain"] | `evidence_policy.inline_mime_allowlist` must have application/json, text/plain, text/markdown, text/csv, and at most 32 in total
"#;

#[test]
fn a_nul_is_refused_with_its_field() {
    let order = json!({ "contract": contract(), "profile": "a\0b" });
    assert_eq!(fields(&refused(&order)), ["profile"]);
    let problem = decode_cancel(&json!({ "reason": "a\0b" })).unwrap_err();
    assert_eq!(problem.detail, "`reason` must not contain a NUL character");
}

#[test]
fn what_is_found_later_is_named_as_it_stands_in_the_submission() {
    let order = json!({ "contract": contract() });
    let found = |field: &str| {
        Problem::new(ProblemCode::ValidationError, format!("`{field}` is so")).at(field)
    };
    let named = |body: &Value, field: &str| {
        let problem = located(body, found(field));
        assert_eq!(problem.detail, format!("`{}` is so", problem.field.as_deref().unwrap()));
        problem.field.unwrap()
    };
    assert_eq!(named(&order, "expiry_ms"), "contract.expiry_ms");
    assert_eq!(
        named(&order, "acceptance.quorum_threshold"),
        "contract.acceptance.quorum_threshold"
    );
    assert_eq!(named(&order, "executors"), "executors");
    assert_eq!(named(&contract(), "expiry_ms"), "expiry_ms");
}

#[test]
fn each_wrong_member_is_named() {
    let mut tried = 0;
    for line in FAULTS.trim().lines() {
        let parts: Vec<&str> = line.splitn(3, " | ").collect();
        let [pointer, value, expected] = parts[..] else { panic!("{line}") };
        let problem = refused(&with(pointer, serde_json::from_str(value).unwrap()));
        assert_eq!(problem.detail, expected);
        let field = problem.field.unwrap();
        assert!(expected.starts_with(&format!("`{field}`")), "{field}");
        tried += 1;
    }
    assert_eq!(tried, 33);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let mut contract = contract();
    contract["task_id"] = json!("");
    contract["budget"]["max_steps"] = json!(0);
    contract["surplus"] = json!(1);
    contract["acceptance"].as_object_mut().unwrap().remove("vote");
    let problem = refused(&contract);
    let expected = ["surplus", "task_id", "budget.max_steps", "acceptance.vote"];
    assert_eq!(fields(&problem), expected);
    assert!(problem.detail.starts_with("4 fields are wrong: `surplus` is not"), "{problem:?}");
    assert_eq!(problem.field.as_deref(), Some("surplus"));
    let order = json!({ "contract": contract, "executors": ["a", "a"] });
    let fields = fields(&refused(&order));
    assert!(fields.contains(&"contract.acceptance.vote".to_owned()), "{fields:?}");
    assert_eq!(fields.last().map(String::as_str), Some("executors"));
    // Terms that cannot be met are reported the same way.
    let mut contract = json!(TaskContract::sample("task-1", 0));
    contract["budget"]["max_steps"] = json!(1);
    contract["budget"]["cost_units"] = json!(1);
    let order = json!({ "contract": contract });
    let budget = ["max_steps", "cost_units", "reuse_verify_cost_units"];
    let expected = budget.map(|it| format!("contract.budget.{it}"));
    assert_eq!(self::fields(&refused(&order)), expected);
    // The reply to a document with a thousand faults stays short.
    let many: serde_json::Map<String, Value> =
        (0..1_000).map(|n| (format!("surplus-{n}"), json!(n))).collect();
    let problem = refused(&Value::Object(many));
    assert_eq!(self::fields(&problem).len(), 20);
    assert!(problem.detail.len() < 2_000, "{}", problem.detail.len());
}
