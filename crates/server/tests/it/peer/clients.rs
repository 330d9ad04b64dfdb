//! The bodies of real clients, and the members that each of them reads.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{
        answers, disconnects_before_headers, fact, says_inconclusive, says_invalid, says_valid,
    },
};
use serde_json::{Value, json};

use super::{got, labelled, sent};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn answer(text: &str) -> jurat_testkit::fake_executor::Behaviour {
    answers(json!({ "answer": text }))
}

/// Asserts that a reply has its text under every name that clients read, with one of the miners
/// that gave it.
#[track_caller]
fn assert_whole_text(reply: &Value, expected: &str, responses: &[Value]) {
    for name in ["text", "output", "content", "result"] {
        assert_eq!(reply[name], expected, "{name}");
    }
    assert_eq!(reply["miner_id"], reply["miner_address"]);
    let miner = responses.iter().find(|it| it["miner_id"] == reply["miner_id"]).unwrap();
    assert_eq!(miner["content"], expected);
}

#[tokio::test]
async fn the_gateway_gets_the_text_of_each_miner() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answer("A"), answer("A"), answer("B")]).await;
    for session in ["s1", "s2", "s3"] {
        labelled(&app, &format!("{session}-of-92"), session, "92").await;
    }
    let body = json!({ "session_id": 92, "prompt": "Analyze X", "prompt_type": 1, "stream": false,
                       "timeout": 60, "max_tokens": 4096 });
    let reply = sent(&app, "/api/v1/delegate", &body).await;
    // It looks for `-` in the id, and then turns it into a number.
    let task_id: u64 = reply["task_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(reply["session_id"], 92);
    let responses = reply["responses"].as_array().unwrap();
    assert_eq!(responses.len(), 3);
    let mut texts: Vec<&str> = responses.iter().map(|it| it["content"].as_str().unwrap()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["A", "A", "B"]);
    for response in responses {
        assert!(response["miner_id"].as_str().unwrap().ends_with("-of-92"), "{response}");
        assert!(response["model"].as_str().unwrap().starts_with("model-"));
        assert!(response["latency_ms"].is_u64() && response["metadata"].is_object());
    }
    assert_eq!(reply["k_miners"], 3);
    assert_whole_text(&reply, "A", responses);

    // It then has the answer of each miner judged.
    let miner = &responses[0];
    let body = json!({ "session_id": 92, "task_id": task_id,
                       "miner_address": miner["miner_id"], "result_data": miner["content"] });
    let reply = app.admin().post("/api/v1/validate", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
}

#[tokio::test]
async fn the_governance_agent_delegates_and_validates_without_a_session() {
    let app = TestApp::new().await;
    let fakes = app.executors([says_valid(), says_valid(), says_invalid()]).await;
    let body = json!({ "prompt": "do it", "max_tokens": 1024, "temperature": 0.7 });
    let task = sent(&app, "/api/v1/delegate", &body).await;
    assert_eq!(task["consensus"]["replicas"], 3);
    let calls = fakes[0].calls();
    let asked = calls.iter().find(|call| call.endpoint() == "execute").unwrap();
    assert_eq!(asked.body["inputs"]["prompt"], "do it");
    assert_eq!(asked.body["inputs"]["temperature"], 0.7);

    let body =
        json!({ "task_id": task["task_id"], "miner_address": "s1", "result_data": "answer" });
    let reply = sent(&app, "/api/v1/validate", &body).await;
    assert_eq!((&reply["is_valid"], &reply["valid"]), (&json!(true), &json!(true)));
    let confidence = reply["confidence"].as_f64().unwrap();
    assert!(0.5 < confidence && confidence < 1.0, "{reply}");
    assert_eq!(reply["score"], reply["confidence"]);
    assert_eq!((&reply["attestation"], &reply["k_miners"]), (&reply["receipt_id"], &json!(3)));
    // The judges read the prompt of the task.
    let calls = fakes[0].calls();
    let judged = calls.iter().find(|call| call.endpoint() == "verify").unwrap();
    assert_eq!(judged.body["candidate"]["output"], "answer");
    let evidence = judged.body["candidate"]["evidence_inline"].to_string();
    assert!(evidence.contains("do it") && evidence.contains("miner_address"), "{evidence}");
}

#[tokio::test]
async fn the_documented_fields_are_read_too() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answer("fine"), answer("fine"), answer("fine")]).await;
    let body = json!({ "task_request_input": "Summarise it", "web_url": "https://example.com/a" });
    let reply = sent(&app, "/api/v1/delegate", &body).await;
    assert_eq!(reply["output"], "fine");
    assert_eq!(reply["miners"].as_array().unwrap().len(), 3);
    assert!(reply["model"].as_str().unwrap().starts_with("model-"));
    let body = json!({ "session_id": "s2", "task_request_input": "2+2", "task_result_output": "4",
                       "task_domain": "math", "task_type": "sum", "evaluation_mode": "strict" });
    let reply = sent(&app, "/api/v1/validate", &body).await;
    // A session is one executor, so it has one replica.
    assert_eq!((&reply["k_miners"], &reply["session_id"]), (&json!(1), &json!("s2")));
}

