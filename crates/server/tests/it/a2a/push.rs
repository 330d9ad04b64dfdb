//! Push notifications: an agent is told when its task has ended.

use std::time::Duration;

use http::StatusCode;
use jurat_core::{
    account::caller::Scope,
    id::AccountId,
    webhook::{MOST_PER_ACCOUNT, NewPush, PushProof},
};
use jurat_engine::{Clock as _, SoleNode, WebhookSettings};
use jurat_store::{Behalf, PushAdd, Store, WriteFault};
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{hangs, says_valid},
    fake_receiver::{FakeReceiver, ReceivedDelivery, ReceiverAnswer},
};
use serde_json::{Value, json};

use super::{BINDINGS, Binding, call, data};

fn near() -> WebhookSettings {
    let allow = vec!["127.0.0.0/8".parse().unwrap()];
    WebhookSettings { allow, ..Default::default() }
}

/// An application that may notify receivers on this machine.
async fn started() -> TestApp {
    let app = TestApp::with_webhooks(near()).await;
    app.start(SoleNode::Yes).await;
    app
}

async fn receiver() -> FakeReceiver {
    FakeReceiver::start(ReceiverAnswer::Status(200)).await
}

fn claim(id: &str) -> Value {
    data(id, &json!({ "skill": "validate", "claim": "12 * 12 = 144" }))
}

fn claim_with_push(id: &str, push: &Value) -> Value {
    let mut sent = claim(id);
    sent["configuration"] = json!({ "taskPushNotificationConfig": push });
    sent
}

async fn task_of(caller: &TestCaller<'_>, binding: Binding, sent: &Value) -> Value {
    call(caller, binding, "SendMessage", sent).await.unwrap()["task"].clone()
}

fn params(task: &Value, push: &Value) -> Value {
    let mut params = push.clone();
    params["taskId"] = task["id"].clone();
    params
}

#[track_caller]
fn is_end_of(received: &ReceivedDelivery, task: &Value, state: &str) {
    assert_eq!(received.header("content-type"), "application/a2a+json");
    let update = received.json()["statusUpdate"].clone();
    assert_eq!(update["taskId"], task["id"]);
    assert_eq!(update["contextId"], task["contextId"]);
    assert_eq!(update["status"]["state"], state);
    assert_eq!(update["metadata"]["round_id"], task["id"]);
}

#[tokio::test]
async fn the_end_of_a_task_is_told_with_the_proof_that_its_receiver_expects() {
    for binding in BINDINGS {
        let (app, receiver) = (started().await, receiver().await);
        let _fakes = app.executors([says_valid()]).await;
        let push = json!({
            "url": receiver.url(), "token": "sesame",
            "authentication": { "scheme": "Bearer", "credentials": "xyzzy" },
        });
        let task = task_of(&app.admin(), binding, &claim_with_push("m1", &push)).await;
        let received = receiver.until(1).await;
        assert_eq!(received[0].header("x-a2a-notification-token"), "sesame");
        assert_eq!(received[0].header("authorization"), "Bearer xyzzy");
        is_end_of(&received[0], &task, "TASK_STATE_COMPLETED");
        let update = &received[0].json()["statusUpdate"];
        let time = |it: &Value| it["status"]["timestamp"].as_str().unwrap().replace(".000", "");
        assert_eq!(time(update), time(&task));
        assert_eq!(update["metadata"]["verdict"], "VALID");

        // The same message again is the same task, and its end is not told again.
        let again = task_of(&app.admin(), binding, &claim_with_push("m1", &push)).await;
        assert_eq!(again["id"], task["id"]);
        let other = task_of(&app.admin(), binding, &claim_with_push("m2", &push)).await;
        let received = receiver.until(2).await;
        is_end_of(&received[1], &other, "TASK_STATE_COMPLETED");
    }
}

