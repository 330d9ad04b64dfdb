//! Who decides, on what basis, and with which confidence.

use jurat_core::task::{TaskEvent, TaskPhase};
use jurat_testkit::{
    app::admin_caller,
    fake_executor::{disconnects_before_headers, says_invalid, says_valid},
};
use jurat_wire::executor::TaskContract;
use serde_json::{Value, json};

use super::{able, asked, contract, ended, events, node, order, submit, under, with_quorum};

#[tokio::test]
async fn the_node_votes_when_the_only_other_executor_dies() {
    let app = node().await;
    let dying = disconnects_before_headers().task_types(&["swarm"]);
    let [_first, dying] = app.executors([able(), dying]).await;
    submit(&app, order(contract(&app, "t1"), &["s1", "s2"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    // Healthy executors are asked before the node.
    assert_eq!(asked(&dying, "verify"), 1);
    let voters: Vec<&String> = record.state.proposals[0].votes.keys().collect();
    assert_eq!(voters, ["builtin:policies"]);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_node_leaves_the_votes_to_healthy_executors() {
    let app = node().await;
    let fakes = app.executors([able(), able(), able()]).await;
    let task = with_quorum(contract(&app, "t1"), 2);
    submit(&app, order(task, &["s1", "s2", "s3"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let voters: Vec<&String> = record.state.proposals[0].votes.keys().collect();
    assert_eq!(voters, ["s2", "s3"]);
    assert_eq!(fakes.iter().map(|it| asked(it, "verify")).sum::<usize>(), 2);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn named_voters_vote_alone_even_if_they_fail() {
    let app = node().await;
    let dying = disconnects_before_headers().task_types(&["other"]);
    let _fakes = app.executors([able(), dying]).await;
    let mut task = order(contract(&app, "t1"), &["s1"]);
    task.verifiers = vec!["s2".to_owned()];
    task.contract.assignment.verify.max_repeats = Some(0);
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.reason.as_deref(), Some("the voters reached no decision"));
    let story = events(&app, "t1").await;
    let is_by_node = |it: &TaskEvent| matches!(it, TaskEvent::Claimed { claim, .. } if claim.holder.starts_with("builtin"));
    assert!(!story.iter().any(is_by_node), "{story:?}");
    app.engine.shutdown().await;
}

/// A contract that compares the answers of executors.
fn comparing(mut contract: TaskContract, proposers: u32) -> TaskContract {
    under(&mut contract, "vp.crosscheck.v1", json!({}));
    contract.assignment.explore.max_proposers = proposers;
    contract
}

fn says(answer: &str) -> jurat_testkit::fake_executor::Behaviour {
    jurat_testkit::fake_executor::answers(json!({ "answer": answer })).task_types(&["swarm"])
}

#[tokio::test]
async fn two_equal_answers_confirm_each_other() {
    let app = node().await;
    // The third dies, so the node compares.
    let dying = disconnects_before_headers().task_types(&["other"]);
    let _fakes = app.executors([says("42"), says("42"), dying]).await;
    let task = comparing(contract(&app, "t1"), 2);
    submit(&app, order(task, &["s1", "s2", "s3"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    assert_eq!(record.state.proposals[0].proposers.len(), 2);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_majority_holds_against_one_contradicting_answer() {
    let app = node().await;
    let dying = disconnects_before_headers().task_types(&["other"]);
    let _fakes = app.executors([says("41"), says("42"), says("42"), says("42"), dying]).await;
    let task = comparing(contract(&app, "t1"), 4);
    submit(&app, order(task, &["s1", "s2", "s3", "s4", "s5"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let decision = app.engine.task_decision(&admin_caller(), "t1").await.unwrap();
    assert_eq!(decision.candidate.unwrap().output["answer"], "42");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn one_liar_among_three_has_no_veto() {
    let app = node().await;
    let fakes = app.executors([says("42"), says("41"), says("42")]).await;
    let task = comparing(contract(&app, "t1"), 3);
    submit(&app, order(task, &["s1", "s2", "s3"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let decision = app.engine.task_decision(&admin_caller(), "t1").await.unwrap();
    assert_eq!(decision.candidate.unwrap().output["answer"], "42");
    // As many propose as the contract allows, although that leaves the vote to the node.
    for fake in &fakes {
        assert_eq!(asked(fake, "execute"), 1);
    }
    app.engine.shutdown().await;
}

#[tokio::test]
async fn neither_two_contradicting_answers_nor_one_alone_decide() {
    let app = node().await;
    let dying = || disconnects_before_headers().task_types(&["other"]);
    let _fakes = app.executors([says("41"), says("42"), dying()]).await;
    let mut task = comparing(contract(&app, "t1"), 2);
    task.assignment.verify.max_repeats = Some(0);
    submit(&app, order(task, &["s1", "s2", "s3"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.reason.as_deref(), Some("the voters reached no decision"));
    let mut alone = comparing(contract(&app, "t2"), 1);
    alone.assignment.verify.max_repeats = Some(0);
    submit(&app, order(alone, &["s1", "s3"])).await.unwrap();
    let record = ended(&app, "t2").await;
    assert_eq!(record.reason.as_deref(), Some("the voters reached no decision"));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_decision_has_the_confidence_of_a_round_with_the_same_verdicts() {
    let app = node().await;
    let valid = || says_valid().task_types(&["other"]);
    let invalid = says_invalid().task_types(&["other"]);
    let _fakes = app.executors([able(), valid(), invalid, valid()]).await;
    let mut task = order(with_quorum(contract(&app, "t1"), 2), &["s1"]);
    task.contract.assignment.verify.max_verifiers = 3;
    task.verifiers = ["s2", "s3", "s4"].map(str::to_owned).to_vec();
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let decision = app.admin().get("/v1/tasks/t1/decision").await.json();
    let voters: Vec<&str> =
        decision["votes"].as_array().unwrap().iter().filter_map(voter).collect();
    let body = json!({
        "claim": "x",
        "consensus": { "replicas": voters.len(), "session_pool": voters },
    });
    let round = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(decision["confidence"], round["consensus"]["confidence"], "{decision} {round}");
    assert_eq!((&decision["approvals"], &decision["rejections"]), (&json!(2), &json!(1)));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_decision_of_the_node_alone_has_the_basis_form() {
    let app = node().await;
    let _fakes = app.executors([able(), says_valid().task_types(&["other"])]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let decision = app.admin().get("/v1/tasks/t1/decision").await.json();
    assert_eq!(decision["votes"][0]["voter"], "builtin:policies", "{decision}");
    assert_eq!((&decision["basis"], &decision["confidence"]), (&json!("form"), &json!(0.7)));
    let mut other = order(contract(&app, "t2"), &["s1"]);
    other.contract.inputs = json!({ "prompt": "another" });
    other.verifiers = vec!["s2".to_owned()];
    submit(&app, other).await.unwrap();
    ended(&app, "t2").await;
    let decision = app.admin().get("/v1/tasks/t2/decision").await.json();
    assert_eq!((&decision["basis"], &decision["confidence"]), (&json!("executors"), &json!(0.75)));
    app.engine.shutdown().await;
}

fn voter(vote: &Value) -> Option<&str> {
    vote["voter"].as_str()
}
