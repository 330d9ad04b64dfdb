//! A verdict stays hidden until its vote is revealed, on every surface.

use jurat_core::task::{TaskEvent, TaskPhase};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_invalid, says_valid},
};
use serde_json::{Value, json};

use super::{able, contract, ended, events, node, order, submit, wait_until, with_quorum};

/// The round of a vote.
async fn round_of_vote(app: &TestApp, id: &str) -> String {
    let story = events(app, id).await;
    let round = story.into_iter().find_map(|event| {
        let TaskEvent::VoteCommitted { round_id, .. } = event else { return None };
        Some(round_id)
    });
    round.unwrap()
}

async fn listed(app: &TestApp, query: &str, round: &str) -> Option<Value> {
    let page = app.admin().get(&format!("/v1/rounds?kind=validate{query}")).await.json();
    let found = page["items"].as_array().unwrap().iter().find(|it| it["round_id"] == round);
    found.cloned()
}

/// Members that would reveal a verdict.
const TELLING: [&str; 8] = [
    "closed_at",
    "outcome",
    "verdict",
    "agreement",
    "confidence",
    "receipt_id",
    "consensus",
    "replicas",
];

#[tokio::test]
async fn a_verdict_cannot_be_read_from_its_round_before_the_votes_are_revealed() {
    let app = node().await;
    let slow = gated(says_valid().task_types(&["other"]));
    let quick = says_invalid().task_types(&["other"]);
    let [_first, quick, slow] = app.executors([able(), quick, slow]).await;
    let mut task = order(with_quorum(contract(&app, "t1"), 2), &["s1"]);
    task.contract.assignment.verify.max_verifiers = 2;
    task.verifiers = vec!["s2".to_owned(), "s3".to_owned()];
    submit(&app, task).await.unwrap();
    slow.wait_for_calls(1).await;
    wait_until(&app, "t1", |it| it.state.proposals.iter().any(|of| of.votes.contains_key("s2")))
        .await;
    assert_eq!(quick.calls().iter().filter(|it| it.endpoint() == "verify").count(), 1);
    let round = round_of_vote(&app, "t1").await;
    let path = format!("/v1/rounds/{round}");
    let shown = app.admin().get(&path).await.json();
    let line = listed(&app, "", &round).await.unwrap();
    for body in [&shown, &line] {
        assert_eq!(body["state"], "open", "{body}");
        assert_eq!(body["task_id"], "t1", "{body}");
        for member in TELLING {
            assert_eq!(body[member], json!(null), "{member} of {body}");
        }
        assert!(!body.to_string().contains("INVALID"), "{body}");
    }
    // Filters do not reveal it, either.
    for query in ["&state=closed", "&outcome=agreed", "&outcome=abstained", "&outcome=failed"] {
        assert_eq!(listed(&app, query, &round).await, None, "{query}");
    }
    let refused = app.admin().post(&format!("{path}/cancel"), &json!({})).await;
    assert_eq!(refused.status, 409);
    assert!(!refused.text().contains("INVALID"));
    // A pending vote cannot be cancelled, because that would select another voter.
    let page = app.admin().get("/v1/rounds?kind=validate").await.json();
    let votes = page["items"].as_array().unwrap();
    assert_eq!(votes.len(), 2, "{page}");
    for vote in votes {
        let cancel = format!("/v1/rounds/{}/cancel", vote["round_id"].as_str().unwrap());
        let refused = app.admin().post(&cancel, &json!({})).await;
        assert_eq!(refused.status, 409, "{}", refused.text());
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("jurat task cancel t1"), "{detail}");
    }
    let task = app.admin().get("/v1/tasks/t1").await.text();
    assert!(!task.contains("INVALID") && !task.contains("\"failed\""), "{task}");

    slow.release();
    ended(&app, "t1").await;
    let shown = app.admin().get(&path).await.json();
    assert_eq!((&shown["state"], &shown["verdict"]), (&json!("closed"), &json!("INVALID")));
    for member in TELLING {
        assert_ne!(shown[member], json!(null), "{member} of {shown}");
    }
    assert_eq!(listed(&app, "&outcome=agreed", &round).await.unwrap()["verdict"], "INVALID");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn rounds_without_a_secret_are_shown_when_they_end() {
    let app = node().await;
    let slow = gated(says_valid().task_types(&["other"]));
    let [_first, slow] = app.executors([able(), slow]).await;
    let mut task = order(contract(&app, "t1"), &["s1"]);
    task.verifiers = vec!["s2".to_owned()];
    submit(&app, task).await.unwrap();
    slow.wait_for_calls(1).await;
    let page = app.admin().get("/v1/rounds?kind=delegate").await.json();
    let proposal = &page["items"][0];
    assert_eq!((&proposal["state"], &proposal["task_id"]), (&json!("closed"), &json!("t1")));
    slow.release();
    assert_eq!(ended(&app, "t1").await.state.phase, TaskPhase::Finalized);
    app.engine.shutdown().await;
}
