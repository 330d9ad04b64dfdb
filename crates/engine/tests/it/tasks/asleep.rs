//! What falls due while no node runs is done by the next one.

use jurat_core::task::Phase;
use jurat_engine::Alone;
use jurat_store::Location;
use jurat_testkit::{app::TestApp, fake_executor::status};
use serde_json::Value;

use super::{able, asked, contract, ended, events, order, submit, wait_until};

#[tokio::test]
async fn a_contract_that_ended_while_no_node_ran_expires() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("jurat.db"));
    let first = TestApp::with_store(&location).await;
    let [fake] = first.executors([able()]).await;
    submit(&first, order(contract(&first, "t1"), &["s1"])).await.unwrap();
    first.engine.shutdown().await;
    let second = TestApp::with_store(&location).await;
    second.clock.advance_ms(700_000);
    second.start(Alone::Yes).await;
    let record = ended(&second, "t1").await;
    assert_eq!(record.state.phase, Phase::Expired, "{:?}", events(&second, "t1").await);
    assert_eq!(asked(&fake, "execute"), 0);
    second.engine.shutdown().await;
}

#[tokio::test]
async fn a_retry_that_fell_due_while_no_node_ran_is_made_and_says_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("jurat.db"));
    let first = TestApp::with_store(&location).await;
    first.start(Alone::Yes).await;
    let [fake] = first.executors([status(500).task_types(&["swarm"])]).await;
    let mut task = contract(&first, "t1");
    task.assignment.explore.backoff_ms = Some(30_000);
    submit(&first, order(task, &["s1"])).await.unwrap();
    wait_until(&first, "t1", |it| it.state.retry_at.is_some()).await;
    first.engine.shutdown().await;
    fake.set(able());
    let second = TestApp::with_store(&location).await;
    second.clock.advance_ms(60_000);
    second.start(Alone::Yes).await;
    let record = ended(&second, "t1").await;
    assert_eq!(record.state.phase, Phase::Finalized, "{:?}", events(&second, "t1").await);
    let calls = fake.calls();
    let executed = calls.iter().filter(|call| call.endpoint() == "execute");
    let attempts: Vec<&Value> = executed.map(|call| &call.body["attempt_id"]).collect();
    assert_eq!(attempts.first().unwrap(), &"attempt-1");
    assert_eq!(attempts.last().unwrap(), &"attempt-2");
    second.engine.shutdown().await;
}
