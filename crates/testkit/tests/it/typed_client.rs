//! The typed client speaks to the whole application as the command line does.

use jurat_client::{executors, rounds, sessions};
use jurat_core::code::ProblemCode;
use jurat_testkit::{app::TestApp, fake_executor::Behaviour};
use jurat_wire::api::{
    consensus_reply::RoundReply,
    consensus_request::{RoundFieldsDraft, ValidateDraft},
    events::FINAL,
    kit::terms::ConsensusTermsDraft,
};
use serde_json::json;

#[tokio::test]
async fn replies_are_read_and_keep_their_bytes() {
    let app = TestApp::new().await;
    let _fakes = app.executors([Behaviour::default(), Behaviour::default()]).await;
    let client = app.admin().client();
    let page = client.send(sessions::list().page(Some(1), None)).await.unwrap();
    assert_eq!((page.value.items.len(), page.value.next_cursor.is_some()), (1, true));
    assert_eq!(page.document(), json!(page.value));
    let session = client.send(sessions::show("s2")).await.unwrap().value;
    assert_eq!(session.executor, "s2");
    let executor = client.send(executors::show("s1")).await.unwrap().value;
    assert!(executor.probe.is_some_and(|probe| probe.ok));
    let removed = client.send(sessions::remove("s2")).await.unwrap().value;
    assert_eq!(removed.removed, "s2");
}

#[tokio::test]
async fn events_come_before_the_reply() {
    let app = TestApp::new().await;
    let _fakes = app.executors([Behaviour::default()]).await;
    let client = app.admin().client();
    let consensus = ConsensusTermsDraft { replicas: Some(1), ..ConsensusTermsDraft::default() };
    let call = rounds::validate(&ValidateDraft {
        claim: json!("2 + 2 = 4"),
        round: RoundFieldsDraft { consensus: Some(consensus), session_id: None },
        ..ValidateDraft::default()
    });
    let mut names = Vec::new();
    let reply = client.watch(call, FINAL, |event| names.push(event.name.clone())).await.unwrap();
    let RoundReply::Verdict(verdict) = reply.value else { panic!("{:?}", reply.value) };
    assert!(verdict.verdict.is_some());
    assert_eq!(names.first().map(String::as_str), Some("replica_started"));
    let round = client.send(rounds::show(&verdict.round_id, None)).await.unwrap().value;
    assert_eq!(round.receipt_id, Some(verdict.receipt_id));
}

#[tokio::test]
async fn a_refusal_is_an_error_with_a_code() {
    let app = TestApp::new().await;
    let missing = app.admin().client().send(sessions::show("missing")).await.unwrap_err();
    assert_eq!(missing.refusal().unwrap().code(), Some(ProblemCode::NotFound));
    let unknown = app.anonymous().client().send(sessions::list()).await.unwrap_err();
    assert_eq!(unknown.refusal().unwrap().code(), Some(ProblemCode::AuthRequired));
}
