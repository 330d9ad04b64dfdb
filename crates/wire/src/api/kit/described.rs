//! Tests every request decoder against its schema: both must accept the same requests.

mod sharing;

use std::collections::BTreeSet;

use jsonschema::{Draft, Validator};
use jurat_core::{code::ProblemCode, time::Timestamp};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::request::{self, RequestBody};
use crate::api::{
    agent_events::{self, SendAgentEventRequest},
    agent_runs::{self, AgentRunRequestBody, AgentRunSpecBody, CancelRunRequest},
    consensus_request::{
        self, DelegateRequest, DelegateRequestV2, FactcheckRequest, ValidateRequest,
        ValidateRequestV2,
    },
    credits::{self, GrantRequest},
    executors::{self, AddExecutorRequest},
    keys::{self, CreateKeyRequest, RotateKeyRequest},
    nodes::{self, InviteNodeRequest, JoinNodeRequest, TrustNodeRequest},
    openai::{
        profile::built_in,
        request::{self as chat, ChatRequest},
    },
    peer::{
        self,
        request::{PeerCompletionRequest, PeerCreateRequest},
    },
    prune::{self, PruneRequest},
    sessions::{self, AddSessionRequest},
    tasks::{self, CancelTaskRequest, FeedbackRequest, TaskContractBody, TaskOrder},
    v2,
    verifier_runs::{self, RunVerifierRequest},
    verifier_tests::{self, AttackVerifierRequest, TestVerifierRequest},
    verifiers::{self, DeployVerifierRequest},
    webhooks::{self, AddWebhookRequest, ChangeWebhookRequest, RotateWebhookRequest},
};
use crate::{executor::TaskContract, problem::Problem};

struct DescribedCase {
    decode: fn(&Value) -> Result<(), Problem>,
    schema: Value,
    /// A valid request that contains every object with fields of its own.
    whole: Value,
    /// Whether a request contains fields that the decoder ignores although the schema does not
    /// describe them.
    is_ignored: fn(&Value) -> bool,
}

const NOW: Timestamp = Timestamp::from_micros(0);

fn cases() -> Vec<DescribedCase> {
    let terms = json!({ "replicas": 1, "session_pool": ["a"], "early_stop": false });
    let execution = json!({ "timeout_ms": 5, "max_steps": 2, "output_schema": {} });
    let delegate = json!({
        "objective": "x", "policy": { "policy_id": "vp.schema_only.v1" },
        "execution": execution, "consensus": terms,
    });
    let validate = json!({
        "claim": "x", "policy": { "policy_id": "vp.claim.v1" },
        "execution": execution, "consensus": terms,
    });
    let factcheck = json!({ "claim": "x", "policy": { "tier": "fast" }, "execution": execution, "consensus": terms });
    let mut delegate_v2 = delegate.clone();
    let mut validate_v2 = validate.clone();
    for old in [&mut delegate_v2, &mut validate_v2] {
        old.as_object_mut().unwrap().remove("consensus");
    }
    let mut cases = vec![
        case::<DelegateRequest>(|it| consensus_request::delegate(it).map(drop), delegate),
        case::<ValidateRequest>(|it| consensus_request::validate(it).map(drop), validate),
        case::<FactcheckRequest>(|it| consensus_request::factcheck(it).map(drop), factcheck),
        old::<DelegateRequestV2>(
            |it| consensus_request::delegate(&v2::up::<DelegateRequestV2>(it.clone()).0).map(drop),
            delegate_v2,
        ),
        old::<ValidateRequestV2>(
            |it| consensus_request::validate(&v2::up::<ValidateRequestV2>(it.clone()).0).map(drop),
            validate_v2,
        ),
    ];
    cases.extend([
        case::<PeerCompletionRequest>(
            |it| peer::request::completion(it).map(drop),
            json!({ "prompt": "x", "session_id": 1, "timeout": 5 }),
        ),
        case::<PeerCreateRequest>(
            |it| peer::request::create(it).map(drop),
            json!({ "session_id": 1 }),
        ),
    ]);
    cases.extend(own_resources());
    cases.extend(of_webhooks());
    cases.extend(of_nodes());
    cases.extend(of_the_registry());
    cases.extend(of_tasks());
    cases.extend(sharing::cases());
    cases.extend(of_runs());
    cases
}

