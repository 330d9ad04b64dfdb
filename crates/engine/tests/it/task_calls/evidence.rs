//! The references of a candidate are fetched and checked, and amend the verdict.

use jurat_core::{
    policy::{EvaluationStatus, PolicyBinding},
    round::{
        candidate::{Candidate, Evidence},
        evidence::EvidenceStatus,
    },
};
use jurat_engine::{
    JudgesConfig, TaskCallOrder, TaskCallOutcome, TaskCallResult, TaskCallTarget, TaskCallWork,
};
use jurat_testkit::{
    app::TestApp,
    fake_documents::{FakeDocument, FakeDocuments},
    fake_executor::{FakeExecutor, answers, says_invalid, says_valid, status},
};
use serde_json::{Value, json};

use super::{by, candidate, contract, reference, run, under, verdict, verify};

/// An application that may fetch from this machine.
async fn with_loopback() -> TestApp {
    let media_allow = vec!["127.0.0.0/8".parse().unwrap()];
    TestApp::with_judges(JudgesConfig { media_allow, ..JudgesConfig::default() }).await
}

fn referring(refs: &[Value]) -> Candidate {
    let refs = refs.iter().map(reference).collect();
    Candidate {
        evidence: Evidence { inline: Vec::new(), refs },
        ..candidate(json!({ "answer": "x" }))
    }
}

fn looking(by: TaskCallTarget, refs: &[Value]) -> TaskCallOrder {
    let mut step = verify(contract(), by, referring(refs));
    let TaskCallWork::Vote { fetch_evidence, .. } = &mut step.work else { panic!("it verifies") };
    *fetch_evidence = true;
    step
}

fn found(done: &TaskCallResult) -> Vec<EvidenceStatus> {
    done.evidence.iter().map(|finding| finding.found).collect()
}

#[tokio::test]
async fn evidence_that_matches_confirms_the_verdict() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid()]).await;
    web.put("/b", FakeDocument::Chunks(b"a longer document in parts".to_vec()));
    let refs =
        [web.publish("/a", b"a document"), web.reference("/b", b"a longer document in parts")];
    let done = run(&app, looking(by("s1"), &refs)).await;
    assert_eq!(verdict(&done).status, EvaluationStatus::Passed);
    assert_eq!(verdict(&done).reason_codes, [] as [u16; 0]);
    assert_eq!(found(&done), [EvidenceStatus::Seen, EvidenceStatus::Seen]);
    assert_eq!(done.evidence[0].digest, refs[0]["digest"].as_str().unwrap());
}

#[tokio::test]
async fn nothing_is_fetched_unless_requested() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid()]).await;
    let refs = [web.publish("/a", b"a document")];
    let done = run(&app, verify(contract(), by("s1"), referring(&refs))).await;
    assert_eq!(verdict(&done).status, EvaluationStatus::Passed);
    assert!(done.evidence.is_empty() && web.asked().is_empty());
}

#[tokio::test]
async fn unreachable_evidence_makes_a_verdict_inconclusive_with_its_code() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid(), says_invalid()]).await;
    web.put("/moved", FakeDocument::MovedTo("/a".to_owned()));
    web.put("/broken", FakeDocument::Status(500));
    web.put("/secret", FakeDocument::Status(403));
    web.put("/login", FakeDocument::Status(401));
    web.put("/silent", FakeDocument::Silence);
    for (path, expected, code) in [
        ("/nothing", EvidenceStatus::Unreachable, 200),
        ("/moved", EvidenceStatus::Unreachable, 200),
        ("/broken", EvidenceStatus::Unreachable, 200),
        ("/silent", EvidenceStatus::Timeout, 201),
        ("/secret", EvidenceStatus::Denied, 202),
        ("/login", EvidenceStatus::Denied, 202),
    ] {
        for name in ["s1", "s2"] {
            let mut step = looking(by(name), &[web.reference(path, b"a document")]);
            step.timeout_ms = if expected == EvidenceStatus::Timeout { 300 } else { 10_000 };
            let done = run(&app, step).await;
            assert_eq!(verdict(&done).status, EvaluationStatus::Inconclusive, "{path} {name}");
            assert!(verdict(&done).reason_codes.contains(&code), "{path} {name}");
            assert_eq!(found(&done), [expected], "{path} {name}");
        }
    }
    assert!(!web.asked().contains(&"/a".to_owned()), "a redirect was followed");
}