#[tokio::test]
async fn a_judgment_without_a_majority_is_neither_valid_nor_invalid() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_inconclusive()]).await;
    let reply = sent(&app, "/api/v1/validate", &json!({ "result_data": "x" })).await;
    assert_eq!((&reply["is_valid"], &reply["verdict"]), (&Value::Null, &Value::Null));
    assert_eq!(reply["confidence"], 0.0);
}

#[tokio::test]
async fn claim_check_completes_in_a_session_and_reads_the_task() {
    let app = TestApp::new().await;
    let fakes = app.executors([answer("yes"), answer("no"), answer("yes")]).await;
    for session in ["s1", "s2", "s3"] {
        labelled(&app, &format!("{session}-of-35"), session, "35").await;
    }
    let body = json!({
        "prompt": "Is it so?", "prompt_type": 1, "prompt_template": "", "stream": false,
        "timeout": 300, "precommit_timeout": 90, "client_reference": "claimcheck-oracle",
        "max_tokens": 4096, "temperature": 0.7, "top_p": 0.95, "top_k": 40,
        "presence_penalty": 0, "frequency_penalty": 0,
    });
    let reply = sent(&app, "/api/v1/completions/35", &body).await;
    assert_eq!(reply["choices"][0]["text"], "yes");
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    assert_eq!((&reply["object"], &reply["session_id"]), (&json!("text_completion"), &json!(35)));
    let calls = fakes[0].calls();
    let asked = calls.iter().find(|call| call.endpoint() == "execute").unwrap();
    assert_eq!(asked.body["inputs"]["top_k"], 40);
    assert_eq!(asked.body["task_contract"]["budget"]["time_ms"], 300_000);

    // It polls until three miners have a result, and all that were assigned.
    let task = got(&app, &format!("/api/v1/tasks/35/{}", text(&reply["task_id"]))).await;
    let (texts, miners) = (&task["results"]["data"], &task["results"]["miners"]);
    let texts = texts.as_array().unwrap();
    assert_eq!((texts.len(), miners), (3, &task["assigned_miners"]));
    let responses: Vec<Value> = texts
        .iter()
        .zip(miners.as_array().unwrap())
        .map(|(text, miner)| json!({ "content": text, "miner_id": miner }))
        .collect();
    assert_whole_text(&reply, "yes", &responses);
    assert_eq!(task["status"], 4);
    assert!(task["created_at"].as_u64().unwrap() <= task["finished_at"].as_u64().unwrap());
}

#[tokio::test]
async fn openminion_completes_with_version_2() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answer("hello")]).await;
    app.admin().post("/v1/sessions", &json!({ "id": 35, "executor": "s1" })).await;
    let body = json!({
        "model": "gpt-oss-20b", "session_id": 35,
        "prompt": "System instruction:\nbe brief\n\nuser: hello\n\nassistant:",
        "max_tokens": 4096, "temperature": 0.2, "top_p": 1.0, "top_k": 0,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "node_type": 0, "prompt_type": 1,
        "stream": false, "timeout": 360, "precommit_timeout": 300, "privacy_level": "high",
        "client_reference": "",
    });
    for path in ["/api/v2/completions", "/api/v3/completions", "/api/v1/completions"] {
        let reply = sent(&app, path, &body).await;
        assert_eq!(reply["choices"][0]["text"], "hello", "{path}");
        assert_eq!(reply["consensus"]["replicas"], 1, "{path}");
    }
}

#[tokio::test]
async fn a_chat_is_completed() {
    let app = TestApp::new().await;
    let fakes = app.executors([answer("hello")]).await;
    let body = json!({ "model": "x", "messages": [
        { "role": "system", "content": "Be brief." }, { "role": "user", "content": "Greet me." },
    ]});
    for (path, session) in [
        ("/api/v2/chat/completions", json!(0)),
        ("/api/v1/chat/completions", json!(0)),
        ("/api/v2/chat/completions/s1", json!("s1")),
        ("/api/v1/chat/completions/s1", json!("s1")),
    ] {
        let reply = sent(&app, path, &body).await;
        let message = json!({ "role": "assistant", "content": "hello" });
        assert_eq!((&reply["choices"][0]["message"], &reply["session_id"]), (&message, &session));
    }
    let missing = app.admin().post("/api/v1/chat/completions/36", &body).await;
    assert_eq!(missing.json()["code"], "session_unknown");
    let calls = fakes[0].calls();
    let asked = calls.iter().find(|call| call.endpoint() == "execute").unwrap();
    assert_eq!(asked.body["inputs"]["messages"], body["messages"]);
}