fn own_resources() -> Vec<DescribedCase> {
    vec![
        case::<AddExecutorRequest>(
            |it| executors::decode_add(it, NOW).map(drop),
            json!({
                "name": "a", "url": "http://a", "agent_events_url": "http://a",
                "session": { "id": "b" }, "must_answer": true,
            }),
        ),
        case::<AddExecutorRequest>(
            |it| executors::decode_add(it, NOW).map(drop),
            json!({
                "name": "a", "url": "http://a", "remote": true, "target_node": "ab".repeat(32),
                "scope": "region:eu",
            }),
        ),
        case::<AddSessionRequest>(
            |it| sessions::decode_add(it, NOW).map(drop),
            json!({ "id": "a", "executor": "b" }),
        ),
        case::<CreateKeyRequest>(
            |it| keys::decode_create(it, NOW).map(drop),
            json!({ "name": "a", "scopes": ["admin"] }),
        ),
        case::<GrantRequest>(
            |it| credits::decode_grant(it).map(drop),
            json!({ "amount_usd": "5.00", "note": "a gift" }),
        ),
        case::<TestVerifierRequest>(
            |it| verifier_tests::decode_test(it).map(drop),
            json!({ "cases": [{ "inputs": { "a": "b" }, "passed": true }] }),
        ),
        case::<AttackVerifierRequest>(
            |it| verifier_tests::decode_attack(it).map(drop),
            json!({ "families": ["a"] }),
        ),
        case::<SendAgentEventRequest>(
            |it| agent_events::decode_send(it).map(drop),
            json!({
                "event_type": "dm_received", "target_executor": "a", "payload": {},
                "source_node_id": "b", "target_agent_id": "c", "requires_commit": true,
                "agent_envelope": { "protocol": "d" }, "correlation_id": "e", "dedupe_key": "f",
            }),
        ),
        case::<RotateKeyRequest>(
            |it| keys::decode_rotate(it).map(drop),
            json!({ "grace_seconds": 1 }),
        ),
        case::<PruneRequest>(|it| prune::decode(it).map(drop), json!({ "dry_run": true })),
        case::<ChatRequest>(
            |it| chat::chat(it, &built_in()).map(drop),
            json!({
                "model": "jurat/safe", "messages": [{ "role": "user", "content": "a" }],
                "response_format": {
                    "type": "json_schema", "json_schema": { "name": "a", "schema": {} },
                },
                "stream": true, "stream_options": { "include_usage": true },
                "jurat": { "timeout_ms": 5 },
            }),
        ),
    ]
}

fn of_webhooks() -> [DescribedCase; 3] {
    [
        case::<AddWebhookRequest>(
            |it| webhooks::decode_add(it).map(drop),
            json!({ "url": "https://example.com/x", "events": ["task.failed"], "description": "d" }),
        ),
        case::<ChangeWebhookRequest>(
            |it| webhooks::decode_change(it).map(drop),
            json!({ "is_enabled": true, "events": ["task.failed"], "description": "d" }),
        ),
        case::<RotateWebhookRequest>(
            |it| webhooks::decode_rotate(it).map(drop),
            json!({ "grace_seconds": 1 }),
        ),
    ]
}

fn of_nodes() -> [DescribedCase; 3] {
    let terms = json!({
        "works_for": true, "hires": true, "requests_per_minute": 1, "concurrent_jobs": 1,
        "payload_bytes": 1, "most_price_micros": 1, "task_types": ["a"],
    });
    [
        case::<InviteNodeRequest>(
            |it| nodes::decode_invite(it).map(drop),
            json!({ "name": "a", "valid_seconds": 1, "terms": terms }),
        ),
        case::<JoinNodeRequest>(
            |it| nodes::decode_join(it).map(drop),
            json!({ "ticket": "a", "name": "a", "terms": terms }),
        ),
        case::<TrustNodeRequest>(
            |it| nodes::decode_trust(it).map(drop),
            json!({
                "name": "a", "addresses": ["192.0.2.7:1"], "relays": ["http://a"], "terms": terms,
            }),
        ),
    ]
}

fn of_the_registry() -> [DescribedCase; 2] {
    let deploy = json!({
        "name": "a", "description": "b", "criterion": "c", "input_contract": "text",
        "input_fields": ["d"], "model_settings": { "model": "e/f" },
    });
    let run = json!({ "inputs": { "a": "b" } });
    [
        case::<DeployVerifierRequest>(|it| verifiers::decode_deploy(it).map(drop), deploy),
        case::<RunVerifierRequest>(|it| verifier_runs::decode_verifier_run(it).map(drop), run),
    ]
}

