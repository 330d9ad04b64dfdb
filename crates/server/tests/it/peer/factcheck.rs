//! Realtime fact checks: sessions that do not declare the mode abstain.

use http::StatusCode;
use jurat_testkit::{app::TestApp, fake_executor::fact};
use serde_json::json;

const REALTIME: [&str; 2] = ["factcheck", "factcheck:realtime"];

#[tokio::test]
async fn sessions_that_do_not_declare_the_mode_abstain_with_a_reason() {
    let app = TestApp::new().await;
    let fakes = app.executors([fact("TRUE"), fact("TRUE"), fact("TRUE")]).await;
    let body = json!({ "claim": "x", "mode": "realtime", "consensus": { "replicas": 3 } });
    let reply = app.admin().post("/api/v3/factcheck", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let reply = reply.json();
    assert_eq!((&reply["verdict"], &reply["confidence"]), (&json!(null), &json!(0.0)));
    assert_eq!(reply["consensus"]["outcome"], "abstained");
    assert_eq!(reply["consensus"]["verdicts"], json!(["NEEDS_SPEC", "NEEDS_SPEC", "NEEDS_SPEC"]));
    for replica in reply["replicas"].as_array().unwrap() {
        let note = replica["notes"][0].as_str().unwrap();
        assert!(note.contains("`factcheck:realtime`"), "{note}");
        assert_eq!(replica["cost"], 0);
    }
    let is_asked =
        fakes.iter().any(|fake| fake.calls().iter().any(|it| it.endpoint() == "execute"));
    assert!(!is_asked, "no executor is asked for what it does not offer");
}

#[tokio::test]
async fn sessions_that_declare_the_mode_are_preferred() {
    let app = TestApp::new().await;
    let live = || fact("FALSE").task_types(&REALTIME);
    let old = || fact("TRUE");
    let _fakes = app.executors([old(), live(), old(), live(), live()]).await;
    let body = json!({ "claim": "x", "mode": "realtime", "consensus": { "replicas": 3 } });
    let reply = app.admin().post("/api/v3/factcheck", &body).await.json();
    assert_eq!(reply["consensus"]["verdicts"], json!(["FALSE", "FALSE", "FALSE"]));
    // A mapped task type has its own modes.
    let mapped =
        json!({ "id": "mapped", "executor": "s1", "task_types": { "factcheck": "facts" } });
    app.admin().post("/v1/sessions", &mapped).await;
    let body = json!({ "claim": "x", "mode": "realtime", "session_id": "mapped" });
    let reply = app.admin().post("/api/v3/factcheck", &body).await.json();
    let note = reply["replicas"][0]["notes"][0].as_str().unwrap();
    assert!(note.contains("`facts:realtime`"), "{note}");
}
