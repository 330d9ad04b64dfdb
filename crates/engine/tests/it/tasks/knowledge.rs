//! Knowledge: when an earlier decision counts as a proposal, and what it is worth.

use jurat_core::task::{TaskComplaint, TaskPhase, TaskRecord};
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{
        Behaviour, FakeExecutor, answers, disconnects_before_headers, gated, says_valid,
    },
};
use jurat_wire::executor::TaskContract;
use serde_json::{Value, json};

use super::{able, asked, contract, ended, events, node, order, submit, under, wait_until};

fn says(answer: &str) -> Behaviour {
    answers(json!({ "answer": answer })).task_types(&["swarm"])
}

/// Runs a task to its end on these executors.
async fn decided(app: &TestApp, contract: TaskContract, executors: &[&str]) -> TaskRecord {
    let id = contract.task_id.clone();
    submit(app, order(contract, executors)).await.unwrap();
    let record = ended(app, &id).await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(app, &id).await);
    record
}

fn source(record: &TaskRecord) -> Option<&str> {
    record.state.proposals[0].source.as_deref()
}

/// The earlier decisions in the latest request to propose.
fn told(fake: &FakeExecutor) -> Value {
    let calls = fake.calls();
    let last = calls.iter().rev().find(|call| call.endpoint() == "execute").unwrap();
    last.body["seed_bundle"]["hits"].clone()
}

async fn complain(app: &TestApp, id: &str) {
    let feedback = TaskComplaint {
        epoch: None,
        reason: "it is wrong".to_owned(),
        timestamp: None,
        signature: None,
    };
    app.engine.task_complain(&admin_caller(), id, feedback, None).await.unwrap();
}

