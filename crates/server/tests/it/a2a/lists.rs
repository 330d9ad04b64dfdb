//! Lists of tasks: of one account, filtered and in pages.

use jurat_core::account::caller::Scope;
use jurat_engine::EngineLimits;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, gated, says_valid},
};
use serde_json::{Value, json};

use super::{BINDINGS, Binding, call, data, read, send};

fn ids(page: &Value) -> Vec<&str> {
    page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tasks_are_listed_newest_first_in_pages_and_by_state() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let [fake] = app.executors([says_valid()]).await;
        let mut made = Vec::new();
        for index in 0..5 {
            app.clock.advance_ms(1_000);
            let sent = data(&format!("m{index}"), &json!({ "skill": "validate", "claim": "x" }));
            let reply = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
            made.insert(0, reply["task"].clone());
        }
        let list =
            async |params: Value| call(&app.admin(), binding, "ListTasks", &params).await.unwrap();
        let newest: Vec<&str> = made.iter().map(|task| task["id"].as_str().unwrap()).collect();
        let page = list(json!({})).await;
        assert_eq!(ids(&page), newest);
        assert_eq!(
            (&page["pageSize"], &page["totalSize"], &page["nextPageToken"]),
            (&json!(50), &json!(5), &json!(""))
        );
        assert_eq!(page["tasks"][0].get("artifacts"), None);
        assert_eq!(page["tasks"][0].get("history"), None, "nobody asked for it");
        let told = list(json!({ "historyLength": 1, "pageSize": 100 })).await;
        assert_eq!(told["tasks"][0]["history"][0]["messageId"], "m4");
        assert_eq!(told["pageSize"], 20, "messages may be large");
        let whole = list(json!({ "includeArtifacts": true, "pageSize": 100 })).await;
        assert_eq!(whole["tasks"][0]["artifacts"], made[0]["artifacts"]);
        assert_eq!(whole["pageSize"], 20, "artifacts may be large");

        let first = list(json!({ "pageSize": 3 })).await;
        assert_eq!(ids(&first), newest[..3]);
        assert_eq!(first["totalSize"], 5);
        let second = list(json!({ "pageSize": 3, "pageToken": first["nextPageToken"] })).await;
        assert_eq!((ids(&second), &second["nextPageToken"]), (newest[3..].to_vec(), &json!("")));

        let since = &made[1]["status"]["timestamp"];
        assert_eq!(ids(&list(json!({ "statusTimestampAfter": since })).await), newest[..2]);
        let page = list(json!({ "status": "TASK_STATE_COMPLETED", "pageSize": 1 })).await;
        assert_eq!((ids(&page), &page["totalSize"]), (newest[..1].to_vec(), &json!(5)));
        let every = list(json!({ "status": "TASK_STATE_UNSPECIFIED" })).await;
        assert_eq!(ids(&every), newest);
        for state in ["TASK_STATE_WORKING", "TASK_STATE_FAILED", "TASK_STATE_INPUT_REQUIRED"] {
            let page = list(json!({ "status": state })).await;
            assert_eq!((ids(&page).len(), &page["totalSize"]), (0, &json!(0)), "{state}");
        }
        fake.set(gated(says_valid()));
        let mut sent = data("last", &json!({ "skill": "validate", "claim": "x" }));
        sent["configuration"] = json!({ "returnImmediately": true });
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
        let page = list(json!({ "status": "TASK_STATE_WORKING" })).await;
        assert_eq!(ids(&page), [task["task"]["id"].as_str().unwrap()]);
        fake.release();
        app.engine.drain().await;
    }
}

#[tokio::test]
async fn a_wrong_filter_is_refused_by_name() {
    let app = TestApp::new().await;
    for binding in BINDINGS {
        for (params, field) in [
            (json!({ "pageSize": 0 }), "pageSize"),
            (json!({ "pageSize": 101 }), "pageSize"),
            (json!({ "historyLength": -1 }), "historyLength"),
            (json!({ "status": "TASK_STATE_RUNNING" }), "status"),
            (json!({ "statusTimestampAfter": "yesterday" }), "statusTimestampAfter"),
            (json!({ "pageToken": "nonsense" }), "pageToken"),
        ] {
            let refusal = call(&app.admin(), binding, "ListTasks", &params).await.unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some(field), "{params}");
            assert_eq!(refusal.code, "validation_error", "{params}");
        }
    }
}