#[tokio::test]
async fn a_stream_has_lines_of_data_and_an_end() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answer("hello")]).await;
    let body = json!({ "session_id": 0, "prompt": "Greet me.", "stream": true });
    let reply = app.admin().post("/api/v1/completions", &body).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let text = reply.text();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(lines.last(), Some(&"[DONE]"));
    let first: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!((&first["choices"][0]["text"], lines.len()), (&json!("hello"), 2));
    assert!(first["task_id"].is_string(), "{first}");

    let body = json!({ "messages": [{ "role": "user", "content": "Hi" }], "stream": true });
    let text = app.admin().post("/api/v2/chat/completions", &body).await.text();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let chunk = |index: usize| -> Value { serde_json::from_str(lines[index]).unwrap() };
    assert_eq!(chunk(0)["choices"][0]["delta"]["content"], "hello");
    assert!(chunk(0)["task_id"].is_string() && chunk(1)["task_id"].is_string());
    assert_eq!(chunk(1)["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn a_completion_without_a_text_is_an_error() {
    let app = TestApp::new().await;
    let _fakes = app.executors([disconnects_before_headers()]).await;
    let reply = app.admin().post("/api/v1/completions", &json!({ "prompt": "x" })).await;
    assert_eq!(reply.status, StatusCode::CONFLICT, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["code"], "consensus_disagreement");
    assert!(body["error"].as_str().unwrap().contains("do not agree"), "{body}");
    let body = json!({ "prompt": "x", "stream": true });
    let text = app.admin().post("/api/v1/completions", &body).await.text();
    assert!(text.contains("consensus_disagreement") && text.ends_with("[DONE]\n\n"), "{text}");
    let reply = sent(&app, "/api/v1/delegate", &json!({ "prompt": "x" })).await;
    for name in ["text", "output", "content", "result", "miner_id", "miner_address"] {
        assert_eq!(reply.get(name), Some(&Value::Null), "{name}");
    }
}

#[tokio::test]
async fn errors_have_a_text_and_a_code() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answer("x")]).await;
    for (path, body, status, code) in [
        ("/api/v1/completions", json!({}), 422, "request_invalid"),
        ("/api/v1/delegate", json!({ "prompt": " " }), 422, "request_invalid"),
        ("/api/v1/validate", json!({ "task_id": 1 }), 422, "request_invalid"),
        ("/api/v1/validate", json!({ "task_id": 11, "result_data": "A" }), 404, "not_found"),
        ("/api/v1/factcheck", json!({}), 422, "request_invalid"),
        ("/api/v1/delegate", json!({ "prompt": "x", "session_id": 7 }), 422, "session_unknown"),
        (
            "/api/v1/delegate",
            json!({ "prompt": "x", "session_id": "s1", "k_redundancy": 3 }),
            422,
            "session_pool_too_small",
        ),
    ] {
        let reply = app.admin().post(path, &body).await;
        let error = reply.json();
        assert_eq!(
            (reply.status.as_u16(), &error["code"]),
            (status, &json!(code)),
            "{path} {body}"
        );
        assert_eq!(error["error"], error["message"], "{path}");
        assert!(error["error"].as_str().unwrap().contains(' '), "{error}");
        if code.starts_with("session_") {
            assert_eq!(
                (&error["field"], &error["errors"][0]["field"]),
                (&json!("session_id"), &json!("session_id"))
            );
        }
    }
    let reply = app.anonymous().post("/api/v1/delegate", &json!({ "prompt": "x" })).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    assert_eq!(reply.json()["error"], "the request has no key");
    let caller = app.admin();
    let get = |path| caller.send_undescribed("GET", path, axum::body::Body::empty(), &[]);
    let lost = get("/api/v1/nodes").await;
    assert_eq!(lost.status, StatusCode::NOT_FOUND);
    assert_eq!(lost.json()["error"], "there is nothing at `/api/v1/nodes`");
    let wrong = get("/api/v1/delegate").await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(wrong.json()["error"], wrong.json()["message"]);
}

