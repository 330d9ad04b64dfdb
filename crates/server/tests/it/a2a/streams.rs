//! Streams of tasks.

use std::sync::Arc;

use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_valid},
};
use serde_json::{Value, json};

use super::{BINDINGS, Binding, call, data, events, send};
use crate::inbound::{Peer, Served, patient};

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event.as_object().unwrap().keys().next().unwrap());
    kinds.map(String::as_str).collect()
}

#[tokio::test]
async fn a_streamed_message_is_a_task_its_artifacts_and_its_end() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        let reply = send(&app.admin(), binding, "SendStreamingMessage", &sent).await;
        let events_sent = events(binding, &reply);
        assert_eq!(
            kinds(&events_sent),
            ["task", "artifactUpdate", "artifactUpdate", "statusUpdate"]
        );
        let [task, answer, decision, status] = &events_sent[..] else { panic!("{events_sent:?}") };
        let (id, context) = (&task["task"]["id"], &task["task"]["contextId"]);
        assert_eq!(task["task"]["status"]["state"], "TASK_STATE_WORKING");
        assert_eq!(answer["artifactUpdate"]["artifact"]["artifactId"], "answer");
        assert_eq!(decision["artifactUpdate"]["lastChunk"], true);
        assert_eq!(status["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
        for update in
            [&answer["artifactUpdate"], &decision["artifactUpdate"], &status["statusUpdate"]]
        {
            assert_eq!((&update["taskId"], &update["contextId"]), (id, context));
        }
        let shown = call(&app.admin(), binding, "GetTask", &json!({ "id": id })).await.unwrap();
        assert_eq!(shown["artifacts"][0], answer["artifactUpdate"]["artifact"]);
        assert_eq!(shown["status"], status["statusUpdate"]["status"]);

        // The same message again: the task has ended.
        let reply = send(&app.admin(), binding, "SendStreamingMessage", &sent).await;
        let again = events(binding, &reply);
        assert_eq!(kinds(&again), ["task"]);
        assert_eq!(again[0]["task"], shown);
    }
}

/// A request of the operator over a connection of its own.
async fn follow(served: &Served, binding: Binding, id: &str, verb: &str) -> Peer {
    let key = jurat_testkit::app::admin_key().reveal();
    let (verb, path, body) = match binding {
        Binding::JsonRpc => {
            let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": { "id": id } });
            ("POST", "/a2a".to_owned(), call.to_string())
        }
        Binding::Http => (verb, format!("/a2a/v1/tasks/{id}:subscribe"), String::new()),
    };
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\na2a-version: 1.0\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    served.says(&(head + &body)).await
}

#[tokio::test]
async fn every_stream_of_a_task_has_the_same_end() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let [fake] = app.executors([gated(says_valid())]).await;
        let mut sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        sent["configuration"] = json!({ "returnImmediately": true });
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        let id = task["id"].as_str().unwrap();
        let served = Served::on(app, patient()).await;
        let mut streams = [
            follow(&served, binding, id, "POST").await,
            follow(&served, binding, id, "POST").await,
            // The protocol names both methods.
            follow(&served, binding, id, "GET").await,
        ];
        for stream in &mut streams {
            stream.until("TASK_STATE_WORKING").await;
        }
        fake.wait_for_calls(1).await;
        fake.release();
        let mut ends = Vec::new();
        for stream in &mut streams {
            let text = stream.until("TASK_STATE_COMPLETED").await;
            let positions = ["artifactUpdate", "statusUpdate"].map(|kind| text.find(kind).unwrap());
            assert!(positions.is_sorted(), "{text}");
            ends.push(text[positions[0]..].split("data: ").count());
        }
        assert!(ends.iter().all(|events| *events == ends[0]), "{ends:?}");
        let params = json!({ "id": id });
        let refusal = call(&served.app.admin(), binding, "SubscribeToTask", &params).await;
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION");
        assert_eq!(refusal.number, if binding == Binding::Http { 400 } else { -32_004 });
    }
}

#[tokio::test]
async fn an_error_within_a_stream_is_one_that_clients_raise() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([gated(says_valid())]).await;
        let request = json!({
            "skill": "validate", "claim": "x", "execution": { "timeout_ms": 300_000 },
        });
        let mut sent = data("m1", &request);
        sent["configuration"] = json!({ "returnImmediately": true });
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        let store = Arc::clone(&app.store);
        let served = Served::on(app, patient()).await;
        let mut stream = follow(&served, binding, task["id"].as_str().unwrap(), "POST").await;
        stream.until("TASK_STATE_WORKING").await;
        store.close().await;
        // Until the task is read again.
        tokio::time::pause();
        let text = stream.until("store_unavailable").await;
        tokio::time::resume();
        // JSON-RPC has a member for it.
        let name = "event: error\n";
        assert_eq!(text.contains(name), binding == Binding::Http, "{text}");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let error: Value = serde_json::from_str(lines.next_back().unwrap()).unwrap();
        let details = match binding {
            Binding::JsonRpc => &error["error"]["data"],
            Binding::Http => &error["error"]["details"],
        };
        assert_eq!(details[0]["metadata"]["code"], "store_unavailable", "{text}");
    }
}