#[tokio::test]
async fn a_task_that_has_ended_is_told_at_once_and_a_cancelled_one_as_cancelled() {
    let (app, receiver) = (started().await, receiver().await);
    let _fakes = app.executors([says_valid()]).await;
    let push = json!({ "url": receiver.url() });
    let ended = task_of(&app.admin(), Binding::Http, &claim("m1")).await;
    let create = "CreateTaskPushNotificationConfig";
    call(&app.admin(), Binding::JsonRpc, create, &params(&ended, &push)).await.unwrap();
    is_end_of(&receiver.until(1).await[0], &ended, "TASK_STATE_COMPLETED");

    let app = started().await;
    let _fakes = app.executors([hangs()]).await;
    let mut sent = claim_with_push("m2", &push);
    sent["configuration"]["returnImmediately"] = json!(true);
    let task = task_of(&app.admin(), Binding::Http, &sent).await;
    call(&app.admin(), Binding::Http, "CancelTask", &json!({ "id": task["id"] })).await.unwrap();
    is_end_of(&receiver.until(2).await[1], &task, "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn configurations_are_added_shown_replaced_and_removed() {
    for binding in BINDINGS {
        let (app, receiver) = (started().await, receiver().await);
        let _fakes = app.executors([says_valid()]).await;
        let admin = app.admin();
        let task = task_of(&admin, binding, &claim("m1")).await;
        let push = json!({
            "id": "c1", "url": receiver.url(), "token": "sesame",
            "authentication": { "scheme": "Bearer", "credentials": "xyzzy" },
        });
        let create = "CreateTaskPushNotificationConfig";
        let added = call(&admin, binding, create, &params(&task, &push)).await.unwrap();
        let expected = json!({
            "id": "c1", "taskId": task["id"], "url": receiver.url(),
            "authentication": { "scheme": "Bearer" },
        });
        assert_eq!(added, expected, "the token and the credentials are not shown");

        let named = json!({ "taskId": task["id"], "id": "c1" });
        let list = |of: Value| json!({ "taskId": of });
        let get = "GetTaskPushNotificationConfig";
        let all = "ListTaskPushNotificationConfigs";
        assert_eq!(call(&admin, binding, get, &named).await.unwrap(), expected);
        let moved = format!("{}/moved", receiver.url());
        let replaced = params(&task, &json!({ "id": "c1", "url": moved }));
        call(&admin, binding, create, &replaced).await.unwrap();
        let found = call(&admin, binding, all, &list(task["id"].clone())).await.unwrap();
        assert_eq!(found["nextPageToken"], "");
        assert_eq!(found["configs"].as_array().unwrap().len(), 1);
        assert_eq!(found["configs"][0]["url"], moved);
        assert_eq!(found["configs"][0].get("authentication"), None);

        let delete = "DeleteTaskPushNotificationConfig";
        for _ in 0..2 {
            assert_eq!(call(&admin, binding, delete, &named).await.unwrap(), json!({}));
        }
        let gone = call(&admin, binding, get, &named).await.unwrap_err();
        assert_eq!((gone.code.as_str(), gone.reason.as_str()), ("not_found", "TASK_NOT_FOUND"));
        assert_eq!(gone.number, if binding == Binding::Http { 404 } else { -32_001 });
        assert!(gone.message.contains("push notification `c1`"), "{gone:?}");
    }
}

#[tokio::test]
async fn a_configuration_waits_once_for_the_end_of_its_task() {
    let (app, receiver) = (started().await, receiver().await);
    let _fakes = app.executors([hangs()]).await;
    let admin = app.admin();
    let mut sent = claim("m1");
    sent["configuration"] = json!({ "returnImmediately": true });
    let task = task_of(&admin, Binding::Http, &sent).await;
    let create = "CreateTaskPushNotificationConfig";
    let push = |id: &str| params(&task, &json!({ "id": id, "url": receiver.url() }));
    let waiting = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    call(&admin, Binding::Http, create, &push("c1")).await.unwrap();
    let before = waiting();
    for number in 0..50 {
        call(&admin, Binding::Http, create, &push("c1")).await.unwrap();
        let other = push(&number.to_string());
        call(&admin, Binding::Http, create, &other).await.unwrap();
        call(&admin, Binding::Http, "DeleteTaskPushNotificationConfig", &other).await.unwrap();
    }
    let ending = async {
        while before + 10 < waiting() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ending).await.unwrap();
    call(&admin, Binding::Http, "CancelTask", &json!({ "id": task["id"] })).await.unwrap();
    is_end_of(&receiver.until(1).await[0], &task, "TASK_STATE_CANCELED");
    app.engine.shutdown().await;
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn a_private_address_is_refused_before_the_task_begins() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        for url in ["http://127.0.0.1:9/x", "https://10.0.0.1/x", "https://localhost/x", "nowhere"]
        {
            let sent = claim_with_push("m1", &json!({ "url": url }));
            let refused = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap_err();
            assert_eq!(refused.code, "validation_error", "{url}");
            assert_eq!(
                refused.field.as_deref(),
                Some("configuration.taskPushNotificationConfig.url"),
                "{url}"
            );
        }
        let rounds = app.admin().get("/v1/rounds").await.json();
        assert_eq!(rounds["items"], json!([]));
    }
}

