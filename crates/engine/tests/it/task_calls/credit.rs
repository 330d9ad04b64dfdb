//! Task calls are paid like rounds: once for an answer, not for a failure, and only by accounts
//! with credit.

use jurat_core::{
    account::{
        caller::Scope,
        ledger::{Balance, Movement, Transfer},
    },
    code::ProblemCode,
    id::AccountId,
};
use jurat_engine::{EngineError, SoleNode, TaskCallOutcome, TaskCallTarget};
use jurat_store::{Behalf, StoreLocation};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, gated, status},
};
use serde_json::json;

use super::{by, contract, propose};

pub(crate) const PRICE: i64 = 250_000;

pub(crate) fn team() -> AccountId {
    AccountId::parse("acct_team").unwrap()
}

/// An account with credit, and a session of `s1` with a price.
pub(crate) async fn priced(app: &TestApp, credit_usd: &str) {
    app.caller("team", &[]).await;
    let credit = json!({ "amount_usd": credit_usd });
    app.admin().post("/v1/accounts/acct_team/grants", &credit).await;
    app.admin().delete("/v1/sessions/s1").await;
    let session = json!({ "id": "dear", "executor": "s1", "price_micros": PRICE });
    let reply = app.admin().post("/v1/sessions", &session).await;
    assert!(reply.status.is_success(), "{}", reply.text());
}

async fn balance(app: &TestApp) -> Balance {
    app.store.accounts().get(&Behalf::Platform, &team()).await.unwrap().unwrap().balance
}

#[tokio::test]
async fn a_session_is_paid_once_for_an_answer_and_not_for_a_failure() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" }))]).await;
    priced(&app, "1.00").await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let done = app.engine.task_call(&caller, propose(contract(), by("s1"))).await.unwrap();
    assert_eq!(done.cost_micros, u64::try_from(PRICE).unwrap());
    let paid = balance(&app).await;
    assert_eq!((paid.spent, paid.held), (PRICE, 0));
    fake.set(status(500));
    let failed = app.engine.task_call(&caller, propose(contract(), by("s1"))).await.unwrap();
    assert!(matches!(failed.outcome, TaskCallOutcome::Failed { .. }));
    assert_eq!(balance(&app).await, paid);
}

/// A call of `s1` in a profile that no session has.
fn unpriced() -> TaskCallTarget {
    TaskCallTarget::Executor { name: "s1".to_owned(), profile: "unheard-of".to_owned() }
}

#[tokio::test]
async fn no_profile_bypasses_the_price_of_a_session() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" })).profiles(&["*"])]).await;
    priced(&app, "1.00").await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let done = app.engine.task_call(&caller, propose(contract(), unpriced())).await.unwrap();
    let TaskCallOutcome::Failed { code, detail } = done.outcome else {
        panic!("it was done for free")
    };
    assert_eq!(code.as_str(), "session_unknown");
    assert!(detail.contains("reached through its sessions only"), "{detail}");
    assert!(super::work(&fake).is_empty());
}

#[tokio::test]
async fn a_metered_account_cannot_reach_an_executor_without_a_price() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" })).profiles(&["*"])]).await;
    priced(&app, "1.00").await;
    app.admin().delete("/v1/sessions/dear").await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let done = app.engine.task_call(&caller, propose(contract(), by("s1"))).await.unwrap();
    let TaskCallOutcome::Failed { detail, .. } = done.outcome else {
        panic!("it was done for free")
    };
    assert!(detail.contains("--price-micros"), "{detail}");
    assert!(super::work(&fake).is_empty());
    // The operator's own account is unmetered.
    let done = super::run(&app, propose(contract(), by("s1"))).await;
    assert!(matches!(done.outcome, TaskCallOutcome::Candidate(_)), "{:?}", done.outcome);
}

#[tokio::test]
async fn a_task_call_without_enough_credit_is_not_started() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" }))]).await;
    priced(&app, "0.10").await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let refused = app.engine.task_call(&caller, propose(contract(), by("s1"))).await;
    assert!(
        matches!(&refused, Err(it) if it.code() == ProblemCode::BudgetExhausted),
        "{refused:?}"
    );
    assert!(super::work(&fake).is_empty());
}