fn of_tasks() -> [DescribedCase; 4] {
    let mut contract = json!(TaskContract::sample("a", 1));
    contract["acceptance"]["da_quorum_threshold"] = json!(1);
    contract["assignment"]["explore"]["max_retries"] = json!(1);
    let order =
        json!({ "contract": contract, "executors": ["a"], "verifiers": ["b"], "profile": "c" });
    [
        shape::<TaskContractBody>(contract),
        shape::<TaskOrder>(order),
        case::<FeedbackRequest>(
            |it| tasks::decode_feedback(it).map(drop),
            json!({ "reason": "wrong", "outcome": "BAD" }),
        ),
        case::<CancelTaskRequest>(
            |it| tasks::decode_cancel(it).map(drop),
            json!({ "reason": "a" }),
        ),
    ]
}

fn of_runs() -> [DescribedCase; 3] {
    let reexplore = json!({
        "max_tie_iterations": 1, "no_new_evidence_rounds": 1, "require_new_evidence": true,
    });
    let confidence = json!({
        "decision_confidence_field": "a", "answer_confidence_field": "b",
        "confidence_field": "c", "default_confidence": 0.5,
    });
    let reputation = json!({ "agent_reputation_units": { "a": 1 }, "missing_reputation": "SKIP" });
    let tie = json!({
        "enabled_on": ["TIE"], "chain": ["STOCHASTIC"], "reexplore": reexplore,
        "confidence_weighted": confidence, "reputation_weighted": reputation, "stochastic": {},
    });
    let missing = json!({ "enabled_on": ["EMPTY"], "chain": [], "reexplore": reexplore });
    let spec = json!({
        "run_id": "a", "task_type": "b", "shared_inputs": {}, "contract": {}, "verifiers": ["c"],
        "agents": [{ "agent_id": "a", "executor": "b", "prompt": "c" }],
        "per_executor": 1, "retry": { "max_attempts": 1, "backoff_ms": 1 },
        "aggregation": { "mode": "a", "quorum": 1, "tie_policy": tie, "null_policy": missing },
        "market_task_id": "a", "feed_key": "b", "scope_hint": "c",
    });
    let order = json!({ "kickoff": true, "spec": spec });
    [
        case::<AgentRunSpecBody>(|it| agent_runs::read(it).map(drop), spec),
        case::<AgentRunRequestBody>(|it| agent_runs::read(it).map(drop), order),
        case::<CancelRunRequest>(
            |it| agent_runs::decode_cancel(it).map(drop),
            json!({ "reason": "a" }),
        ),
    ]
}

/// A case for a version 2 request, which ignores unknown fields.
fn old<R: RequestBody>(decode: fn(&Value) -> Result<(), Problem>, whole: Value) -> DescribedCase {
    let unknown = |body: &Value| !v2::up::<R>(body.clone()).1.is_empty();
    DescribedCase { is_ignored: unknown, ..case::<R>(decode, whole) }
}

/// A case that checks only the shape of a request, not whether its terms can be met.
fn shape<R: RequestBody>(whole: Value) -> DescribedCase {
    case::<R>(|it| request::read::<R>(it, ProblemCode::ValidationError).map(drop), whole)
}

fn case<T: ToSchema>(decode: fn(&Value) -> Result<(), Problem>, whole: Value) -> DescribedCase {
    let mut parts = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut parts);
    let schemas: Map<String, Value> =
        parts.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    let reference = format!("#/components/schemas/{}", T::name());
    let schema = json!({ "$ref": reference, "components": { "schemas": schemas } });
    DescribedCase { decode, schema, whole, is_ignored: |_| false }
}

impl DescribedCase {
    fn validator(&self) -> Validator {
        let options = jsonschema::options().with_draft(Draft::Draft202012);
        options.should_validate_formats(true).build(&self.schema).unwrap()
    }

    /// The paths of all fields in the schema.
    fn described(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.collect_fields(&self.schema, "", &mut found);
        found
    }

    fn collect_fields(&self, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.schema.pointer(&reference[1..]).unwrap();
            return self.collect_fields(target, path, found);
        }
        for part in schema["oneOf"].as_array().into_iter().flatten() {
            self.collect_fields(part, path, found);
        }
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.collect_fields(part, &path, found);
            found.insert(path);
        }
    }
}

