//! Inline evidence respects the contract, and references count if they were available to the
//! voters.

use std::collections::BTreeSet;

use jurat_core::task::{LeaseRelease, TaskEvent, TaskPhase};
use jurat_engine::{JudgesConfig, SoleNode};
use jurat_testkit::{
    app::TestApp,
    fake_documents::FakeDocuments,
    fake_executor::{Behaviour, says_inconclusive, says_valid},
};
use serde_json::Value;

use super::{able, contract, ended, events, order, submit, with_quorum};

/// A node that may fetch from this machine.
async fn with_loopback() -> TestApp {
    let media_allow = vec!["127.0.0.0/8".parse().unwrap()];
    let app = TestApp::with_judges(JudgesConfig { media_allow, ..JudgesConfig::default() }).await;
    app.start(SoleNode::Yes).await;
    app
}

fn referring(refs: &[&Value]) -> Behaviour {
    refs.iter().fold(able(), |behaviour, it| behaviour.evidence_ref((*it).clone()))
}

fn digest(reference: &Value) -> String {
    reference["digest"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_available_reference_counts_and_a_missing_one_does_not() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let (there, gone) = (web.publish("/a", b"a document"), web.reference("/b", b"another"));
    let valid = || says_valid().task_types(&["other"]);
    let _fakes = app.executors([referring(&[&there, &gone]), valid(), valid()]).await;
    let mut task = order(with_quorum(contract(&app, "t1"), 2), &["s1"]);
    task.verifiers = vec!["s2".to_owned(), "s3".to_owned()];
    task.contract.acceptance.da_quorum_threshold = Some(2);
    task.contract.assignment.verify.max_repeats = Some(0);
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Failed);
    let available = &record.state.proposals[0].available;
    let both = BTreeSet::from(["s2".to_owned(), "s3".to_owned()]);
    assert_eq!(available.get(&digest(&there)), Some(&both), "{available:?}");
    assert_eq!(available.get(&digest(&gone)), None);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_voter_that_missed_evidence_confirms_none_until_the_reveal() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let there = web.publish("/a", b"a document");
    let misses = says_inconclusive().reason_codes(&[200]).task_types(&["other"]);
    let valid = || says_valid().task_types(&["other"]);
    let _fakes = app.executors([referring(&[&there]), misses, valid(), valid()]).await;
    let mut task = order(with_quorum(contract(&app, "t1"), 2), &["s1"]);
    task.verifiers = ["s2", "s3", "s4"].map(str::to_owned).to_vec();
    task.contract.acceptance.da_quorum_threshold = Some(2);
    task.contract.assignment.verify.max_verifiers = 3;
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    let story = events(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{story:?}");
    let seen = &record.state.proposals[0].available[&digest(&there)];
    assert_eq!(*seen, BTreeSet::from(["s3".to_owned(), "s4".to_owned()]));
    // The availability hints at a verdict, so it is as secret.
    let is_reveal = |it: &TaskEvent| matches!(it, TaskEvent::RevealOpened { .. });
    let is_seen = |it: &TaskEvent| matches!(it, TaskEvent::EvidenceSeen { .. });
    let opened = story.iter().position(is_reveal).unwrap();
    assert!(opened < story.iter().position(is_seen).unwrap(), "{story:?}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_references_of_all_proposers_are_fetched() {
    let (app, web) = (with_loopback().await, FakeDocuments::start().await);
    let (one, other) = (web.publish("/a", b"a document"), web.publish("/b", b"another"));
    let valid = says_valid().task_types(&["other"]);
    let _fakes = app.executors([referring(&[&one]), referring(&[&other]), valid]).await;
    let mut task = order(with_quorum(contract(&app, "t1"), 1), &["s1", "s2"]);
    task.verifiers = vec!["s3".to_owned()];
    task.contract.acceptance.da_quorum_threshold = Some(1);
    task.contract.assignment.explore.max_proposers = 2;
    task.contract.assignment.explore.topk = 2;
    task.contract.assignment.explore.stop.no_new_evidence_rounds = 2;
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let [proposal] = &record.state.proposals[..] else { panic!("{:?}", record.state.proposals) };
    let s3 = BTreeSet::from(["s3".to_owned()]);
    assert_eq!(proposal.proposers.len(), 2);
    assert_eq!(proposal.available.get(&digest(&one)), Some(&s3), "{proposal:?}");
    assert_eq!(proposal.available.get(&digest(&other)), Some(&s3), "{proposal:?}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_oversized_snippet_is_a_failure_of_its_executor() {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    let long = || able().evidence("text/plain", "short").evidence("text/plain", &"x".repeat(101));
    let _fakes = app.executors([long(), able().evidence("text/plain", &"x".repeat(100))]).await;
    let limited = |id: &str| {
        let mut contract = contract(&app, id);
        contract.evidence_policy.max_snippet_bytes = 100;
        contract.assignment.explore.max_retries = Some(0);
        contract
    };
    submit(&app, order(limited("t1"), &["s1"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Failed);
    assert_eq!(record.reason.as_deref(), Some("no executor proposed a candidate"));
    let told = "`evidence_inline.1` must have at most 100 bytes (`evidence_policy.max_snippet_bytes`), and has 101; refer to longer evidence instead";
    let story = events(&app, "t1").await;
    let is_told = |it: &TaskEvent| {
        matches!(it, TaskEvent::Released { reason: LeaseRelease::Failed { code, detail }, .. }
            if code == "invalid_output" && detail == told)
    };
    assert!(story.iter().any(is_told), "{story:?}");
    // Tokens are another limit on the same snippet, and another executor is asked instead.
    let mut task = order(limited("t2"), &["s1", "s2"]);
    task.contract.evidence_policy.max_snippet_bytes = 8_192;
    task.contract.evidence_policy.max_snippet_tokens = 25;
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t2").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized);
    assert_eq!(record.state.proposals[0].proposers, BTreeSet::from(["s2".to_owned()]));
    app.engine.shutdown().await;
}
