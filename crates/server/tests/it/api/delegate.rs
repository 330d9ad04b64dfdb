//! `POST /api/v3/delegate`.

use http::StatusCode;
use insta::assert_json_snapshot;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, hangs},
};
use serde_json::{Value, json};

fn extract(schema: &Value) -> Value {
    json!({
        "objective": "Extract the invoice total",
        "input": { "text": "Total due: 12.50 EUR" },
        "execution": { "timeout_ms": 20_000, "max_steps": 4, "output_schema": schema },
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    })
}

fn total() -> Value {
    json!({ "type": "object", "required": ["total"], "properties": { "total": { "type": "number" } } })
}

#[tokio::test]
async fn a_reply_with_one_timeout() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([answers(json!({ "total": 12.5 })), answers(json!({ "total": 12.50 })), hangs()])
        .await;
    let mut asked = extract(&total());
    asked["execution"]["timeout_ms"] = json!(2_000);
    let reply = app.admin().post("/api/v3/delegate", &asked).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let mut body = reply.json();
    // The one number that depends on real time.
    body["replicas"].as_array_mut().unwrap().iter_mut().for_each(|r| r["latency_ms"] = json!(0));
    assert_json_snapshot!(body);
}

#[tokio::test]
async fn an_output_that_fails_the_schema_is_not_a_vote() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([
            answers(json!({ "total": "many" })),
            answers(json!({ "total": "many" })),
            answers(json!({ "total": 1 })),
        ])
        .await;
    let reply = app.admin().post("/api/v3/delegate", &extract(&total())).await.json();
    assert_eq!(reply["status"], "NO_CONSENSUS");
    assert_eq!(reply["output"], Value::Null);
    assert_eq!(reply["consensus"]["verdicts"], json!(["INVALID_OUTPUT", "INVALID_OUTPUT", "OK"]));
    assert_eq!(reply["replicas"][0]["error"]["code"], "invalid_output");
    assert_eq!(reply["replicas"][0]["reason_codes"], json!([101]));
}

#[tokio::test]
async fn the_median_represents_different_numbers() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([
            answers(json!({ "total": 12.0 })),
            answers(json!({ "total": 13.0 })),
            answers(json!({ "total": 500.0 })),
        ])
        .await;
    let mut body = extract(&total());
    body["consensus"]["aggregation"] = json!("median");
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    // All numbers are combined, with no more confidence than in one answer.
    assert_eq!(reply["consensus"]["outcome"], "agreed", "{reply:#}");
    assert_eq!(reply["output"], json!({ "total": 13.0 }));
    assert_eq!(reply["consensus"]["equivalence"], "numbers");
    assert_eq!(reply["confidence"], 0.75);
    let spread = &reply["consensus"]["spread"]["/total"];
    assert_eq!((&spread["min"], &spread["max"]), (&json!(12.0), &json!(500.0)));
    body["consensus"]["aggregation"] = json!("mean");
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["output"], json!({ "total": 175.0 }));
    body["consensus"]["aggregation"] = json!("median");
    body["consensus"]["equivalence"] = json!({ "numeric": { "tolerance": 500 } });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["output"], json!({ "total": 13.0 }));
    assert_eq!(reply["consensus"]["strategy"], "median");
    let spread = &reply["consensus"]["spread"]["/total"];
    assert_eq!((&spread["min"], &spread["max"]), (&json!(12.0), &json!(500.0)));
}

#[tokio::test]
async fn an_average_that_the_schema_refuses_is_replaced_by_a_given_answer() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!(12)), answers(json!(13)), answers(json!(13))]).await;
    let mut body = extract(&json!({ "type": "integer" }));
    body["consensus"]["aggregation"] = json!("mean");
    body["consensus"]["equivalence"] = json!({ "numeric": { "tolerance": 1 } });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["output"], json!(13));
    assert_eq!(reply["consensus"]["output_by"], "replica");
    body["execution"]["output_schema"] = json!({ "type": "number" });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["output"], json!(38.0 / 3.0));
    assert_eq!(reply["consensus"]["output_by"], "merge");
}

