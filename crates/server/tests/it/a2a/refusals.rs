//! Errors in the form of the protocol, with the codes of the registry.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::{Value, json};

use super::{BINDINGS, Binding, VERSION, call, data, message, read};

async fn post(app: &TestApp, path: &str, body: &str, headers: &[(&str, &str)]) -> Value {
    let reply = app.admin().send("POST", path, Body::from(body.to_owned()), headers).await;
    reply.json()
}

#[tokio::test]
async fn another_version_is_told_which_one_is_served() {
    let app = TestApp::new().await;
    let old = json!({
        "jsonrpc": "2.0", "id": 7, "method": "message/send",
        "params": { "message": { "kind": "message", "role": "user", "messageId": "m", "parts": [{ "kind": "text", "text": "x" }] } },
    });
    for (headers, asked) in [
        (&[][..], "no header `A2A-Version`, which means 0.3"),
        (&[("a2a-version", "")][..], "no header `A2A-Version`, which means 0.3"),
        (&[("a2a-version", "0.3")][..], "asks for A2A 0.3"),
        (&[("a2a-version", "2.0")][..], "asks for A2A 2.0"),
    ] {
        for path in ["/a2a", "/a2a/v1/message:send"] {
            let body = if path == "/a2a" { old.to_string() } else { old["params"].to_string() };
            let reply = app.admin().send("POST", path, Body::from(body), headers).await;
            let binding = if path == "/a2a" { Binding::JsonRpc } else { Binding::Http };
            let refusal = read(binding, &reply).unwrap_err();
            assert_eq!(refusal.reason, "VERSION_NOT_SUPPORTED");
            assert_eq!(refusal.number, if path == "/a2a" { -32_009 } else { 400 });
            assert!(refusal.message.contains("this agent serves A2A 1.0 only"), "{refusal:?}");
            assert!(refusal.message.contains(asked), "{refusal:?}");
        }
    }
    // The version may come in the query, and a patch version does not matter.
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "ListTasks" }).to_string();
    assert_eq!(post(&app, "/a2a?A2A-Version=1.0", &call, &[]).await["result"]["totalSize"], 0);
    assert_eq!(
        post(&app, "/a2a/", &call, &[("a2a-version", "1.0.1")]).await["result"]["totalSize"],
        0,
        "with a slash at the end"
    );
    let reply = app.admin().get("/a2a/v1/tasks?A2A-Version=1.0").await;
    assert_eq!(reply.status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_no_call_is_an_error_of_json_rpc() {
    let app = TestApp::new().await;
    let version = [("a2a-version", "1.0")];
    for (body, code, id) in [
        ("{", -32_700, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"GetTask"}"#, -32_700, json!(null)),
        ("[]", -32_600, json!(null)),
        (r#"{"jsonrpc":"1.0","id":"a","method":"GetTask"}"#, -32_600, json!("a")),
        (r#"{"jsonrpc":"2.0","method":"GetTask"}"#, -32_600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"Nothing"}"#, -32_601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"message/send"}"#, -32_601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#, -32_600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#, -32_602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}"#, -32_602, json!(1)),
    ] {
        let reply = post(&app, "/a2a", body, &version).await;
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(code), &id), "{body}");
    }
    let plain = [("a2a-version", "1.0"), ("content-type", "text/plain")];
    assert_eq!(post(&app, "/a2a", "{}", &plain).await["error"]["code"], -32_005);
    let reply = post(&app, "/a2a/v1/message:send", "{}", &plain).await;
    assert_eq!(reply["error"]["details"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
}

/// Requests that the API refuses, with the code and the field of the refusal.
fn refused_requests() -> Vec<(Value, &'static str, Option<&'static str>)> {
    vec![
        (
            json!({ "skill": "validate", "claim": "x", "replicas": 3 }),
            "request_invalid",
            Some("replicas"),
        ),
        (
            json!({ "skill": "validate", "claim": "x", "consensus": { "replica": 3 } }),
            "request_invalid",
            Some("consensus.replica"),
        ),
        (
            json!({ "skill": "validate", "claim": "x", "consensus": { "replicas": 2 } }),
            "request_invalid",
            Some("consensus.replicas"),
        ),
        (json!({ "skill": "factcheck" }), "request_invalid", Some("claim")),
        (json!({ "skill": "judge" }), "validation_error", Some("skill")),
        (
            json!({ "skill": "validate", "claim": "x", "session_id": "nobody" }),
            "session_unknown",
            Some("consensus.session_pool"),
        ),
        (
            json!({ "skill": "validate", "claim": "x", "consensus": { "replicas": 3 } }),
            "sessions_unavailable",
            None,
        ),
        (
            json!({ "skill": "run-verifier", "verifier": "nothing", "inputs": {} }),
            "not_found",
            None,
        ),
        (
            json!({ "skill": "run-verifier:nothing", "inputs": {}, "replica": 3 }),
            "validation_error",
            Some("replica"),
        ),
        (
            json!({ "skill": "run-verifier", "verifier": "nothing", "consensus": {} }),
            "validation_error",
            Some("consensus"),
        ),
        (
            json!({ "skill": "run-verifier:nothing", "verifier": "other", "inputs": {} }),
            "validation_error",
            Some("verifier"),
        ),
    ]
}

#[tokio::test]
async fn a_request_that_the_api_refuses_is_refused_with_its_code_and_field() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    for binding in BINDINGS {
        for (request, code, field) in refused_requests() {
            let sent = data("m1", &request);
            let refusal = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap_err();
            assert_eq!(
                (refusal.code.as_str(), refusal.field.as_deref()),
                (code, field),
                "{request}: {refusal:?}"
            );
            let stream = call(&app.admin(), binding, "SendStreamingMessage", &sent).await;
            assert_eq!(stream.unwrap_err(), refusal, "{request}");
        }
        let file = message("m2", &json!({ "url": "https://example.com/x.pdf" }));
        let refusal = call(&app.admin(), binding, "SendMessage", &file).await.unwrap_err();
        assert_eq!(refusal.reason, "CONTENT_TYPE_NOT_SUPPORTED");
    }
    let page = call(&app.admin(), Binding::Http, "ListTasks", &json!({})).await.unwrap();
    assert_eq!(page["totalSize"], 0, "a refused message leaves no task");
}

#[tokio::test]
async fn keys_and_scopes_are_those_of_the_api() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    let writer = app.caller("writer", &[Scope::RoundsCreate]).await;
    let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
    let run = data("m2", &json!({ "skill": "run-verifier", "verifier": "a", "inputs": {} }));
    for binding in BINDINGS {
        for (caller, method, params, scope) in [
            (&reader, "SendMessage", &sent, "rounds:create"),
            (&writer, "SendMessage", &run, "verifiers:run"),
            (&writer, "ListTasks", &json!({}), "rounds:read"),
            (&writer, "GetTask", &json!({ "id": "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV" }), "rounds:read"),
            (
                &reader,
                "CancelTask",
                &json!({ "id": "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV" }),
                "rounds:create",
            ),
        ] {
            let refusal = call(caller, binding, method, params).await.unwrap_err();
            assert_eq!(refusal.code, "forbidden", "{method}");
            assert!(refusal.message.contains(scope), "{method}: {refusal:?}");
        }
        let nobody = app.with_key("jrt_live_x");
        let refusal = call(&nobody, binding, "ListTasks", &json!({})).await.unwrap_err();
        assert_eq!(refusal.code, "auth_required");
    }
    let reply = app.anonymous().send("POST", "/a2a", Body::from("{}"), &[]).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    assert_eq!(reply.headers["www-authenticate"], "Bearer");
    assert_eq!(reply.json()["jsonrpc"], "2.0");
}

#[tokio::test]
async fn an_unknown_address_of_the_protocol_has_its_form_of_errors() {
    let app = TestApp::new().await;
    let reply = app.admin().get("/a2a/v1/nothing").await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    assert_eq!(read(Binding::Http, &reply).unwrap_err().code, "not_found");
    let reply = app.admin().send("PUT", "/a2a/v1/tasks/rnd_x", Body::empty(), &[]).await;
    assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(read(Binding::Http, &reply).unwrap_err().code, "method_not_allowed");
    // `{id}`, `{id}:cancel` and `{id}:subscribe` share a route, but not their methods.
    for (method, path, allowed) in [
        ("PUT", "rnd_x", "GET,HEAD"),
        ("POST", "rnd_x", "GET,HEAD"),
        ("GET", "rnd_x:cancel", "POST"),
        ("DELETE", "rnd_x:cancel", "POST"),
        ("DELETE", "rnd_x:subscribe", "GET,HEAD,POST"),
    ] {
        let path = format!("/a2a/v1/tasks/{path}");
        let reply = app.admin().send(method, &path, Body::empty(), &[VERSION]).await;
        assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert_eq!(reply.headers["allow"], allowed, "{method} {path}");
    }
}
