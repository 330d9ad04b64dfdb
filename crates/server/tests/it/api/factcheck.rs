//! `POST /api/v3/factcheck`.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, fact},
};
use serde_json::json;

#[tokio::test]
async fn three_of_five_say_true() {
    let app = TestApp::new().await;
    let live = |verdict| fact(verdict).task_types(&["factcheck", "factcheck:realtime"]);
    let fakes = app
        .executors([live("TRUE"), live("TRUE"), live("TRUE"), live("FALSE"), live("UNSURE")])
        .await;
    let body = json!({
        "claim": "The Eiffel Tower is in Paris.",
        "mode": "realtime",
        "policy": "oracle",
        "context": { "lang": "en" },
    });
    let reply = app.admin().post("/api/v3/factcheck", &body).await.json();
    assert_eq!(reply["verdict"], "TRUE");
    assert_eq!(reply["consensus"]["agreement"], 0.6);
    assert_eq!(reply["consensus"]["replicas"], 5);
    let confidence = reply["confidence"].as_f64().unwrap();
    assert!(0.6 < confidence && confidence < 1.0, "{confidence}");
    let calls = fakes[0].calls();
    let sent = calls.iter().find(|call| call.endpoint() == "execute").unwrap();
    assert_eq!(sent.body["task_type"], "factcheck");
    assert_eq!(sent.body["inputs"]["mode"], "realtime");
    assert_eq!(sent.body["inputs"]["claim"], "The Eiffel Tower is in Paris.");
    assert_eq!(sent.body["task_contract"]["output_schema"]["required"], json!(["verdict"]));
}

#[tokio::test]
async fn unsure_can_win() {
    let app = TestApp::new().await;
    let _fakes = app.executors([fact("UNSURE"), fact("UNSURE"), fact("TRUE")]).await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    let reply = app.admin().post("/api/v3/factcheck", &body).await.json();
    assert_eq!(reply["verdict"], "UNSURE");
    assert_eq!(reply["consensus"]["outcome"], "agreed");
}

#[tokio::test]
async fn an_answer_without_a_verdict_is_an_error_of_that_replica() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "verdict": "MAYBE" }))]).await;
    let reply = app.admin().post("/api/v3/factcheck", &json!({ "claim": "x" })).await.json();
    assert_eq!(reply["consensus"]["verdicts"], json!(["ERROR"]));
    assert_eq!(reply["replicas"][0]["error"]["code"], "bad_shape");
    assert_eq!(reply["consensus"]["outcome"], "failed");
}

#[tokio::test]
async fn a_number_is_not_a_claim() {
    let app = TestApp::new().await;
    let reply = app.admin().post("/api/v3/factcheck", &json!({ "claim": 5 })).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(reply.json()["field"], "claim");
}