#[tokio::test]
async fn a_task_of_another_account_does_not_exist() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let scopes = [Scope::RoundsCreate, Scope::RoundsRead];
        let (alice, bob) = (app.caller("alice", &scopes).await, app.caller("bob", &scopes).await);
        let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        let task = call(&alice, binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        let unknown = "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV";
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            let hidden = call(&bob, binding, method, &json!({ "id": task["id"] })).await;
            let absent = call(&bob, binding, method, &json!({ "id": unknown })).await;
            let (mut hidden, absent) = (hidden.unwrap_err(), absent.unwrap_err());
            hidden.message = hidden.message.replace(task["id"].as_str().unwrap(), unknown);
            assert_eq!(hidden, absent, "{method}");
            assert_eq!(absent.reason, "TASK_NOT_FOUND", "{method}");
            let strange = call(&bob, binding, method, &json!({ "id": "mine" })).await;
            assert_eq!(strange.unwrap_err().reason, "TASK_NOT_FOUND", "{method}");
        }
        let page = call(&bob, binding, "ListTasks", &json!({})).await.unwrap();
        assert_eq!((ids(&page).len(), &page["totalSize"]), (0, &json!(0)));
        assert_eq!(ids(&call(&alice, binding, "ListTasks", &json!({})).await.unwrap()).len(), 1);
    }
}

#[tokio::test]
async fn rounds_of_tasks_of_jurat_are_neither_listed_nor_counted() {
    let app = TestApp::new().await;
    crate::v1::tasks::life(&app).await;
    assert_eq!(app.admin().get("/v1/rounds").await.json()["items"].as_array().unwrap().len(), 3);
    let sent = data("m1", &json!({ "skill": "validate", "claim": "x", "session_id": "s2" }));
    for binding in BINDINGS {
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
        let page = call(&app.admin(), binding, "ListTasks", &json!({})).await.unwrap();
        assert_eq!(ids(&page), [task["task"]["id"].as_str().unwrap()]);
        assert_eq!(page["totalSize"], 1);
    }
}

/// Tasks in one context, newest first.
async fn made(app: &TestApp, binding: Binding, count: u32) -> Vec<String> {
    let mut made = Vec::new();
    for number in 0..count {
        app.clock.advance_ms(1_000);
        let mut sent =
            data(&format!("m{number}"), &json!({ "objective": "Write.", "skill": "delegate" }));
        sent["message"]["contextId"] = json!("mine");
        let reply = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
        made.insert(0, reply["task"]["id"].as_str().unwrap().to_owned());
    }
    made
}

#[tokio::test]
async fn a_page_of_large_tasks_is_short_and_the_next_one_goes_on() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([answers(json!({ "answer": "x".repeat(900_000) }))]).await;
        let made = made(&app, binding, 5).await;
        for mut asked in [json!({}), json!({ "contextId": "mine" })] {
            asked["includeArtifacts"] = json!(true);
            let (mut found, mut pages) = (Vec::new(), 0);
            loop {
                let page = call(&app.admin(), binding, "ListTasks", &asked).await.unwrap();
                assert!(page.to_string().len() < 8 * 1024 * 1024, "{}", page.to_string().len());
                found.extend(ids(&page).into_iter().map(str::to_owned));
                pages += 1;
                let next = page["nextPageToken"].as_str().unwrap();
                if next.is_empty() {
                    break;
                }
                asked["pageToken"] = json!(next);
            }
            assert_eq!(found, made);
            assert!((2..=5).contains(&pages), "{pages}");
        }
    }
}

#[tokio::test]
async fn a_page_has_its_members_in_the_order_of_their_names() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "answer": "four" }))]).await;
    made(&app, Binding::Http, 1).await;
    for binding in BINDINGS {
        let params = json!({ "includeArtifacts": true, "historyLength": 1 });
        let reply = send(&app.admin(), binding, "ListTasks", &params).await;
        assert_eq!(reply.text(), reply.json().to_string());
        assert_eq!(ids(&read(binding, &reply).unwrap()).len(), 1);
    }
}

#[tokio::test]
async fn a_page_of_tasks_counts_in_the_memory_of_its_account() {
    let bytes_per_account = 3 * 1024 * 1024;
    let limits = EngineLimits { bytes_per_account, ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let _fakes = app.executors([answers(json!({ "answer": "x".repeat(900_000) }))]).await;
    made(&app, Binding::Http, 1).await;
    for binding in BINDINGS {
        let brief = call(&app.admin(), binding, "ListTasks", &json!({})).await.unwrap();
        assert_eq!(ids(&brief).len(), 1);
        let whole = json!({ "includeArtifacts": true });
        let refused = call(&app.admin(), binding, "ListTasks", &whole).await.unwrap_err();
        assert_eq!(refused.code, "rate_limited", "{refused:?}");
        assert!(refused.message.contains("3145728 bytes"), "{refused:?}");
    }
}
