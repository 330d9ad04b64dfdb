//! Contexts belong to accounts and hold the tasks that joined them.

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::{EngineLimits, StorageTerms};
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{gated, says_valid},
};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{BINDINGS, Binding, call, data};

fn in_context(id: &str, context: &Value) -> Value {
    let mut sent = data(id, &json!({ "skill": "validate", "claim": id }));
    sent["message"]["contextId"] = context.clone();
    sent
}

#[tokio::test]
async fn a_message_joins_a_context_and_the_list_finds_its_tasks() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let admin = app.admin();
        let ask = async |sent: &Value| {
            app.clock.advance_ms(1_000);
            call(&app.admin(), binding, "SendMessage", sent).await.unwrap()["task"].clone()
        };
        let first = ask(&data("m1", &json!({ "skill": "validate", "claim": "x" }))).await;
        let alone = ask(&data("m2", &json!({ "skill": "validate", "claim": "y" }))).await;
        let context = &first["contextId"];
        assert_ne!(alone["contextId"], *context);
        let second = ask(&in_context("m3", context)).await;
        let third = ask(&in_context("m4", context)).await;
        assert_eq!((&second["contextId"], &third["contextId"]), (context, context));
        assert_eq!(ask(&in_context("m4", context)).await["id"], third["id"], "the same message");
        let shown = call(&admin, binding, "GetTask", &json!({ "id": third["id"] })).await.unwrap();
        assert_eq!(shown["contextId"], *context);

        let listed = async |params: Value| {
            let page = call(&app.admin(), binding, "ListTasks", &params).await.unwrap();
            let ids: Vec<Value> =
                page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
            (ids, page["totalSize"].clone(), page["nextPageToken"].as_str().unwrap().to_owned())
        };
        let (ids, total, next) = listed(json!({ "contextId": context })).await;
        assert_eq!(ids, [&third, &second, &first].map(|task| task["id"].clone()));
        assert_eq!((total, next.as_str()), (json!(3), ""));
        let (ids, _, next) = listed(json!({ "contextId": context, "pageSize": 2 })).await;
        assert_eq!(ids, [&third, &second].map(|task| task["id"].clone()));
        let (ids, _, next) =
            listed(json!({ "contextId": context, "pageSize": 2, "pageToken": next })).await;
        assert_eq!((ids, next.as_str()), (vec![first["id"].clone()], ""));
        let working = json!({ "contextId": context, "status": "TASK_STATE_WORKING" });
        assert_eq!(listed(working).await.0, [] as [Value; 0]);
        assert_eq!(listed(json!({ "contextId": "mine" })).await.0, [] as [Value; 0]);
    }
}

async fn ask(caller: &TestCaller<'_>, binding: Binding, sent: &Value) -> Value {
    call(caller, binding, "SendMessage", sent).await.unwrap()["task"].clone()
}

/// The tasks of a context.
async fn listed(caller: &TestCaller<'_>, binding: Binding, context: &Value) -> Vec<Value> {
    let mut params = json!({ "contextId": context });
    if binding == Binding::Http {
        let bytes = context.as_str().unwrap().as_bytes();
        params["contextId"] = json!(form_urlencoded::byte_serialize(bytes).collect::<String>());
    }
    let page = call(caller, binding, "ListTasks", &params).await.unwrap();
    let tasks = page["tasks"].as_array().unwrap();
    assert_eq!(page["totalSize"], tasks.len());
    tasks.iter().map(|task| task["id"].clone()).collect()
}

#[tokio::test]
async fn a_caller_may_make_up_a_context() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let admin = app.admin();
        let sent = data("m0", &json!({ "skill": "validate", "claim": "x" }));
        let first = ask(&admin, binding, &sent).await;
        let joined = ask(&admin, binding, &in_context("m0", &first["contextId"])).await;
        for context in [
            "ctx_01ARZ3NDEKTSV4RRFFQ69G5FAV",
            // A task that joined a context began none.
            &joined["id"].as_str().unwrap().replace("rnd_", "ctx_"),
            "my own context: Zürich",
            // Texts that a key must not confuse.
            "new",
            "a",
            "a:b",
            "a:b:",
        ] {
            let context = json!(context);
            assert_eq!(listed(&admin, binding, &context).await, [] as [Value; 0], "{context}");
            // The id of a message is unique in its context, so this is another message each time.
            let task = ask(&admin, binding, &in_context("m1", &context)).await;
            assert_eq!(task["contextId"], context);
            assert_eq!(ask(&admin, binding, &in_context("m1", &context)).await, task);
            let shown = call(&admin, binding, "GetTask", &json!({ "id": task["id"] })).await;
            assert_eq!(shown.unwrap(), task);
            assert_eq!(listed(&admin, binding, &context).await, [task["id"].clone()], "{context}");
        }
        for context in ["x".repeat(201), "a\nb".to_owned()] {
            let sent = in_context("m2", &json!(context));
            let refusal = call(&admin, binding, "SendMessage", &sent).await.unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("message.contextId"), "{refusal:?}");
        }
    }
}

