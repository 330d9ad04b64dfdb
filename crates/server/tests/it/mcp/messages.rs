//! The protocol itself: its start, its lists, and invalid messages.

use axum::body::Body;
use http::StatusCode;
use jurat_testkit::app::{TestApp, TestReply};
use serde_json::{Value, json};

use super::{ERAS, LEGACY, MODERN, ask, result};

#[tokio::test]
async fn the_older_revision_starts_with_initialize_without_a_session() {
    let app = TestApp::new().await;
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let reply = ask(&app.admin(), LEGACY, "initialize", params).await;
    assert!(!reply.headers.contains_key("mcp-session-id"), "{:?}", reply.headers);
    let result = result(&reply);
    assert_eq!(result["protocolVersion"], LEGACY);
    assert_eq!(result["serverInfo"]["name"], "jurat");
    for feature in ["tools", "resources", "prompts"] {
        assert!(result["capabilities"][feature].is_object(), "{result}");
    }
    assert!(result.get("resultType").is_none(), "{result}");
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let reply = app.admin().post("/mcp", &message).await;
    assert_eq!((reply.status, reply.body.len()), (StatusCode::ACCEPTED, 0));
}

#[tokio::test]
async fn the_newest_revision_starts_with_discover() {
    let app = TestApp::new().await;
    let result = result(&ask(&app.admin(), MODERN, "server/discover", json!({})).await);
    assert_eq!(result["resultType"], "complete");
    let versions = result["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!(LEGACY)), "{result}");
}

#[tokio::test]
async fn both_revisions_list_the_same_tools_with_self_contained_schemas() {
    let app = TestApp::new().await;
    let mut seen: Vec<Value> = Vec::new();
    for era in ERAS {
        let listed = result(&ask(&app.admin(), era, "tools/list", json!({})).await);
        if era == LEGACY {
            assert_eq!(listed.as_object().unwrap().len(), 1, "{listed}");
        } else {
            assert_eq!(
                (&listed["ttlMs"], &listed["cacheScope"]),
                (&json!(60_000), &json!("private"))
            );
        }
        seen.push(listed["tools"].clone());
    }
    assert_eq!(seen[0], seen[1]);
    for tool in seen[0].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["description"].as_str().unwrap().ends_with('.'), "{name}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{name}");
        for (part, schema) in [("input", &tool["inputSchema"]), ("output", &tool["outputSchema"])] {
            assert_eq!(schema["type"], "object", "{name} {part}");
            assert!(!schema.to_string().contains("#/components"), "{name} {part}");
            // This fails unless every reference leads somewhere within the schema.
            jsonschema::draft202012::new(schema).unwrap();
        }
        // A tool without arguments has none.
        for (field, schema) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
            let told = ["description", "$ref", "oneOf"].iter().any(|key| schema.get(key).is_some());
            assert!(told, "{name}: nothing is said of `{field}`");
        }
    }
}

async fn sent(app: &TestApp, body: impl Into<Body>, headers: &[(&str, &str)]) -> TestReply {
    app.admin().send("POST", "/mcp", body.into(), headers).await
}

#[tokio::test]
async fn an_invalid_message_is_a_protocol_error() {
    let app = TestApp::new().await;
    for (body, code) in [
        (json!({ "jsonrpc": "1.0", "id": 1, "method": "ping" }), -32600),
        (json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]), -32600),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), -32600),
        (json!("ping"), -32600),
    ] {
        let reply = sent(&app, body.to_string(), &[]).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(reply.json()["error"]["code"], code, "{body}");
        assert_eq!(reply.json()["error"]["data"]["code"], "validation_error", "{body}");
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let reply = sent(&app, ping.clone(), &[("mcp-protocol-version", "1999-01-01")]).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(reply.json()["error"]["code"], -32600, "{}", reply.text());
    let reply = sent(&app, ping, &[("content-type", "text/plain")]).await;
    assert_eq!(reply.json()["code"], "unsupported_media_type");
    let reply = sent(&app, vec![b' '; 1024 * 1024 + 1], &[]).await;
    assert_eq!(reply.json()["code"], "payload_too_large");
}

#[tokio::test]
async fn the_headers_of_the_newest_revision_must_match_the_message() {
    let app = TestApp::new().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let good = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    let other = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call")];
    let old = [("mcp-protocol-version", LEGACY), ("mcp-method", "tools/list")];
    assert_eq!(sent(&app, message.to_string(), &good).await.status, StatusCode::OK);
    for headers in [&other[..], &old, &good[..1], &good[1..]] {
        let reply = sent(&app, message.to_string(), headers).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{headers:?}");
        assert_eq!(reply.json()["error"]["code"], -32020, "{headers:?}: {}", reply.text());
        assert_eq!(reply.json()["error"]["data"]["code"], "validation_error");
    }
}

#[tokio::test]
async fn an_unknown_method_or_tool_is_a_protocol_error() {
    let app = TestApp::new().await;
    let reply = ask(&app.admin(), LEGACY, "no/such/method", json!({})).await;
    assert_eq!(reply.json()["error"]["code"], -32601, "{}", reply.text());
    let reply = ask(&app.admin(), MODERN, "no/such/method", json!({})).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (404, &json!(-32601)));
    // Features that are not announced do not exist.
    let completion = json!({
        "ref": { "type": "ref/prompt", "name": "check_claim" },
        "argument": { "name": "claim", "value": "x" },
    });
    let reply = ask(&app.admin(), MODERN, "completion/complete", completion).await;
    assert_eq!(reply.json()["error"]["code"], -32601, "{}", reply.text());
    for era in ERAS {
        let reply = ask(&app.admin(), era, "tools/call", json!({ "name": "none" })).await;
        assert_eq!(reply.json()["error"]["code"], -32602, "{}", reply.text());
    }
    for (method, params) in [
        ("no/such/method", json!({})),
        ("tools/call", json!({ "name": "none" })),
        ("prompts/get", json!({ "name": "none" })),
        ("resources/read", json!({ "uri": "jurat://docs/none" })),
    ] {
        for era in ERAS {
            let reply = ask(&app.admin(), era, method, params.clone()).await;
            let data = &reply.json()["error"]["data"];
            assert_eq!(data["code"], "not_found", "{method} {era}: {}", reply.text());
        }
    }
    let reply = ask(&app.admin(), LEGACY, "prompts/get", json!({ "name": "check_claim" })).await;
    assert_eq!(reply.json()["error"]["data"]["code"], "validation_error", "{}", reply.text());
    for method in ["GET", "DELETE"] {
        let reply = app.admin().send(method, "/mcp", Body::empty(), &[]).await;
        assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(reply.headers["allow"], "POST");
    }
}