#[tokio::test]
async fn nothing_is_done_for_a_suspended_account() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" }))]).await;
    priced(&app, "1.00").await;
    app.engine.caller_without_key(&team()).await.unwrap();
    app.admin().post("/v1/accounts/acct_team/suspend", &json!({})).await;
    let refused = app.engine.caller_without_key(&team()).await;
    assert!(matches!(refused, Err(it) if it.code() == ProblemCode::AccountSuspended));
    app.admin().post("/v1/accounts/acct_team/resume", &json!({})).await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    app.engine.task_call(&caller, propose(contract(), by("s1"))).await.unwrap();
    assert_eq!(super::work(&fake).len(), 1);
    let nobody = AccountId::parse("acct_nobody").unwrap();
    let refused = app.engine.caller_without_key(&nobody).await;
    assert!(matches!(refused, Err(EngineError::NotFound { .. })));
}

#[tokio::test]
async fn a_task_call_retried_after_its_node_stopped_is_paid_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = StoreLocation::File(folder.path().join("jurat.db"));
    let app = TestApp::with_store(&place).await;
    let [fake] = app.executors([gated(answers(json!({ "answer": "x" })))]).await;
    priced(&app, "1.00").await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let order = propose(contract(), by("s1"));
    let mut step = Box::pin(app.engine.task_call(&caller, order.clone()));
    tokio::select! {
        _ = &mut step => panic!("it ended before it was answered"),
        () = fake.wait_for_calls(1) => {}
    }
    assert_eq!(balance(&app).await.held, PRICE);
    // The store closes under the running call, as if the node were killed.
    app.store.close().await;
    drop(step);

    let app = TestApp::with_store(&place).await;
    app.start(SoleNode::Yes).await;
    assert_eq!((balance(&app).await.held, balance(&app).await.spent), (0, 0));
    fake.release();
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let done = app.engine.task_call(&caller, order).await.unwrap();
    assert!(matches!(done.outcome, TaskCallOutcome::Candidate(_)));
    assert_eq!((balance(&app).await.held, balance(&app).await.spent), (0, PRICE));
    let calls = super::work(&fake);
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].body["execution_id"], calls[1].body["execution_id"]);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_recorded_task_call_is_neither_made_nor_paid_again() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" }))]).await;
    priced(&app, "1.00").await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let order = propose(contract(), by("s1"));
    let first = app.engine.task_call(&caller, order.clone()).await.unwrap();
    let again = app.engine.task_call(&caller, order.clone()).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(super::work(&fake).len(), 1);
    assert_eq!(balance(&app).await.spent, PRICE);

    // A failed call is repeated, until the executor is paused.
    fake.set(status(500));
    let mut other = propose(contract(), by("s1"));
    for tries in 2..6 {
        let failed = app.engine.task_call(&caller, other.clone()).await.unwrap();
        assert!(matches!(failed.outcome, TaskCallOutcome::Failed { .. }));
        assert_eq!(super::work(&fake).len(), tries);
    }
    other.execution_id = order.execution_id;
    assert_eq!(app.engine.task_call(&caller, other).await.unwrap(), first);
}

#[tokio::test]
async fn no_idempotency_key_of_a_caller_makes_a_task_call_free() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(answers(json!({ "answer": "x" })))]).await;
    priced(&app, "1.00").await;
    let caller = app.engine.caller_without_key(&team()).await.unwrap();
    let order = propose(contract(), by("s1"));
    let tenant = app.caller("team", &[Scope::RoundsCreate]).await;
    let step = app.engine.task_call(&caller, order.clone());
    let meanwhile = async {
        fake.wait_for_calls(1).await;
        // The events of a task show the execution, and keys of this form once were the node's own.
        let key = format!("step:{}:2", order.execution_id);
        let headers = [("idempotency-key", key.as_str()), ("prefer", "respond-async")];
        let reply = tenant.post_with("/api/v3/validate", &json!({ "claim": "x" }), &headers).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
        fake.release();
    };
    let (done, ()) = tokio::join!(step, meanwhile);
    let done = done.unwrap();
    assert_eq!(done.cost_micros, u64::try_from(PRICE).unwrap());
    let lines =
        app.store.ledger().transfers(&Behalf::from(&team()), &team(), None, 100).await.unwrap();
    let is_capture = |it: &&Transfer| it.movement == Movement::Capture && it.round == done.round_id;
    let captured: Vec<i64> = lines.iter().filter(is_capture).map(|it| it.micros).collect();
    assert_eq!(captured, [PRICE]);
    assert_eq!(app.store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
    app.engine.shutdown().await;
}