#[tokio::test]
async fn mismatched_evidence_fails_the_candidate() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid()]).await;
    web.publish("/other", b"A document");
    web.publish("/longer", b"a document and more");
    web.publish("/shorter", b"a doc");
    web.put("/endless", FakeDocument::Endless);
    let mut no_digest = web.publish("/a", b"a document");
    no_digest["digest"] = json!("sha256:placeholder");
    let mut wrong_size = web.publish("/a", b"a document");
    wrong_size["size_bytes"] = json!(11);
    let declared = |path: &str| web.reference(path, b"a document");
    for wrong in [
        declared("/other"),
        declared("/longer"),
        declared("/shorter"),
        declared("/endless"),
        no_digest,
        wrong_size,
    ] {
        for by in [by("s1"), TaskCallTarget::Node] {
            let done = run(&app, looking(by, std::slice::from_ref(&wrong))).await;
            assert_eq!(verdict(&done).status, EvaluationStatus::Failed, "{wrong}");
            assert!(verdict(&done).reason_codes.contains(&203), "{wrong}");
        }
    }
}

#[tokio::test]
async fn oversized_evidence_is_not_fetched() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid()]).await;
    web.put("/endless", FakeDocument::Endless);
    let mut large = web.reference("/endless", b"");
    large["size_bytes"] = json!(6 * 1024 * 1024);
    let done = run(&app, looking(by("s1"), &[large])).await;
    assert_eq!(
        (verdict(&done).status, found(&done)),
        (EvaluationStatus::Inconclusive, vec![EvidenceStatus::Unreachable])
    );
    assert!(web.asked().is_empty());
}

#[tokio::test]
async fn private_addresses_are_denied_unless_the_operator_allows_them() {
    let (app, web) = (TestApp::new().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid()]).await;
    let open = web.publish("/a", b"a document");
    let at = |uri: &str| {
        let mut reference = open.clone();
        reference["uri"] = json!(uri);
        reference
    };
    for denied in [open.clone(), at("https://127.0.0.1/a"), at("https://10.1.2.3/")] {
        let done = run(&app, looking(by("s1"), std::slice::from_ref(&denied))).await;
        assert_eq!(verdict(&done).reason_codes, [202], "{denied}");
        assert_eq!(verdict(&done).status, EvaluationStatus::Inconclusive);
    }
    // An inside name looks like an unknown one.
    for unreachable in [
        at("https://localhost/a"),
        at("artifact://reference/x"),
        at("file:///etc/passwd"),
        at("nothing"),
    ] {
        let done = run(&app, looking(by("s1"), std::slice::from_ref(&unreachable))).await;
        assert_eq!(verdict(&done).reason_codes, [200], "{unreachable}");
    }
    assert!(web.asked().is_empty());
}

#[tokio::test]
async fn a_failed_voter_has_no_verdict_whatever_the_evidence() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([status(500)]).await;
    web.publish("/a", b"other");
    let done = run(&app, looking(by("s1"), &[web.reference("/a", b"a document")])).await;
    let TaskCallOutcome::Failed { code, .. } = done.outcome else { panic!("{done:?}") };
    assert_eq!(code.as_str(), "http_status");
}

#[tokio::test]
async fn the_digest_of_a_verdict_does_not_depend_on_the_evidence() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid()]).await;
    let refs = [web.reference("/a", b"a document")];
    let before = run(&app, looking(by("s1"), &refs)).await;
    web.publish("/a", b"a document");
    let after = run(&app, looking(by("s1"), &refs)).await;
    assert_eq!(verdict(&before).status, EvaluationStatus::Inconclusive);
    assert_eq!(verdict(&after).status, EvaluationStatus::Passed);
    assert_eq!(verdict(&before).result_hash, verdict(&after).result_hash);
}

#[tokio::test]
async fn a_policy_can_ask_for_evidence_in_a_round_without_a_task() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    let refs = [web.publish("/a", b"a document")];
    let body = |refs: &[Value]| {
        json!({
            "claim": { "output": { "answer": "x" }, "evidence_refs": refs },
            "policy": { "policy_id": "vp.schema_only.v1", "policy_params": { "fetch_evidence": true } },
            "consensus": { "replicas": 3, "include": ["traces"] },
        })
    };
    let reply = app.admin().post("/api/v3/validate", &body(&refs)).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
    assert_eq!(web.asked().len(), 1, "the replicas of a round share what was fetched");
    let refs = [web.reference("/nothing", b"another document")];
    let reply = app.admin().post("/api/v3/validate", &body(&refs)).await.json();
    assert_eq!(reply["consensus"]["verdicts"], json!(["RETRY", "RETRY", "RETRY"]), "{reply}");
    assert_eq!(reply["replicas"][0]["reason_codes"], json!([200]));
}

