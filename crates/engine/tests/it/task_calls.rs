//! A task call is a round with one seat: the request of its executor, and its result.

pub(crate) mod credit;
mod evidence;
mod refusals;

use std::{cell::Cell, sync::Arc};

use jurat_core::{
    id::AccountId,
    policy::{EvaluationStatus, PolicyBinding},
    round::candidate::{ArtifactRef, Candidate, Evidence, InlineEvidence},
    time::Timestamp,
};
use jurat_engine::{
    TaskCallOrder, TaskCallOutcome, TaskCallResult, TaskCallTarget, TaskCallVerdict, TaskCallWork,
};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, ReceivedCall, answers, says_invalid, says_valid},
};
use serde_json::{Value, json};

/// Recorded requests of WattSwarm's kernel, to execute and to verify.
const EXECUTE: &str = include_str!("../../../runtime/tests/it/golden/wattswarm-execute.json");
const VERIFY: &str = include_str!("../../../runtime/tests/it/golden/wattswarm-verify.json");

pub(crate) fn golden_execute() -> Value {
    serde_json::from_str(EXECUTE).unwrap()
}

pub(crate) fn contract() -> Value {
    golden_execute()["task_contract"].clone()
}

/// The contract under one of our policies.
pub(crate) fn under(policy: &PolicyBinding) -> Value {
    let mut contract = contract();
    contract["acceptance"]["verifier_policy"] = json!({
        "policy_id": policy.policy_id,
        "policy_version": policy.policy_version,
        "policy_hash": policy.policy_hash,
        "policy_params": policy.policy_params,
    });
    contract
}

pub(crate) fn by(name: &str) -> TaskCallTarget {
    TaskCallTarget::Executor { name: name.to_owned(), profile: "default".to_owned() }
}

/// The id of an execution; a new one for each call.
fn execution_id() -> String {
    thread_local! {
        static GIVEN: Cell<u32> = const { Cell::new(0) };
    }
    let before = GIVEN.get();
    GIVEN.set(before + 1);
    let first = "exec-p-c4985d00-0503-4c57-b969-2f8f85ceabef";
    if before == 0 { first.to_owned() } else { format!("{first}-{before}") }
}

pub(crate) fn order(contract: Value, by: TaskCallTarget, work: TaskCallWork) -> TaskCallOrder {
    TaskCallOrder {
        task_id: "task-q1".to_owned(),
        execution_id: execution_id(),
        attempt: 1,
        contract: Arc::new(contract),
        target: by,
        timeout_ms: 10_000,
        work,
    }
}

pub(crate) fn propose(contract: Value, by: TaskCallTarget) -> TaskCallOrder {
    order(contract, by, TaskCallWork::Propose { seed_bundle: None })
}

pub(crate) fn candidate(output: Value) -> Candidate {
    Candidate {
        candidate_id: "cand-1".to_owned(),
        execution_id: "exec-of-the-proposer".to_owned(),
        output,
        evidence: Evidence::default(),
    }
}

pub(crate) fn verify(contract: Value, by: TaskCallTarget, candidate: Candidate) -> TaskCallOrder {
    let work = TaskCallWork::Vote {
        candidate: Box::new(candidate),
        proposed_at: Timestamp::from_micros(1_794_733_691_276_000),
        producer: "s9".to_owned(),
        turn: 1,
        others: Vec::new(),
        fetch_evidence: false,
    };
    order(contract, by, work)
}

pub(crate) async fn run(app: &TestApp, order: TaskCallOrder) -> TaskCallResult {
    let caller = app.engine.caller_without_key(&AccountId::admin()).await.unwrap();
    app.engine.task_call(&caller, order).await.unwrap()
}

#[track_caller]
pub(crate) fn verdict(done: &TaskCallResult) -> &TaskCallVerdict {
    let TaskCallOutcome::Verdict(verdict) = &done.outcome else {
        panic!("no verdict: {:?}", done.outcome)
    };
    verdict
}

pub(crate) fn work(fake: &FakeExecutor) -> Vec<ReceivedCall> {
    let is_work = |call: &ReceivedCall| matches!(call.endpoint(), "execute" | "verify");
    fake.calls().into_iter().filter(is_work).collect()
}

