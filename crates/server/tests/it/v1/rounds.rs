//! `/v1/rounds`.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, gated, says_invalid, says_valid},
};
use serde_json::json;

#[tokio::test]
async fn a_round_reads_back_as_it_was_answered() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "n": 1 })).evidence("text/plain", "trace")]).await;
    let body = json!({ "objective": "x", "consensus": { "include": ["traces"] } });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    let round = app
        .admin()
        .get(&format!("/v1/rounds/{}", reply["round_id"].as_str().unwrap()))
        .await
        .json();
    for name in
        ["status", "output", "confidence", "consensus", "replicas", "round_id", "receipt_id"]
    {
        assert_eq!(round[name], reply[name], "{name}");
    }
    assert_eq!(round["state"], "closed");
    assert_eq!(round["kind"], "delegate");
    assert_eq!(round["sessions"], json!(["s1"]));
}

#[tokio::test]
async fn a_round_is_open_on_record_before_anyone_answers() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let body = json!({ "claim": "x" });
    let asked = caller.post("/api/v3/validate", &body);
    let seen = async {
        fake.wait_for_calls(1).await;
        let list = app.admin().get("/v1/rounds").await.json();
        assert_eq!(list["items"][0]["state"], "open");
        assert_eq!(list["items"][0]["outcome"], json!(null));
        let id = list["items"][0]["round_id"].as_str().unwrap().to_owned();
        let shown = app.admin().get(&format!("/v1/rounds/{id}")).await.json();
        assert_eq!(shown["state"], "open");
        fake.release();
        id
    };
    let (reply, id) = tokio::join!(asked, seen);
    assert_eq!(reply.json()["round_id"], id);
}

#[tokio::test]
async fn a_round_continues_when_its_caller_leaves() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let body = json!({ "claim": "x" });
    let mut asked = Box::pin(caller.post("/api/v3/validate", &body));
    tokio::select! {
        _ = &mut asked => {}
        () = fake.wait_for_calls(1) => {}
    }
    drop(asked);
    fake.release();
    app.engine.drain().await;
    let list = app.admin().get("/v1/rounds").await.json();
    assert_eq!(list["items"][0]["verdict"], "VALID", "{list}");
}

#[tokio::test]
async fn lists_are_newest_first_and_filtered() {
    let app = TestApp::new().await;
    let [one, _two] = app.executors([says_valid(), says_valid()]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        app.clock.advance_ms(10);
        let body = json!({ "claim": "x", "consensus": { "session_pool": ["s1"] } });
        let reply = app.admin().post("/api/v3/validate", &body).await.json();
        ids.insert(0, reply["round_id"].as_str().unwrap().to_owned());
    }
    one.set(says_invalid());
    let page = app.admin().get("/v1/rounds?limit=2").await.json();
    let shown: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|r| r["round_id"].as_str().unwrap()).collect();
    assert_eq!(shown, [ids[0].as_str(), ids[1].as_str()]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = app.admin().get(&format!("/v1/rounds?limit=2&cursor={cursor}")).await.json();
    assert_eq!(rest["items"][0]["round_id"], ids[2]);
    assert_eq!(rest["next_cursor"], json!(null));
    let none = app.admin().get("/v1/rounds?kind=factcheck").await.json();
    assert_eq!(none["items"], json!([]));
    let agreed = app.admin().get("/v1/rounds?kind=validate&outcome=agreed").await.json();
    assert_eq!(agreed["items"].as_array().unwrap().len(), 3);
    assert_eq!(app.admin().get("/v1/rounds?outcome=happy").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(app.admin().get("/v1/rounds?cursor=nonsense").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn unknown_rounds_are_not_found() {
    let app = TestApp::new().await;
    for id in ["rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV", "nonsense", "rnd_%27"] {
        let reply = app.admin().get(&format!("/v1/rounds/{id}")).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{id}");
    }
}

#[tokio::test]
async fn lists_are_filtered_by_state_and_time() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        app.clock.advance_ms(60_000);
        let reply = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
        ids.push(reply["round_id"].as_str().unwrap().to_owned());
    }
    fake.set(gated(says_valid()));
    let (claim, headers) = (json!({ "claim": "x" }), [("prefer", "respond-async")]);
    let running = app.admin().post_with("/api/v3/validate", &claim, &headers).await.json();
    let listed = async |query: &str| -> Vec<String> {
        let list = app.admin().get(&format!("/v1/rounds?{query}")).await.json();
        let items = list["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["round_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("state=open").await, [running["round_id"].as_str().unwrap()]);
    assert_eq!(listed("state=closed&limit=1").await, [ids[2].clone()]);
    assert_eq!(listed("state=cancelled").await, Vec::<String>::new());
    let shown = app.admin().get(&format!("/v1/rounds/{}", ids[1])).await.json();
    let at = shown["opened_at"].as_str().unwrap();
    assert_eq!(listed(&format!("until={at}")).await, [ids[0].clone()]);
    assert_eq!(listed(&format!("since={at}&state=closed")).await, [ids[2].clone(), ids[1].clone()]);
    for query in ["state=happy", "since=yesterday", "until=9999999-01-01T00:00:00Z"] {
        let reply = app.admin().get(&format!("/v1/rounds?{query}")).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(reply.json()["field"], query.split('=').next().unwrap());
    }
    fake.release();
    app.engine.drain().await;
}