#[tokio::test]
async fn another_account_finds_neither_the_task_nor_its_configurations() {
    for binding in BINDINGS {
        let (app, receiver) = (started().await, receiver().await);
        let _fakes = app.executors([says_valid()]).await;
        let task = task_of(&app.admin(), binding, &claim("m1")).await;
        let push = params(&task, &json!({ "id": "c1", "url": receiver.url() }));
        call(&app.admin(), binding, "CreateTaskPushNotificationConfig", &push).await.unwrap();
        let other = app.caller("other", &Scope::OWN).await;
        for method in [
            "CreateTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfigs",
            "DeleteTaskPushNotificationConfig",
        ] {
            let refused = call(&other, binding, method, &push).await.unwrap_err();
            assert_eq!(refused.reason, "TASK_NOT_FOUND", "{method}");
        }
        // Who may not read a task is not told about it.
        let blind = app.caller("blind", &[Scope::RoundsCreate]).await;
        let sent = claim_with_push("m1", &json!({ "url": receiver.url() }));
        let refused = call(&blind, binding, "SendMessage", &sent).await.unwrap_err();
        assert_eq!(refused.code, "forbidden");
    }
    let app = TestApp::new().await;
    let reply = app.anonymous().get("/a2a/v1/tasks/rnd_x/pushNotificationConfigs").await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_task_has_few_push_notifications_and_they_are_no_webhooks() {
    let (app, receiver) = (started().await, receiver().await);
    let _fakes = app.executors([says_valid()]).await;
    let admin = app.admin();
    let task = task_of(&admin, Binding::Http, &claim("m1")).await;
    let create = "CreateTaskPushNotificationConfig";
    let push = |id: &str| params(&task, &json!({ "id": id, "url": receiver.url() }));
    for number in 0..10 {
        call(&admin, Binding::Http, create, &push(&number.to_string())).await.unwrap();
    }
    let refused = call(&admin, Binding::Http, create, &push("one more")).await.unwrap_err();
    assert_eq!(refused.code, "conflict");
    assert!(refused.message.contains("10 push notifications"), "{}", refused.message);
    // The limit does not keep a configuration from being replaced.
    call(&admin, Binding::Http, create, &push("0")).await.unwrap();

    let webhooks = admin.get("/v1/webhooks").await.json();
    assert_eq!(webhooks["items"], json!([]));
    let id = jurat_core::webhook::push_id(task["id"].as_str().unwrap(), "0");
    assert_eq!(admin.get(&format!("/v1/webhooks/{id}")).await.status, StatusCode::NOT_FOUND);
    let rotated = admin.post(&format!("/v1/webhooks/{id}/rotate"), &json!({})).await;
    assert_eq!(rotated.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_account_at_its_limit_is_refused_before_the_task_begins() {
    let app = TestApp::with_webhooks(near()).await;
    let _fakes = app.executors([says_valid()]).await;
    let (account, at) = (AccountId::admin(), app.clock.now());
    let proof = PushProof { context_id: String::new(), token: None, authorization: None };
    let push = NewPush { name: None, url: "https://example.com/".to_owned(), proof };
    let fill = async |numbers: std::ops::Range<u32>, at| {
        for number in numbers {
            let webhook = push.webhook(&account, &format!("rnd_{number}"), at);
            let add = PushAdd { webhook, secret: push.proof.to_secret(), stale_before: at };
            let behalf = Behalf::Account(account.clone());
            app.store.webhooks().add_push(&behalf, &add, None).await.unwrap();
        }
    };
    fill(0..MOST_PER_ACCOUNT, at).await;
    for binding in BINDINGS {
        let sent = claim_with_push("m1", &json!({ "url": "http://127.0.0.1:9/x" }));
        let refused = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap_err();
        assert_eq!(refused.code, "conflict", "{refused:?}");
        assert!(refused.message.contains("1000 push notifications"), "{refused:?}");
    }
    let rounds = app.admin().get("/v1/rounds").await.json();
    assert_eq!(rounds["items"], json!([]));
    // Old ones make room.
    app.clock.advance_ms(8 * 24 * 60 * 60 * 1_000);
    let sent = claim_with_push("m1", &json!({ "url": "http://127.0.0.1:9/x" }));
    let task = task_of(&app.admin(), Binding::Http, &sent).await;
    assert_eq!(task["metadata"].get("push_problem"), None, "{task}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_task_is_returned_even_if_its_configuration_cannot_be_added() {
    for binding in BINDINGS {
        let store = Store::in_memory().unwrap().with_faults(std::sync::Arc::new(|operation| {
            (operation == ("webhooks", "add_push")).then_some(WriteFault::Refused)
        }));
        let app = TestApp::sending(std::sync::Arc::new(store), near()).await;
        let _fakes = app.executors([says_valid()]).await;
        let sent = claim_with_push("m1", &json!({ "url": "http://127.0.0.1:9/x" }));
        let task = task_of(&app.admin(), binding, &sent).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        assert!(task["metadata"]["push_problem"].is_string(), "{task}");
        let again = task_of(&app.admin(), binding, &sent).await;
        assert_eq!(again["id"], task["id"], "nothing is paid twice");
        app.engine.shutdown().await;
    }
}

#[tokio::test]
async fn a_receiver_that_is_gone_removes_the_configuration_and_nothing_else_happens() {
    let (app, works) = (started().await, receiver().await);
    let _fakes = app.executors([says_valid()]).await;
    let key = crate::v1::logins::registered(&app, "ann@example.com").await;
    let ann = app.with_key(&key);
    let gone = FakeReceiver::start(ReceiverAnswer::Status(410)).await;
    let events = json!({ "url": works.url(), "events": ["webhook.disabled"] });
    let webhook = ann.post("/v1/webhooks", &events).await;
    assert_eq!(webhook.status, StatusCode::CREATED, "{}", webhook.text());
    let amount = json!({ "amount_usd": "1.00" });
    let account = ann.get("/v1/me").await.json()["id"].as_str().unwrap().to_owned();
    app.admin().post(&format!("/v1/accounts/{account}/grants"), &amount).await;
    let sent = claim_with_push("m1", &json!({ "id": "c1", "url": gone.url() }));
    let task = task_of(&ann, Binding::Http, &sent).await;
    gone.until(1).await;
    let list = json!({ "taskId": task["id"] });
    let removed = async {
        let all = "ListTaskPushNotificationConfigs";
        while call(&ann, Binding::Http, all, &list).await.unwrap()["configs"] != json!([]) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), removed).await.unwrap();
    let doctor = app.admin().get("/v1/doctor").await.json().to_string();
    assert!(!doctor.contains("disabled because they failed"), "{doctor}");
    app.engine.shutdown().await;
    assert_eq!(app.outbox.addressees(), [] as [&str; 0], "it is no webhook of its owner");
    assert_eq!(works.received().len(), 0);
}