#[tokio::test]
async fn a_proposer_receives_the_same_request_as_from_wattswarm() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "yes" })).task_types(&["swarm"])]).await;
    let bundle = json!({ "seed_type": "SIMILAR_HITS_V1", "hits": [], "constraints": {} });
    let mut step = propose(contract(), by("s1"));
    step.work = TaskCallWork::Propose { seed_bundle: Some(bundle.clone()) };
    step.attempt = 2;
    let done = run(&app, step).await;

    let mut expected = golden_execute();
    expected["stage"] = json!("explore");
    expected["attempt_id"] = json!("attempt-2");
    expected["seed_bundle"] = bundle;
    let calls = work(&fake);
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].endpoint(), "execute");
    assert_eq!(calls[0].body, expected);

    let TaskCallOutcome::Candidate(candidate) = &done.outcome else { panic!("{:?}", done.outcome) };
    assert_eq!(candidate.execution_id, expected["execution_id"].as_str().unwrap());
    assert_eq!(candidate.candidate_id, format!("cand-{}", candidate.execution_id));
    assert_eq!(candidate.output["answer"], "yes");
    assert_eq!(done.executor, "s1");
    assert_eq!(done.independence, "family-1/model-1@127.0.0.1");
}

#[tokio::test]
async fn a_task_call_is_a_signed_and_recorded_round() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let done = run(&app, propose(contract(), by("s1"))).await;
    let round_id = done.round_id.unwrap();
    let call = &work(&fake)[0];
    assert_eq!(call.header("x-jurat-round"), Some(round_id.as_str()));
    assert!(call.header("signature").is_some() && call.header("content-digest").is_some());
    let round = app.admin().get(&format!("/v1/rounds/{round_id}")).await.json();
    assert_eq!(round["state"], "closed");
    assert_eq!(round["receipt_id"].as_str(), done.receipt_id.as_deref());
    assert_eq!(round["replicas"][0]["session_id"], "s1");
    let health = fake.calls().iter().filter(|call| call.endpoint() == "health").count();
    assert_eq!(health, 1, "it is asked how it is before it is used");
}

#[tokio::test]
async fn unknown_members_of_a_contract_reach_the_executor() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let mut contract = contract();
    contract["acceptance"]["aggregation"] = json!("QUORUM");
    contract["x-later"] = json!({ "kept": [1, 2] });
    run(&app, propose(contract.clone(), by("s1"))).await;
    assert_eq!(work(&fake)[0].body["task_contract"], contract);
}

#[tokio::test]
async fn a_voter_receives_the_same_request_as_from_wattswarm() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let captured: Value = serde_json::from_str(VERIFY).unwrap();
    let captured = captured.as_array().unwrap();
    let pass = captured.iter().find(|it| it["name"] == "schema-only-pass").unwrap();
    let expected = &pass["request"];
    let sent = &expected["candidate"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let inline = |item: &Value| InlineEvidence {
        mime: text(&item["mime"]),
        content: text(&item["content"]),
    };
    let candidate = Candidate {
        candidate_id: text(&sent["candidate_id"]),
        execution_id: text(&sent["execution_id"]),
        output: sent["output"].clone(),
        evidence: Evidence {
            inline: sent["evidence_inline"].as_array().unwrap().iter().map(inline).collect(),
            refs: sent["evidence_refs"].as_array().unwrap().iter().map(reference).collect(),
        },
    };
    let mut step = verify(contract(), by("s1"), candidate);
    let TaskCallWork::Vote { proposed_at, producer, .. } = &mut step.work else {
        panic!("it verifies")
    };
    *proposed_at =
        Timestamp::from_micros(sent["output_ref"]["created_at"].as_i64().unwrap() * 1_000);
    *producer = text(&sent["output_ref"]["producer"]);
    let done = run(&app, step).await;
    assert_eq!(work(&fake)[0].endpoint(), "verify");
    assert_eq!(&work(&fake)[0].body, expected);
    assert_eq!(verdict(&done).status, EvaluationStatus::Passed);
}

pub(crate) fn reference(value: &Value) -> ArtifactRef {
    let text = |name: &str| value[name].as_str().unwrap().to_owned();
    ArtifactRef {
        uri: text("uri"),
        digest: text("digest"),
        size_bytes: value["size_bytes"].as_u64().unwrap(),
        mime: text("mime"),
        created_at: value["created_at"].as_u64().unwrap(),
        producer: text("producer"),
    }
}