#[tokio::test]
async fn an_executor_without_a_share_in_the_decision_proposes_itself() {
    let app = node().await;
    let [alpha, beta] = app.executors([says("alpha's"), says("beta's")]).await;
    decided(&app, contract(&app, "t1"), &["s1"]).await;
    let record = decided(&app, contract(&app, "t2"), &["s2"]).await;
    assert_eq!(source(&record), None);
    let decision = app.engine.task_decision(&admin_caller(), "t2").await.unwrap();
    assert_eq!(decision.executor.as_deref(), Some("s2"));
    assert_eq!(decision.candidate.unwrap().output["answer"], "beta's");
    // It receives the decisions of others.
    let hit = &told(&beta)[0];
    assert_eq!(hit["hit_type"], "Exact");
    assert_eq!(hit["reuse_payload"]["answer"], "alpha's");
    // A decision is reused for its own proposer, even if others decided since.
    let record = decided(&app, contract(&app, "t3"), &["s1"]).await;
    assert_eq!(source(&record), Some("knowledge:t1#1"));
    assert_eq!((asked(&alpha, "execute"), asked(&beta, "execute")), (1, 1));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_decision_under_another_profile_is_not_reused() {
    let app = node().await;
    let [fake] = app.executors([able().profiles(&["default", "careful"])]).await;
    let session = json!({ "id": "careful", "executor": "s1", "profile": "careful" });
    app.admin().post("/v1/sessions", &session).await;
    decided(&app, contract(&app, "t1"), &["s1"]).await;
    for (id, from) in [("t2", None), ("t3", Some("knowledge:t2#1"))] {
        let mut careful = order(contract(&app, id), &["s1"]);
        careful.profile = Some("careful".to_owned());
        submit(&app, careful).await.unwrap();
        let record = ended(&app, id).await;
        assert_eq!(source(&record), from, "{:?}", events(&app, id).await);
    }
    assert_eq!(asked(&fake, "execute"), 2);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn all_proposers_of_a_decision_count_even_if_its_task_continued() {
    let app = node().await;
    let verifier = || says_valid().task_types(&["other"]);
    let [first, second, third] = app.executors([says("42"), says("42"), verifier()]).await;
    let mut both = contract(&app, "t1");
    both.task_mode = "CONTINUOUS".to_owned();
    both.budget.mode = "EPOCH_RENEW".to_owned();
    both.assignment.explore.max_proposers = 2;
    submit(&app, order(both, &["s1", "s2", "s3"])).await.unwrap();
    let record = wait_until(&app, "t1", |it| it.state.phase == TaskPhase::Finalized).await;
    assert_eq!(record.state.proposals[0].proposers.len(), 2);
    // The task continues, and nothing is proposed in its next epoch so far.
    for fake in [&first, &second] {
        fake.set(gated(says("42")));
    }
    app.engine.task_next_epoch(&admin_caller(), "t1", None).await.unwrap();
    let record = decided(&app, contract(&app, "t2"), &["s1", "s2", "s3"]).await;
    assert_eq!(source(&record), Some("knowledge:t1#1"));
    let proposal = &record.state.proposals[0];
    assert_eq!(proposal.proposers.iter().collect::<Vec<_>>(), ["s1", "s2"]);
    assert_eq!(proposal.votes.keys().collect::<Vec<_>>(), ["s3"]);
    assert_eq!(asked(&third, "verify"), 2);
    // One of the two alone did not decide it.
    first.release();
    second.release();
    let record = decided(&app, contract(&app, "t3"), &["s2", "s3"]).await;
    assert_eq!(source(&record), None);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_complaint_applies_to_every_equal_decision() {
    let app = node().await;
    let [fake] = app.executors([able()]).await;
    decided(&app, contract(&app, "t1"), &["s1"]).await;
    for id in ["t2", "t3"] {
        let record = decided(&app, contract(&app, id), &["s1"]).await;
        assert_eq!(source(&record), Some("knowledge:t1#1"));
    }
    complain(&app, "t1").await;
    let record = decided(&app, contract(&app, "t4"), &["s1"]).await;
    assert_eq!(source(&record), None);
    assert_eq!(asked(&fake, "execute"), 2);
    assert_eq!(told(&fake), Value::Null);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn oversized_decisions_do_not_hide_smaller_ones() {
    let app = node().await;
    let large = says(&"long ".repeat(8_000));
    let [_large, small] = app.executors([large, says("42")]).await;
    let about = |id: &str, what: &str| {
        let mut task = contract(&app, id);
        task.inputs = json!({ "prompt": format!("the risks of the plan {what}") });
        task
    };
    decided(&app, about("small", "long ago"), &["s2"]).await;
    for number in 0..5 {
        let id = format!("large-{number}");
        decided(&app, about(&id, &format!("now {number}")), &["s1"]).await;
    }
    decided(&app, about("last", "now"), &["s2"]).await;
    let hits = told(&small);
    assert_eq!(hits.as_array().map(Vec::len), Some(1), "{hits}");
    assert_eq!(hits[0]["decision_ref"]["task_id"], "small");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn earlier_decisions_are_compared_if_the_policy_asks() {
    let app = node().await;
    // No voter is healthy, so the node compares.
    let dying = disconnects_before_headers().task_types(&["other"]);
    let _fakes = app.executors([says("42"), says("42"), dying, says("42"), says("41")]).await;
    let comparing = |id: &str, params: Value| {
        let mut task = contract(&app, id);
        under(&mut task, "vp.crosscheck.v1", params);
        task.assignment.verify.max_repeats = Some(0);
        task
    };
    let prior = || json!({ "prior_decisions": true });
    let mut first = comparing("t1", prior());
    first.assignment.explore.max_proposers = 2;
    decided(&app, first, &["s1", "s2", "s3"]).await;

    // A single answer is confirmed or contradicted by what two decided.
    let record = decided(&app, comparing("t2", prior()), &["s4"]).await;
    assert_eq!(source(&record), None);
    submit(&app, order(comparing("t3", prior()), &["s5"])).await.unwrap();
    let record = ended(&app, "t3").await;
    assert_eq!(record.reason.as_deref(), Some("the voters rejected every candidate"));
    submit(&app, order(comparing("t4", json!({})), &["s4"])).await.unwrap();
    let record = ended(&app, "t4").await;
    assert_eq!(record.reason.as_deref(), Some("the voters reached no decision"));

    // A disputed decision no longer counts.
    complain(&app, "t1").await;
    submit(&app, order(comparing("t5", prior()), &["s5"])).await.unwrap();
    let record = ended(&app, "t5").await;
    assert_eq!(record.reason.as_deref(), Some("the voters reached no decision"));
    app.engine.shutdown().await;
}