#[tokio::test]
async fn the_evidence_of_an_answer_must_match_if_the_policy_asks() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let there = web.publish("/a", b"a document");
    let gone = web.reference("/nothing", b"another document");
    let other = web.reference("/a", b"A document");
    let said =
        |reference: &Value| answers(json!({ "answer": "x" })).evidence_ref(reference.clone());
    let _fakes = app.executors([said(&there), said(&gone), said(&other)]).await;
    let policy =
        json!({ "policy_id": "vp.schema_only.v1", "policy_params": { "fetch_evidence": true } });
    let body = json!({
        "objective": "x", "policy": policy,
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["consensus"]["verdicts"], json!(["OK", "ERROR", "INVALID_OUTPUT"]), "{reply}");
}

#[tokio::test]
async fn an_executor_that_fetches_evidence_itself_gets_the_references() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let fake = FakeExecutor::start(says_valid()).await;
    app.register("s1", &fake.url()).await;
    let policy = PolicyBinding::new("vp.schema_only.v1", json!({ "fetch_evidence": true }));
    let refs = [web.publish("/a", b"a document")];
    let step = verify(under(&policy), by("s1"), referring(&refs));
    let done = run(&app, step).await;
    assert_eq!(found(&done), [EvidenceStatus::Seen], "the policy asks, not the task");
    let sent = &super::work(&fake)[0].body;
    assert_eq!(sent["candidate"]["evidence_refs"], json!(refs));
    assert_eq!(sent["policy"]["policy_params"], json!({ "fetch_evidence": true }));
}

#[tokio::test]
async fn evidence_is_fetched_once_a_day_for_an_account() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    app.caller("team", &[]).await;
    let _fakes = app.executors([says_valid()]).await;
    let refs = [web.publish("/a", b"a document")];
    let step = || looking(by("s1"), &refs);
    run(&app, step()).await;
    web.put("/a", FakeDocument::Status(404));
    let again = run(&app, step()).await;
    assert_eq!((found(&again), web.asked().len()), (vec![EvidenceStatus::Seen], 1));

    let team = jurat_core::id::AccountId::parse("acct_team").unwrap();
    let caller = app.engine.caller_without_key(&team).await.unwrap();
    let other = app.engine.task_call(&caller, step()).await.unwrap();
    assert_eq!(
        found(&other),
        [EvidenceStatus::Unreachable],
        "another account has to see for itself"
    );

    let mut longer = refs[0].clone();
    longer["size_bytes"] = json!(11);
    let wrong = run(&app, looking(by("s1"), &[longer])).await;
    assert_ne!(found(&wrong), [EvidenceStatus::Seen], "the size is held against what is kept");

    app.clock.advance_ms(24 * 60 * 60 * 1_000);
    let later = run(&app, step()).await;
    assert_eq!(found(&later), [EvidenceStatus::Unreachable]);
}

#[tokio::test]
async fn evidence_is_checked_at_each_address() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let _fakes = app.executors([says_valid()]).await;
    let there = web.publish("/a", b"a document");
    let done = run(&app, looking(by("s1"), std::slice::from_ref(&there))).await;
    assert_eq!((found(&done), done.available.len()), (vec![EvidenceStatus::Seen], 1));
    // The same digest at an address without content.
    let dead = web.reference("/nothing", b"a document");
    let done = run(&app, looking(by("s1"), std::slice::from_ref(&dead))).await;
    assert_eq!(found(&done), [EvidenceStatus::Unreachable]);
    assert_eq!(verdict(&done).status, EvaluationStatus::Inconclusive);
    assert!(done.available.is_empty(), "{:?}", done.available);
    let done = run(&app, looking(by("s1"), &[there, dead])).await;
    assert_eq!(found(&done), [EvidenceStatus::Seen, EvidenceStatus::Unreachable]);
    assert!(done.available.is_empty(), "{:?}", done.available);
}