#[tokio::test]
async fn a_tolerance_makes_near_numbers_one_group() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([
            answers(json!({ "total": 12.50 })),
            answers(json!({ "total": 12.51 })),
            answers(json!({ "total": 99 })),
        ])
        .await;
    let mut body = extract(&total());
    body["consensus"]["equivalence"] = json!({ "numeric": { "tolerance": 0.02 } });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["consensus"]["groups"], json!([0, 0, 1]));
    assert_eq!(reply["consensus"]["equivalence"], "numeric");
    assert_eq!(reply["status"], "OK");
}

#[tokio::test]
async fn plain_text_is_compared_as_text() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([
            answers(json!({ "answer": "Paris." })),
            answers(json!({ "answer": "paris" })),
            answers(json!({ "answer": "Lyon" })),
        ])
        .await;
    let mut body = extract(&total());
    body["execution"] = json!({ "timeout_ms": 20_000 });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["consensus"]["equivalence"], "text");
    assert_eq!(reply["consensus"]["agreement"], 0.6667);
}

#[tokio::test]
async fn the_executor_gets_a_full_task_contract_and_its_own_execution_id() {
    let app = TestApp::new().await;
    let fakes = app.executors([answers(json!(1)), answers(json!(1)), answers(json!(1))]).await;
    let reply = app.admin().post("/api/v3/delegate", &extract(&json!({}))).await.json();
    let mut ids = Vec::new();
    for fake in &fakes {
        let calls = fake.calls();
        let sent = calls.iter().find(|call| call.endpoint() == "execute").unwrap();
        assert_eq!(sent.body["task_type"], "delegate");
        assert_eq!(sent.body["profile"], "default");
        assert_eq!(sent.body["stage"], "explore");
        assert_eq!(sent.body["inputs"]["prompt"], "Extract the invoice total");
        assert_eq!(sent.body["inputs"]["text"], "Total due: 12.50 EUR");
        assert_eq!(sent.body["task_contract"]["budget"]["max_steps"], 4);
        assert_eq!(sent.header("x-jurat-round"), reply["round_id"].as_str());
        ids.push(sent.body["execution_id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn a_session_maps_the_task_type_for_its_executor() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!("done")).task_types(&["swarm"])]).await;
    let body = json!({ "objective": "Say done" });
    let refused = app.admin().post("/api/v3/delegate", &body).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    let refused = refused.json();
    assert_eq!(refused["code"], "sessions_unavailable");
    assert!(refused["sessions"][0]["problem"].as_str().unwrap().contains("`delegate`"));

    let session = json!({ "id": 201, "executor": "s1", "task_types": { "delegate": "swarm" } });
    assert_eq!(app.admin().post("/v1/sessions", &session).await.status, StatusCode::CREATED);
    let body = json!({ "objective": "Say done", "consensus": { "session_pool": [201] } });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["output"], "done");
    assert_eq!(reply["replicas"][0]["session_id"], "201");
    let calls = fake.calls();
    let sent = calls.iter().find(|call| call.endpoint() == "execute").unwrap();
    assert_eq!(sent.body["task_type"], "swarm");
}

#[tokio::test]
async fn traces_are_included_only_on_request() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!(1)).evidence("text/plain", "step 1")]).await;
    let plain = json!({ "objective": "x" });
    let reply = app.admin().post("/api/v3/delegate", &plain).await.json();
    assert_eq!(reply["replicas"][0]["evidence"].get("inline"), None);
    let asked = json!({ "objective": "x", "consensus": { "include": ["traces"] } });
    let reply = app.admin().post("/api/v3/delegate", &asked).await.json();
    assert_eq!(reply["replicas"][0]["evidence"]["inline"][0]["content"], "step 1");
}
