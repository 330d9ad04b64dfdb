//! Contexts belong to accounts and hold the tasks that joined them.

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::{Value, json};

use super::{BINDINGS, call, data};

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

#[tokio::test]
async fn a_context_that_the_account_does_not_have_is_refused() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let scopes = [Scope::RoundsCreate, Scope::RoundsRead];
        let (alice, bob) = (app.caller("alice", &scopes).await, app.caller("bob", &scopes).await);
        let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        let first = call(&alice, binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        let sent = in_context("m2", &first["contextId"]);
        let joined = call(&alice, binding, "SendMessage", &sent).await;
        let joined = joined.unwrap()["task"]["id"].as_str().unwrap().replace("rnd_", "ctx_");
        let unknown = json!("ctx_01ARZ3NDEKTSV4RRFFQ69G5FAV");
        for (caller, context) in [
            (&bob, first["contextId"].clone()),
            (&bob, unknown.clone()),
            (&alice, unknown),
            (&alice, json!("my own context")),
            // A task that joined a context began none.
            (&alice, json!(joined)),
        ] {
            let sent = in_context("m3", &context);
            let refusal = call(caller, binding, "SendMessage", &sent).await.unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("message.contextId"), "{context}");
            assert!(refusal.message.contains("is not a context of this account"), "{refusal:?}");
        }
        let listed = json!({ "contextId": first["contextId"] });
        let page = call(&bob, binding, "ListTasks", &listed).await.unwrap();
        assert_eq!((&page["tasks"], &page["totalSize"]), (&json!([]), &json!(0)));
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