/// Strings that some field accepts, and strings that no field accepts.
const WORDS: &[&str] = &[
    "",
    " ",
    "a",
    "-a",
    "vp.claim.v1",
    "http://a",
    "ftp://a",
    "http://a?b",
    "fast",
    "adaptive",
    "majority",
    "mean",
    "median",
    "weighted",
    "return_all",
    "fail_hard",
    "best_effort",
    "count",
    "ignore",
    "negative",
    "medoid",
    "fields",
    "canonical",
    "text",
    "unordered",
    "numeric",
    "standard",
    "realtime",
    "TOKEN",
    "1TOKEN",
    "default",
    "FAST",
    "a b",
    "a/b",
    ".a",
    ".",
    "..",
    "a ",
    "acct_a",
    "acct_",
    "2030-01-31T12:00:00Z",
    "2030-01-31",
    "5.00",
    "-0.000001",
    "0.00",
    "-0",
    "5.",
    "05.00",
    "0.0000001",
    "999999999.999999",
    "1000000000",
    "image",
    "low",
    "a/b/c",
    "Provider/model",
    "judge:a/b",
    "judge:a",
    "@ann",
    " @Ann ",
    "@a",
    "a@b",
    "a@b..c",
    "@ann/report",
    "@ann/report@v2",
    "@ann/report@v0",
    "all",
    "mine",
    "shared-with-me",
    "sent",
    "pending",
    "global",
    "region:a",
    "zone:a",
    "abababababababababababababababababababababababababababababababab",
    "admin",
    "owner",
    "a\nb",
    "a\0b",
];

/// Valid and invalid values of every type, to try in every field.
fn values() -> Vec<Value> {
    let mut values: Vec<Value> = WORDS.iter().map(|word| json!(word)).collect();
    values.extend([
        json!(null), json!(true), json!(false), json!(0), json!(1), json!(2), json!(3), json!(5),
        json!(-1),
        json!(3.0),
        json!(1.0),
        json!(-1.0), json!(0.5), json!(0.001), json!(600), json!(600_000), json!(600_001),
        json!(1_000_001), json!(1_000_000_000_001_u64), json!(0.995), json!([]), json!(["a"]),
        json!(["a", 1]), json!([""]), json!([1]), json!([0.5]), json!([true]), json!(["traces"]),
        json!(["other"]), json!(["admin"]), json!(2_592_000), json!(2_592_001), json!(100_001), json!({}), json!({ "a": "b" }), json!({ "a": 1 }), json!({ "a": "" }),
        json!({ "fields": ["/a"] }), json!({ "fields": ["a"] }), json!({ "fields": [] }),
        json!({ "numeric": { "tolerance": 0.1 } }), json!({ "numeric": { "tolerance": -1 } }),
        json!({ "buckets": [1, 2] }), json!({ "buckets": [] }), json!({ "a": 1, "b": 2 }),
        json!([{ "inputs": { "d": "x" }, "passed": true }]), json!([{ "inputs": { "d": "x" } }]),
        json!([{ "inputs": { "d": 1 }, "passed": true }]), json!(["a/b"]), json!(["a/b", "a/b"]), json!(["judge:a/b"]), json!(["judge:a"]),
        json!(["192.0.2.7:1"]), json!(["192.0.2.7"]), json!(["http://a"]),
        json!([{ "mime": "a", "content": "b" }]), json!([{ "mime": "a" }]),
        json!([{
            "uri": "a", "digest": "b", "size_bytes": 1, "mime": "c", "created_at": 2, "producer": "d",
        }]),
    ]);
    values.extend(files_and_bindings());
    values
}

