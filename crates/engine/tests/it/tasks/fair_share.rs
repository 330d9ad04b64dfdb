//! One account with very many tasks does not delay the others.

use http::StatusCode;
use jurat_core::{account::caller::Scope, task::TaskPhase};
use jurat_engine::{EngineLimits, SoleNode};
use jurat_testkit::{app::TestApp, fake_executor::gated};
use serde_json::json;

use super::{able, asked, contract, ended, order, submit};

const FLOOD: usize = 30;

#[tokio::test]
async fn a_flood_of_one_account_leaves_a_permit_for_others() {
    let limits = EngineLimits { tasks: 8, ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let [slow, quick] = app.executors([gated(able()), able()]).await;
    let many = app.caller("many", &[Scope::TasksWrite, Scope::RoundsCreate]).await;
    for number in 0..FLOOD {
        let mut task = contract(&app, &format!("t{number}"));
        task.inputs = json!({ "prompt": number });
        let body = json!({ "contract": task, "executors": ["s1"] });
        let reply = many.post("/v1/tasks", &body).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    }
    app.start(SoleNode::Yes).await;
    // It has all the permits that one account can get, and none of its tasks ends by itself.
    slow.wait_for_calls(7).await;
    submit(&app, order(contract(&app, "mine"), &["s2"])).await.unwrap();
    assert_eq!(ended(&app, "mine").await.state.phase, TaskPhase::Finalized);
    assert_eq!((asked(&slow, "execute"), asked(&quick, "execute")), (7, 1));
    // The rest follows as soon as there are permits again.
    slow.release();
    slow.wait_for_calls(FLOOD).await;
    app.engine.shutdown().await;
}