#[tokio::test]
async fn each_kind_of_verdict_is_distinguished() {
    let app = TestApp::new().await;
    let behaviours = [
        says_valid().score(0.9),
        says_invalid().score(0.8),
        jurat_testkit::fake_executor::says_inconclusive(),
        jurat_testkit::fake_executor::needs_spec(),
    ];
    let _fakes = app.executors(behaviours).await;
    let of = async |name: &str| {
        let done =
            run(&app, verify(contract(), by(name), candidate(json!({ "answer": "x" })))).await;
        let verdict = verdict(&done);
        (verdict.status, verdict.score, verdict.reason_codes.clone())
    };
    assert_eq!(of("s1").await, (EvaluationStatus::Passed, 0.9, vec![]));
    assert_eq!(of("s2").await, (EvaluationStatus::Failed, 0.8, vec![101]));
    let (status, _, codes) = of("s3").await;
    assert_eq!((status, codes), (EvaluationStatus::Inconclusive, vec![200]));
    // A refusal of the policy says nothing about the candidate.
    let done = run(&app, verify(contract(), by("s4"), candidate(json!({ "answer": "x" })))).await;
    let TaskCallOutcome::Failed { code, detail } = &done.outcome else { panic!("{done:?}") };
    assert_eq!(code.as_str(), "policy_unsupported");
    assert!(detail.contains("`s4`") && detail.contains("policy_unsupported"), "{detail}");
}

#[tokio::test]
async fn the_digest_of_a_verdict_covers_only_the_answer() {
    let app = TestApp::new().await;
    let [fake, _other] = app.executors([says_valid(), says_valid()]).await;
    let of = async |name: &str| {
        let done =
            run(&app, verify(contract(), by(name), candidate(json!({ "answer": "x" })))).await;
        verdict(&done).result_hash.clone()
    };
    let first = of("s1").await;
    app.clock.advance_ms(5_000);
    assert_eq!(of("s1").await, first, "the same answer another time");
    assert_ne!(of("s2").await, first, "the same answer of somebody else");
    fake.set(says_valid().score(0.5).provider_family("family-1").model_id("model-1"));
    assert_ne!(of("s1").await, first, "another answer");
    assert!(first.starts_with("sha256:") && first.len() == 71);
}

#[tokio::test]
async fn the_node_votes_by_itself_and_asks_nobody() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_invalid()]).await;
    let good =
        run(&app, verify(contract(), TaskCallTarget::Node, candidate(json!({ "answer": "x" }))))
            .await;
    assert_eq!(verdict(&good).status, EvaluationStatus::Passed);
    assert_eq!(good.executor, "builtin:policies");
    assert_eq!(good.cost_micros, 0);
    let bad =
        run(&app, verify(contract(), TaskCallTarget::Node, candidate(json!({ "answer": 7 }))))
            .await;
    assert_eq!(verdict(&bad).status, EvaluationStatus::Failed);
    assert_eq!(verdict(&bad).reason_codes, [101]);
    assert!(work(&fake).is_empty());
}

#[tokio::test]
async fn other_answers_are_compared_if_the_policy_compares() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let policy = PolicyBinding::new("vp.crosscheck.v1", json!({}));
    let with = |by: TaskCallTarget, others: &[Value]| {
        let mut step = verify(under(&policy), by, candidate(json!({ "answer": "x" })));
        let TaskCallWork::Vote { others: known, .. } = &mut step.work else {
            panic!("it verifies")
        };
        let named =
            others.iter().enumerate().map(|(at, it)| (format!("cand-{}", at + 2), it.clone()));
        *known = named.collect();
        step
    };
    let same = json!({ "answer": "x" });
    let agreeing = run(&app, with(TaskCallTarget::Node, std::slice::from_ref(&same))).await;
    assert_eq!(verdict(&agreeing).status, EvaluationStatus::Passed);
    let alone = run(&app, with(TaskCallTarget::Node, &[])).await;
    assert_eq!(verdict(&alone).status, EvaluationStatus::Inconclusive);
    run(&app, with(by("s1"), std::slice::from_ref(&same))).await;
    let sent = &work(&fake)[0].body["candidate"]["evidence_inline"];
    let tagged: Value = serde_json::from_str(sent[0]["content"].as_str().unwrap()).unwrap();
    assert_eq!(tagged, json!({ "kind": "candidate", "candidate_id": "cand-2", "output": same }));
}
