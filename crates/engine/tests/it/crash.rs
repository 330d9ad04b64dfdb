//! A node that stops between opening and closing a round leaves a trace, and the round is expired.

use jurat_core::{
    code::ProblemCode,
    id::{AccountId, RoundId},
    round::RoundEnding,
};
use jurat_engine::{EngineLimits, SoleNode};
use jurat_store::{Behalf, StoreLocation, TakeoverScope};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_valid},
    unreliable_store::{UnreliableStore, WriteFault},
};
use serde_json::json;

/// A file store with one round that its node left open, as after a kill.
async fn abandoned_round(folder: &std::path::Path) -> RoundId {
    let app = TestApp::with_store(&StoreLocation::File(folder.join("jurat.db"))).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let mut asked = Box::pin(caller.post("/api/v3/validate", &body));
    tokio::select! {
        _ = &mut asked => {}
        () = fake.wait_for_calls(1) => {}
    }
    let list = app.admin().get("/v1/rounds").await.json();
    // The store closes under the running round, so that it can never be closed.
    app.store.close().await;
    RoundId::parse(list["items"][0]["round_id"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn the_next_start_expires_open_rounds_and_writes_their_entries() {
    let folder = tempfile::tempdir().unwrap();
    let id = abandoned_round(folder.path()).await;
    let app = TestApp::with_store(&StoreLocation::File(folder.path().join("jurat.db"))).await;
    app.start(SoleNode::Yes).await;
    let round = app
        .store
        .rounds()
        .get(&Behalf::from(&AccountId::admin()), &AccountId::admin(), &id)
        .await
        .unwrap()
        .unwrap();
    let closing = round.closing.unwrap();
    assert_eq!(closing.ending, RoundEnding::Expired);
    assert_eq!(closing.replicas.len(), round.open.seats.len());
    let entry = app
        .store
        .rounds()
        .entry(&Behalf::from(&AccountId::admin()), &AccountId::admin(), &closing.receipt_id)
        .await
        .unwrap();
    assert_eq!(entry.as_deref(), Some(closing.entry.as_str()));
    let shown = app.admin().get(&format!("/v1/rounds/{id}")).await.json();
    assert_eq!(shown["state"], "expired");
    assert_eq!(shown["verdict"], json!(null));
    assert_eq!(shown["consensus"]["outcome"], "failed");
    assert_eq!(shown["replicas"][0]["error"]["code"], "node_stopped");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn another_node_waits_for_the_lease_before_it_expires_a_round() {
    let folder = tempfile::tempdir().unwrap();
    let id = abandoned_round(folder.path()).await;
    let app = TestApp::with_store(&StoreLocation::File(folder.path().join("jurat.db"))).await;
    assert_eq!(app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 0);
    app.clock.advance_ms(60_000 + 10_000 + 1);
    assert_eq!(app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 1);
    let round = app
        .store
        .rounds()
        .get(&Behalf::from(&AccountId::admin()), &AccountId::admin(), &id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(round.closing.unwrap().ending, RoundEnding::Expired);
}

#[tokio::test]
async fn a_node_that_lost_its_lease_cannot_close_its_round() {
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    let app = TestApp::on(store, EngineLimits::default()).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let asked = caller.post("/api/v3/validate", &body);
    let overtaken = async {
        fake.wait_for_calls(1).await;
        app.clock.advance_ms(70_001);
        assert_eq!(app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 1);
        fake.release();
    };
    let (reply, ()) = tokio::join!(asked, overtaken);
    assert_eq!(reply.json()["code"], "conflict", "{}", reply.text());
    let list = app.admin().get("/v1/rounds").await.json();
    assert_eq!(list["items"][0]["state"], "expired");
}

#[tokio::test]
async fn a_round_that_cannot_be_expired_blocks_no_other() {
    let store = UnreliableStore::new(WriteFault::Refused, 1);
    let app = TestApp::on(store.store(), EngineLimits::default()).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let (one, two) = (app.admin(), app.admin());
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let expired = async || {
        let list = app.admin().get("/v1/rounds").await.json();
        list["items"].as_array().unwrap().iter().filter(|it| it["state"] == "expired").count()
    };
    let swept = async {
        fake.wait_for_calls(2).await;
        app.clock.advance_ms(70_001);
        let error = app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap_err();
        assert_eq!((error.code(), expired().await), (ProblemCode::StoreUnavailable, 1));
        app.clock.advance_ms(30_001);
        assert_eq!(app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 1);
        assert_eq!(expired().await, 2);
        fake.release();
    };
    let asked = (one.post("/api/v3/validate", &body), two.post("/api/v3/validate", &body));
    tokio::join!(asked.0, asked.1, swept);
}

#[tokio::test]
async fn setting_the_clock_does_not_end_an_active_round() {
    const HOUR_MS: i64 = 3_600_000;
    let app = TestApp::on(
        jurat_store::open(&StoreLocation::Memory).await.unwrap(),
        EngineLimits::default(),
    );
    let app = app.await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let (early, late) = (app.admin(), app.admin());
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let set = async {
        fake.wait_for_calls(1).await;
        app.clock.set_by_ms(HOUR_MS);
        assert_eq!(app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 0);
        app.clock.set_by_ms(-2 * HOUR_MS);
        let asked = late.post("/api/v3/validate", &body);
        let swept = async {
            fake.wait_for_calls(2).await;
            assert_eq!(app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 0);
            fake.release();
        };
        tokio::join!(asked, swept).0
    };
    let (first, second) = tokio::join!(early.post("/api/v3/validate", &body), set);
    for reply in [first, second] {
        assert_eq!(reply.json()["verdict"], "VALID", "{}", reply.text());
    }
}

#[tokio::test]
async fn a_round_whose_opening_was_acknowledged_late_still_runs() {
    for fault in [WriteFault::Refused, WriteFault::AnswerLost] {
        let store = UnreliableStore::at_open(fault, 1);
        let app = TestApp::on(store.store(), EngineLimits::default()).await;
        let _fakes = app.executors([says_valid()]).await;
        for key in [None, Some("k")] {
            let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
            let body = json!({ "claim": "x" });
            let reply = app.admin().post_with("/api/v3/validate", &body, &headers).await;
            assert_eq!(reply.json()["verdict"], "VALID", "{fault:?}: {}", reply.text());
            assert!(!reply.headers.contains_key("idempotent-replayed"));
        }
    }
}
