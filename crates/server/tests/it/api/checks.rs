//! `vp.checks.v1` on the endpoints: checks that the server makes itself.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, says_invalid, says_valid},
};
use serde_json::{Value, json};

fn checks() -> Value {
    json!({
        "policy_id": "vp.checks.v1",
        "policy_params": { "checks": [
            { "required": ["rows", "total"] },
            { "name": "rows add up", "cel": "output.rows.map(r, r.price * r.n).sum() == output.total" },
        ] },
    })
}

fn order(total: u32) -> Value {
    json!({ "rows": [{ "price": 2.5, "n": 2 }, { "price": 1, "n": 3 }], "total": total })
}

fn validate(total: u32) -> Value {
    json!({
        "claim": { "output": order(total) },
        "policy": checks(),
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    })
}

#[tokio::test]
async fn a_pass_that_a_check_contradicts_is_not_a_vote() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_invalid()]).await;
    let reply = app.admin().post("/api/v3/validate", &validate(9)).await.json();
    assert_eq!(reply["verdict"], "INVALID", "{reply}");
    assert_eq!(reply["consensus"]["verdicts"], json!(["ERROR", "INVALID", "INVALID"]));
    let error = &reply["replicas"][0]["error"];
    assert_eq!(error["code"], "policy_contradicted");
    let detail = error["detail"].as_str().unwrap();
    assert!(detail.contains("1057"), "{detail}");
    assert!(detail.contains("Check `rows add up` failed"), "{detail}");
}

#[tokio::test]
async fn a_pass_that_the_checks_confirm_counts() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_invalid()]).await;
    let reply = app.admin().post("/api/v3/validate", &validate(8)).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
    assert_eq!(reply["consensus"]["verdicts"], json!(["VALID", "VALID", "INVALID"]));
}

#[tokio::test]
async fn an_answer_that_fails_a_check_is_not_a_vote() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(order(8)), answers(order(9)), answers(order(8))]).await;
    let body = json!({
        "objective": "Add the rows up",
        "policy": checks(),
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["consensus"]["verdicts"], json!(["OK", "INVALID_OUTPUT", "OK"]), "{reply}");
    assert_eq!(reply["output"]["total"], 8);
    assert_eq!(reply["replicas"][1]["reason_codes"], json!([1057]));
    assert_eq!(reply["replicas"][1]["error"]["code"], "invalid_output");
}

#[tokio::test]
async fn a_check_that_cannot_be_made_is_refused_with_its_field() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    for (check, field, word) in [
        (json!({ "cel": "output.total >" }), "checks.0.cel", "does not compile"),
        (json!({ "cel": "outputs.total > 1" }), "checks.0.cel", "did you mean `output`?"),
        (json!({ "regex": "(?=x)" }), "checks.0.regex", "linear time"),
        (json!({ "schema": { "$ref": "#" } }), "checks.0.schema", "schema_cycle"),
        (json!({ "pat": "/a", "count": { "min": 1 } }), "checks.0.pat", "did you mean `path`"),
    ] {
        let mut body = validate(8);
        body["policy"]["policy_params"]["checks"] = json!([check]);
        let reply = app.admin().post("/api/v3/validate", &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", reply.text());
        let problem = reply.json();
        assert_eq!(problem["code"], "policy_invalid", "{problem}");
        let named = problem["field"].as_str().unwrap_or_default();
        assert!(named.ends_with(field), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(word) && !detail.contains(['[', ']']), "{detail}");
    }
}

#[tokio::test]
async fn checks_that_would_take_too_much_work_are_refused_before_anyone_is_asked() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let body = json!({
        "claim": { "output": vec![1; 300] },
        "policy": { "policy_id": "vp.checks.v1", "policy_params": { "checks": [
            { "name": "triples", "cel": "output.all(x, output.all(y, output.all(z, x == z)))" },
        ] } },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", reply.text());
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("Check `triples` would take too much work."), "{detail}");
    assert!(fake.calls().iter().all(|call| call.endpoint() != "/verify"), "nobody was asked");
}
