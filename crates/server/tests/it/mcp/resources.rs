//! Resources: pages of the documentation, and the rounds of the account.

use jurat_core::account::caller::Scope;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::{Value, json};

use super::{ERAS, MODERN, ask, call, result};

fn uris(listed: &Value) -> Vec<String> {
    let resources = listed["resources"].as_array().unwrap();
    resources.iter().map(|it| it["uri"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_documentation_can_be_listed_and_read() {
    let app = TestApp::new().await;
    let reader = app.caller("reader", &[Scope::UsageRead]).await;
    for era in ERAS {
        let listed = result(&ask(&reader, era, "resources/list", json!({})).await);
        let uris = uris(&listed);
        assert!(uris.contains(&"jurat://docs/consensus".to_owned()), "{uris:?}");
        for uri in uris {
            let read = result(&ask(&reader, era, "resources/read", json!({ "uri": uri })).await);
            let page = &read["contents"][0];
            assert_eq!((&page["uri"], &page["mimeType"]), (&json!(uri), &json!("text/markdown")));
            assert!(page["text"].as_str().unwrap().starts_with("# "), "{uri}");
        }
        let templates = result(&ask(&reader, era, "resources/templates/list", json!({})).await);
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "jurat://rounds/{round_id}");
    }
}

#[tokio::test]
async fn a_round_is_a_resource_of_its_account() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let scopes = [Scope::RoundsCreate, Scope::RoundsRead];
    let (alice, bob) = (app.caller("alice", &scopes).await, app.caller("bob", &scopes).await);
    let done = call(&alice, MODERN, "validate", &json!({ "claim": "x" })).await;
    let id = done["structuredContent"]["round_id"].as_str().unwrap();
    let uri = format!("jurat://rounds/{id}");
    let stored = alice.get(&format!("/v1/rounds/{id}")).await.json();
    for era in ERAS {
        assert!(uris(&result(&ask(&alice, era, "resources/list", json!({})).await)).contains(&uri));
        assert!(!uris(&result(&ask(&bob, era, "resources/list", json!({})).await)).contains(&uri));
        let read = result(&ask(&alice, era, "resources/read", json!({ "uri": uri })).await);
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), stored);
        assert!(read["contents"][0]["_meta"]["jurat/untrusted"].is_string(), "{read}");
        // A round of another account is as unknown as one that never was.
        let code = if era == MODERN { -32602 } else { -32002 };
        for other in [uri.as_str(), "jurat://rounds/nothing", "jurat://docs/nothing", "file:///etc"]
        {
            let reply = ask(&bob, era, "resources/read", json!({ "uri": other })).await;
            let error = &reply.json()["error"];
            assert_eq!(error["code"], code, "{other}: {}", reply.text());
            assert_eq!(error["data"]["uri"], other, "{}", reply.text());
            assert_eq!(error["data"]["code"], "not_found", "{}", reply.text());
        }
    }
}

#[tokio::test]
async fn a_long_list_of_rounds_comes_in_pages() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    for _ in 0..21 {
        app.clock.advance_ms(1_000);
        app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await;
    }
    let first = result(&ask(&app.admin(), MODERN, "resources/list", json!({})).await);
    let cursor = first["nextCursor"].as_str().unwrap();
    let next = json!({ "cursor": cursor });
    let second = result(&ask(&app.admin(), MODERN, "resources/list", next).await);
    assert_eq!(uris(&second).len(), 1, "{second}");
    assert!(second.get("nextCursor").is_none() && !uris(&first).contains(&uris(&second)[0]));
    let wrong = ask(&app.admin(), MODERN, "resources/list", json!({ "cursor": "x" })).await;
    assert_eq!(wrong.json()["error"]["code"], -32602, "{}", wrong.text());
}
