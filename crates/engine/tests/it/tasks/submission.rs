//! Which submissions are the same task, and which executors count when a task is accepted.

use std::sync::Arc;

use jurat_core::task::TaskAddition;
use jurat_engine::{EngineError, Failpoints, IdempotentOutcome};
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{FakeHealth, says_valid},
};
use jurat_wire::executor::TaskSubmission;
use serde_json::json;

use super::{able, contract, faults::Meeting, order, submit, under, with_quorum};

const OWN: &str = "their.own.policy";

fn verified_by(mut order: TaskSubmission, verifiers: &[&str]) -> TaskSubmission {
    order.verifiers = verifiers.iter().map(|it| (*it).to_owned()).collect();
    order
}

async fn refused(app: &TestApp, order: TaskSubmission) -> (String, String) {
    let error = submit(app, order).await.unwrap_err();
    assert_eq!(error.code().as_str(), "validation_error");
    (error.field().unwrap_or_default(), error.to_string())
}

#[tokio::test]
async fn the_same_contract_is_the_same_task_after_its_end_too() {
    let app = TestApp::new().await;
    let [fake] = app.executors([able()]).await;
    let task = || order(contract(&app, "t1"), &["s1"]);
    let first = task();
    submit(&app, first.clone()).await.unwrap();
    app.clock.advance_ms(700_000);
    // Its executor does not have to exist any more, either.
    fake.stop().await;
    assert!(!submit(&app, first.clone()).await.unwrap().is_new);
    let mut late = first;
    late.contract.task_id = "t2".to_owned();
    assert_eq!(refused(&app, late).await.0, "expiry_ms");
    app.store.close().await;
}

#[tokio::test]
async fn the_same_contract_with_another_roster_is_a_conflict() {
    let app = TestApp::new().await;
    let _fakes = app.executors([able(), able()]).await;
    let task = |executors: &[&str]| order(contract(&app, "t1"), executors);
    submit(&app, task(&["s1", "s2"])).await.unwrap();
    // Absent members match, and the order of names does not matter.
    for same in [task(&[]), task(&["s2", "s1"])] {
        assert!(!submit(&app, same).await.unwrap().is_new);
    }
    let other_profile = TaskSubmission { profile: Some("other".to_owned()), ..task(&[]) };
    let others = [
        (task(&["s1"]), "executors"),
        (verified_by(task(&["s1", "s2"]), &["s2"]), "verifiers"),
        (other_profile, "profile"),
    ];
    for (other, member) in others {
        let error = submit(&app, other).await.unwrap_err();
        assert!(matches!(error, EngineError::Conflict(_)), "{error}");
        assert!(error.to_string().contains(&format!("other `{member}`")), "{error}");
    }
    app.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_concurrent_rosters_one_is_a_conflict() {
    // Both have checked that the task does not exist before one of them writes it.
    let meeting = Meeting::default();
    let app = TestApp::with_points(Failpoints::new(Arc::new(move |name| {
        assert!(name != "task_submit_before" || meeting.meets(), "only one came so far");
    })))
    .await;
    let _fakes = app.executors([able(), able()]).await;
    let task = |executors: &[&str]| order(contract(&app, "t1"), executors);
    let (one, two) = tokio::join!(spawned(&app, task(&["s1"])), spawned(&app, task(&["s2"])),);
    let (taken, refused) = if one.is_ok() { (one, two) } else { (two, one) };
    assert!(taken.unwrap().is_new);
    let error = refused.unwrap_err();
    assert!(matches!(error, EngineError::Conflict(_)), "{error}");
    assert!(error.to_string().contains("other `executors`"), "{error}");
    app.store.close().await;
}

/// Submits on a thread of its own.
#[expect(clippy::disallowed_methods, reason = "two that wait for each other need two threads")]
async fn spawned(app: &TestApp, order: TaskSubmission) -> Result<TaskAddition, EngineError> {
    let engine = app.engine.clone();
    let submitting = tokio::spawn(async move {
        match engine.task_submit(&admin_caller(), order, None).await? {
            IdempotentOutcome::Now(submitted) => Ok(submitted),
            IdempotentOutcome::Before(_) => Err(EngineError::Bug("no key was given")),
        }
    });
    submitting.await.unwrap()
}

#[tokio::test]
async fn an_executor_that_is_down_is_reported_by_its_field() {
    let app = TestApp::new().await;
    let down = || able().health(FakeHealth::Status(503));
    let _fakes = app.executors([able(), down(), down(), able()]).await;
    let (field, detail) = refused(&app, order(contract(&app, "t1"), &["s2", "s3"])).await;
    assert_eq!(field, "executors", "{detail}");
    assert!(detail.contains("`s2` is unhealthy"), "{detail}");
    // Named voters vote alone, and some of them may recover later.
    let task = || order(contract(&app, "t1"), &["s1"]);
    let (field, detail) = refused(&app, verified_by(task(), &["s2", "s3"])).await;
    assert_eq!(field, "verifiers", "{detail}");
    assert!(detail.contains("`s2` is unhealthy"), "{detail}");
    submit(&app, verified_by(task(), &["s2", "s4"])).await.unwrap();
    // Whether they know the policy is unknown.
    let mut task = contract(&app, "t2");
    under(&mut task, OWN, json!({}));
    let (field, detail) = refused(&app, verified_by(order(task, &["s1"]), &["s2"])).await;
    assert_eq!(field, "verifiers", "{detail}");
    assert!(detail.contains("`s2` is unhealthy"), "{detail}");
    app.store.close().await;
}

#[tokio::test]
async fn voters_that_can_never_vote_do_not_count_for_the_quorum() {
    let app = TestApp::new().await;
    let knows = || says_valid().policies(&[OWN]);
    let elsewhere = says_valid().profiles(&["elsewhere"]);
    let _fakes = app.executors([able(), knows(), says_valid(), knows(), elsewhere]).await;
    let under_own = |id: &str| {
        let mut task = with_quorum(contract(&app, id), 2);
        under(&mut task, OWN, json!({}));
        order(task, &["s1"])
    };
    let quorum = "acceptance.quorum_threshold";
    let (field, detail) = refused(&app, verified_by(under_own("t1"), &["s2", "s3"])).await;
    assert_eq!(field, quorum, "{detail}");
    submit(&app, verified_by(under_own("t1"), &["s2", "s4"])).await.unwrap();
    let task = || order(contract(&app, "t2"), &["s1"]);
    let (field, detail) = refused(&app, verified_by(task(), &["s5"])).await;
    assert_eq!(field, quorum, "{detail}");
    assert!(detail.contains("only 0 of the task's voters"), "{detail}");
    submit(&app, verified_by(task(), &["s3"])).await.unwrap();
    app.store.close().await;
}