#[tokio::test]
async fn a_fact_is_checked_under_both_names() {
    let app = TestApp::new().await;
    let _fakes = app.executors([fact("TRUE"), fact("TRUE"), fact("FALSE")]).await;
    let body = json!({ "claim": "x", "mode": "standard", "redundancy": 3, "policy": {} });
    for path in ["/api/v1/factcheck", "/api/v1/fact-check"] {
        let reply = sent(&app, path, &body).await;
        assert_eq!(reply["verdict"], "TRUE");
        assert!(0.0 < reply["confidence"].as_f64().unwrap());
        let runs = reply["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 3);
        for run in runs {
            assert_eq!(run["verdict"], run["evidence"]["verdict"]);
            assert!(run["miner"].is_string());
        }
    }
}

#[tokio::test]
async fn the_server_and_its_sessions_are_shown() {
    let app = TestApp::new().await;
    let nobody = app.admin().post("/api/v1/create", &json!({})).await;
    assert_eq!(nobody.status, StatusCode::SERVICE_UNAVAILABLE);
    let any = got(&app, "/api/v1/sessions/0").await;
    assert_eq!((&any["status"], &any["miners"]), (&json!("inactive"), &json!([])));
    assert!(nobody.json()["error"].as_str().unwrap().contains("operator"));
    let _fakes = app.executors([answer("x"), answer("y")]).await;
    labelled(&app, "other", "s2", "35").await;
    for path in ["status", "about", "info", "ping"] {
        let node = got(&app, &format!("/api/v1/{path}")).await;
        assert_eq!((&node["status"], &node["miners"]), (&json!("ok"), &json!(3)), "{path}");
    }
    let miners = got(&app, "/api/v1/miners").await;
    assert_eq!(miners["count"], 3);
    assert_eq!(miners["miners"][1]["model"], "model-1");
    assert_eq!(miners["miners"][1]["status"], "online");
    assert_eq!(got(&app, "/api/v1/sessions").await["sessions"][0]["id"], "other");
    let session = got(&app, "/api/v1/sessions/35").await;
    assert_eq!(session["miners"], json!(["other"]));
    assert_eq!((&session["session_id"], &session["status"]), (&json!(35), &json!("active")));
    let any = got(&app, "/api/v1/sessions/0").await;
    assert_eq!((&any["session_id"], &any["miners"]), (&json!(0), &json!(["other", "s1", "s2"])));
    assert_eq!((&any["id"], &any["status"]), (&json!(0), &json!("active")));
    let missing = app.admin().get("/api/v1/sessions/36").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);

    // What it returns for a new session can be used.
    let body = json!({ "name": "governance", "model": "any", "min_nodes": 1 });
    let made = sent(&app, "/api/v1/create", &body).await;
    assert_eq!((&made["created"], &made["status"]), (&json!(false), &json!("ready")));
    let path = format!("/api/v1/completions/{}", made["session_id"].as_str().unwrap());
    sent(&app, &path, &json!({ "prompt": "x" })).await;
    assert_eq!(sent(&app, "/api/v1/create", &json!({ "session_id": 35 })).await["id"], 35);
    let missing = app.admin().post("/api/v1/create", &json!({ "session_id": 36 })).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_usual_number_of_replicas_is_a_setting_and_never_more_than_can_answer() {
    let messages = json!({ "messages": [{ "role": "user", "content": "x" }] });
    let requests = [
        ("/api/v1/delegate", json!({ "prompt": "x" })),
        ("/api/v1/completions", json!({ "prompt": "x" })),
        ("/api/v2/chat/completions", messages),
    ];
    for (setting, expected) in [(1, 1), (3, 3), (5, 3)] {
        let app = with_replicas(setting).await;
        let _fakes = app.executors([answer("x"), answer("x"), answer("x"), answer("x")]).await;
        for (path, body) in &requests {
            let reply = sent(&app, path, body).await;
            assert_eq!(reply["consensus"]["replicas"], expected, "{setting} {path}");
        }
        let mut one = json!({ "prompt": "x", "max_miners": 1 });
        let reply = sent(&app, "/api/v1/completions", &one).await;
        assert_eq!(reply["consensus"]["replicas"], 1, "what is asked for is not raised");
        one["session_id"] = json!("s1");
        one.as_object_mut().unwrap().remove("max_miners");
        let reply = sent(&app, "/api/v1/completions", &one).await;
        assert_eq!(reply["consensus"]["replicas"], 1, "a session is one executor");
    }
    let app = with_replicas(5).await;
    let _fakes = app.executors([answer("x"), answer("x"), answer("x"), answer("x")]).await;
    let body = json!({ "prompt": "x", "k_redundancy": 5 });
    let refused = app.admin().post("/api/v1/delegate", &body).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "what is asked for is not reduced");
}

async fn with_replicas(replicas: u8) -> TestApp {
    let peers = jurat_server::PeerOptions { replicas, ..jurat_server::PeerOptions::default() };
    TestApp::new().await.with_peers(peers)
}