#[tokio::test]
async fn the_same_text_is_another_context_in_another_account() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let scopes = [Scope::RoundsCreate, Scope::RoundsRead];
        let (alice, bob) = (app.caller("alice", &scopes).await, app.caller("bob", &scopes).await);
        let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        let first = ask(&alice, binding, &sent).await;
        ask(&alice, binding, &in_context("m1", &json!("mine"))).await;
        for context in [first["contextId"].clone(), json!("mine")] {
            let of_alice = listed(&alice, binding, &context).await;
            assert_eq!(of_alice.len(), 1);
            assert_eq!(listed(&bob, binding, &context).await, [] as [Value; 0]);
            let task = ask(&bob, binding, &in_context("m1", &context)).await;
            assert_eq!(task["contextId"], context);
            assert_eq!(listed(&bob, binding, &context).await, [task["id"].clone()]);
            assert_eq!(listed(&alice, binding, &context).await, of_alice);
        }
    }
}

#[tokio::test]
async fn a_server_that_keeps_no_requests_remembers_no_contexts() {
    let storage = StorageTerms { keeps_requests: false, ..StorageTerms::default() };
    let app = TestApp::with_limits(EngineLimits { storage, ..EngineLimits::default() }).await;
    let _fakes = app.executors([says_valid()]).await;
    for binding in BINDINGS {
        let sent = in_context("m1", &json!("mine"));
        let refusal = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("message.contextId"));
        assert!(refusal.message.contains("this server keeps no requests"), "{refusal:?}");
    }
}

#[tokio::test]
async fn the_task_of_a_context_that_changed_last_comes_first_on_every_page() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let [fake] = app.executors([gated(says_valid())]).await;
        let mut first = in_context("m1", &json!("mine"));
        first["configuration"] = json!({ "returnImmediately": true });
        let slow =
            call(&app.admin(), binding, "SendMessage", &first).await.unwrap()["task"].clone();
        fake.wait_for_calls(1).await;
        let mut made = Vec::new();
        for id in ["m2", "m3"] {
            app.clock.advance_ms(1_000);
            let mut sent = in_context(id, &json!("mine"));
            sent["configuration"] = json!({ "returnImmediately": true });
            let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
            let task = json!({ "id": task["task"]["id"] });
            call(&app.admin(), binding, "CancelTask", &task).await.unwrap();
            made.push(task["id"].clone());
        }
        app.clock.advance_ms(1_000);
        fake.release();
        app.engine.drain().await;
        let expected = [slow["id"].clone(), made[1].clone(), made[0].clone()];
        let mut params = json!({ "contextId": "mine", "pageSize": 1 });
        for (index, id) in expected.iter().enumerate() {
            let page = call(&app.admin(), binding, "ListTasks", &params).await.unwrap();
            assert_eq!((&page["tasks"][0]["id"], &page["totalSize"]), (id, &json!(3)), "{index}");
            params["pageToken"] = page["nextPageToken"].clone();
        }
        assert_eq!(params["pageToken"], "");
    }
}

#[tokio::test]
async fn a_task_takes_no_second_message() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        let mut more = data("m2", &json!({ "skill": "validate", "claim": "y" }));
        more["message"]["taskId"] = task["id"].clone();
        let refusal = call(&app.admin(), binding, "SendMessage", &more).await.unwrap_err();
        assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION");
        assert!(refusal.message.contains("has ended"), "{refusal:?}");
        more["message"]["contextId"] = json!("ctx_01ARZ3NDEKTSV4RRFFQ69G5FAV");
        let refusal = call(&app.admin(), binding, "SendMessage", &more).await.unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("message.contextId"));
        more["message"]["taskId"] = json!("rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV");
        let refusal = call(&app.admin(), binding, "SendMessage", &more).await.unwrap_err();
        assert_eq!(refusal.reason, "TASK_NOT_FOUND");
    }
}

#[tokio::test]
async fn an_erased_task_is_alone_in_its_own_context() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let binding = BINDINGS[0];
    let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
    let first = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
    let sent = in_context("m2", &first["contextId"]);
    let second = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
    let path = format!("/v1/rounds/{}/payload", second["id"].as_str().unwrap());
    assert_eq!(app.admin().delete(&path).await.status, StatusCode::OK);
    let shown = call(&app.admin(), binding, "GetTask", &json!({ "id": second["id"] })).await;
    let shown = shown.unwrap();
    assert_ne!(shown["contextId"], first["contextId"]);
    assert_eq!(shown.get("history"), None);
    let listed = json!({ "contextId": first["contextId"] });
    let page = call(&app.admin(), binding, "ListTasks", &listed).await.unwrap();
    assert_eq!(page["tasks"].as_array().unwrap().len(), 1);
}
