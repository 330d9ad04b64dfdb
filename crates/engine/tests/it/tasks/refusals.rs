//! Submissions that are refused, with the field.

use jurat_core::id::AccountId;
use jurat_engine::EngineError;
use jurat_testkit::app::TestApp;
use jurat_wire::executor::TaskSubmission;
use serde_json::json;

use super::{able, contract, order, submit, under, with_quorum};

async fn refused(app: &TestApp, order: TaskSubmission) -> (String, String) {
    let error = submit(app, order).await.unwrap_err();
    (error.field().unwrap_or_default(), error.to_string())
}

#[tokio::test]
async fn a_task_that_cannot_succeed_is_refused_with_its_field() {
    let app = TestApp::new().await;
    let _fakes = app.executors([able()]).await;
    let policy = "acceptance.verifier_policy";
    let change = |change: &dyn Fn(&mut TaskSubmission)| {
        let mut changed = order(contract(&app, "t1"), &["s1"]);
        change(&mut changed);
        changed
    };
    let cases = [
        (change(&|it| it.contract.expiry_ms = 1), "expiry_ms".to_owned()),
        (change(&|it| it.contract.budget.max_steps = 1), "budget.max_steps".to_owned()),
        (change(&|it| it.contract.budget.cost_units = 5), "budget.cost_units".to_owned()),
        (change(&|it| it.contract.task_type = "unheard-of".to_owned()), "task_type".to_owned()),
        (change(&|it| it.profile = Some("unheard-of".to_owned())), "profile".to_owned()),
        (change(&|it| it.executors = vec!["nobody".to_owned()]), "executors".to_owned()),
        (change(&|it| it.verifiers = vec!["nobody".to_owned()]), "verifiers".to_owned()),
        (
            change(&|it| it.contract.output_schema = json!({ "type": "no such type" })),
            "output_schema".to_owned(),
        ),
        (
            change(&|it| {
                it.contract.acceptance.verifier_policy.policy_id = "vp.unknown".to_owned();
            }),
            format!("{policy}.policy_id"),
        ),
        (
            change(&|it| {
                it.contract.acceptance.verifier_policy.policy_hash = format!("sha256:{:064}", 7);
            }),
            format!("{policy}.policy_hash"),
        ),
        (
            change(&|it| {
                let params = json!({ "verifier": "system:unheard-of" });
                under(&mut it.contract, "vp.semantic.v1", params);
            }),
            format!("{policy}.policy_params.verifier"),
        ),
        (
            change(&|it| it.contract = with_quorum(it.contract.clone(), 3)),
            "acceptance.quorum_threshold".to_owned(),
        ),
    ];
    for (order, field) in cases {
        let (found, detail) = refused(&app, order).await;
        assert_eq!(found, field, "{detail}");
        assert!(!detail.contains('['), "{detail}");
    }
    app.store.close().await;
}

#[tokio::test]
async fn no_task_of_a_metered_account_bypasses_a_price() {
    let app = TestApp::new().await;
    let _fakes = app.executors([able().profiles(&["*"])]).await;
    app.caller("team", &[]).await;
    let team = AccountId::parse("acct_team").unwrap();
    let caller = app.engine.caller_without_key(&team).await.unwrap();
    let profile = "unheard-of".to_owned();
    for executors in [vec!["s1"], Vec::new()] {
        let order = TaskSubmission {
            profile: Some(profile.clone()),
            ..order(contract(&app, "t1"), &executors)
        };
        let error = app.engine.task_submit(&caller, order, None).await.unwrap_err();
        assert_eq!(error.field().as_deref(), Some("profile"), "{error}");
        assert!(error.to_string().contains("use `default`"), "{error}");
    }
    app.admin().delete("/v1/sessions/s1").await;
    let unpriced = order(contract(&app, "t1"), &["s1"]);
    let error = app.engine.task_submit(&caller, unpriced.clone(), None).await.unwrap_err();
    assert_eq!(error.field().as_deref(), Some("executors"), "{error}");
    assert!(error.to_string().contains("--price-micros"), "{error}");
    // The operator's own account is unmetered.
    submit(&app, unpriced).await.unwrap();
    app.store.close().await;
}

#[tokio::test]
async fn another_contract_under_the_same_name_is_a_conflict() {
    let app = TestApp::new().await;
    let _fakes = app.executors([able()]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    let mut other = contract(&app, "t1");
    other.inputs = json!({ "prompt": "something else" });
    let error = submit(&app, order(other, &["s1"])).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict(_)), "{error}");
    app.store.close().await;
}

#[tokio::test]
async fn a_task_without_executors_is_refused() {
    let app = TestApp::new().await;
    assert_eq!(refused(&app, order(contract(&app, "t1"), &[])).await.0, "executors");
    app.store.close().await;
}