/// Lists that are meant for the files and verifiers of a workflow.
fn files_and_bindings() -> Vec<Value> {
    let digest = "0".repeat(64);
    let paths = ["a/b.md", ".hidden/..b", "../a", "a/..", "a//b", "/a", "a/", "a\\b", "a\nb", ""];
    let mut lists: Vec<Value> =
        paths.iter().map(|path| json!([{ "path": path, "content": "x" }])).collect();
    lists.extend(paths.iter().map(|path| json!([path])));
    let file = |more: Value| {
        let mut file = json!({ "path": "x" });
        file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([file])
    };
    lists.extend([
        file(json!({ "content": "x", "executable": true, "purpose": "y" })),
        file(json!({ "content": "x", "executable": 1 })),
        file(json!({ "content": "x", "purpose": "a\nb" })),
        file(json!({ "content": 1 })),
        file(json!({ "content_base64": "eA==" })),
        file(json!({ "content_base64": "eA" })),
        file(json!({ "content_base64": "*" })),
        file(json!({ "sha256": digest })),
        file(json!({ "sha256": "abc" })),
        json!([{ "content": "x" }]),
    ]);
    for (name, id, version) in [
        ("a", "b", json!(null)),
        ("a", "b@2", json!(null)),
        ("a", "b@0", json!(null)),
        ("a", "b", json!(1)),
        ("a", "b", json!(0)),
        ("a", "B", json!(null)),
        ("a", "", json!(null)),
        ("a", "system:b", json!(null)),
        ("-a", "b", json!(null)),
        ("A", "b", json!(null)),
    ] {
        lists.push(json!([{ "name": name, "verifier_id": id, "version": version }]));
    }
    lists
}

/// The request with another value at the path; other values along the path become objects.
fn with(request: &Value, path: &str, value: Value) -> Value {
    let mut changed = request.clone();
    let mut at = &mut changed;
    for name in path.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = at.as_object_mut().unwrap().entry(name).or_insert(Value::Null);
    }
    *at = value;
    changed
}

/// Whether the problem is one that a schema cannot express, such as two fields that contradict each
/// other or a cursor that no list returned.
fn is_beyond_description(problem: &Problem) -> bool {
    let detail = &problem.detail;
    detail.contains("contradicts")
        || detail.contains("needs `policy_id`")
        || detail.contains("twice")
        || detail.contains("_id` instead")
        || detail.contains("needs exactly one of")
        || detail.contains("needs `remote`")
        || detail.contains("with `remote`")
        || detail.contains("to any node of a scope")
        || detail.contains("add a `slug`")
        || detail.contains("but the number must be")
        || detail.contains("name different")
        || detail.contains("both empty")
        || detail.contains("was not returned by a list")
        || detail.contains("there is no model")
        || detail.contains("with the type `json_schema`")
}

#[test]
fn decoders_take_what_the_descriptions_allow_and_refuse_the_rest() {
    let mut tried = 0;
    let mut differences = Vec::new();
    for case in cases() {
        let validator = case.validator();
        for path in case.described() {
            for value in values() {
                let request = with(&case.whole, &path, value);
                let read = (case.decode)(&request);
                tried += 1;
                if read.as_ref().is_err_and(is_beyond_description) || (case.is_ignored)(&request) {
                    continue;
                }
                if read.is_ok() != validator.is_valid(&request) {
                    let name = &case.schema["$ref"];
                    differences.push(format!(
                        "{name} {path}: {read:?}, though described otherwise: {request}"
                    ));
                }
            }
        }
    }
    let first = differences.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differ, such as\n{first}", differences.len());
    assert!(tried > 10_000, "only {tried} requests were tried");
}

#[test]
fn what_is_required_is_missed_by_both() {
    for case in cases() {
        let name = case.schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let schema = &case.schema["components"]["schemas"][name];
        let fields = case.whole.as_object().unwrap();
        for field in fields.keys() {
            let mut request = case.whole.clone();
            request.as_object_mut().unwrap().remove(field);
            let is_required =
                schema["required"].as_array().is_some_and(|names| names.contains(&json!(field)));
            let read = (case.decode)(&request);
            if !read.as_ref().is_err_and(is_beyond_description) {
                assert_eq!(read.is_err(), is_required, "{name}: {field}");
            }
        }
    }
}

#[test]
fn what_is_not_known_is_refused_or_ignored_by_both() {
    for case in cases() {
        let validator = case.validator();
        for path in [
            "surplus",
            "policy.surplus",
            "execution.surplus",
            "consensus.surplus",
            "session.surplus",
            "model_settings.surplus",
            "budget.surplus",
            "acceptance.surplus",
            "contract.surplus",
            "terms.surplus",
        ] {
            let (parent, _) = path.rsplit_once('.').unwrap_or(("", path));
            if !parent.is_empty() && case.whole.get(parent).is_none_or(|it| !it.is_object()) {
                continue;
            }
            let request = with(&case.whole, path, json!(1));
            let read = (case.decode)(&request);
            let is_taken = (case.is_ignored)(&request) || validator.is_valid(&request);
            assert_eq!(read.is_ok(), is_taken, "{request}: {read:?}");
        }
    }
}
