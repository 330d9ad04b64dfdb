//! Nodes and executors that vanish, stall or are given up.

use std::time::Duration;

use jurat_core::{
    account::caller::{Caller, CallerKey, CreditMode, Scope},
    id::AccountId,
    peer::terms::PeerTerms,
    round::RoundFilter,
};
use jurat_engine::Failpoints;
use jurat_store::{Behalf, StoreLocation};
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{FakeExecutor, gated, hangs, html, says_valid, status},
};
use serde_json::{Value, json};

use super::{PRICE, Pair, ended, hire, id, jobs, join, lend, replica, trust, validate};

async fn validate_within(app: &TestApp, timeout_ms: u64) -> Value {
    let body = json!({
        "claim": "x", "consensus": { "session_pool": ["far"] },
        "execution": { "timeout_ms": timeout_ms },
    });
    ended(&app.admin().post("/api/v3/validate", &body).await)
}

#[tokio::test]
async fn a_failure_of_the_executor_over_there_is_named_here_and_paid_by_nobody() {
    let pair = Pair::new(html()).await;
    assert_eq!(replica(&pair.validate().await), ("ERROR", Some("not_json")));
    pair.executor.set(status(500));
    assert_eq!(replica(&pair.validate().await), ("ERROR", Some("http_status")));
    assert_eq!(pair.books().await.map(|books| books.owed_jobs + books.earned_jobs), [0, 0]);
}

#[tokio::test]
async fn an_executor_that_hangs_over_there_is_a_timeout_here() {
    let pair = Pair::new(hangs()).await;
    let round = validate_within(&pair.hirer, 500).await;
    assert_eq!(replica(&round), ("TIMEOUT", Some("timeout")));
    assert_eq!(pair.books().await.map(|books| books.owed_jobs + books.earned_jobs), [0, 0]);
}

#[tokio::test]
async fn a_node_that_is_gone_is_unreachable() {
    let pair = Pair::new(says_valid()).await;
    assert_eq!(pair.validate().await["verdict"], "VALID");
    pair.lender.engine.shutdown().await;
    let round = validate_within(&pair.hirer, 2_000).await;
    let (label, code) = replica(&round);
    assert!(["ERROR", "TIMEOUT"].contains(&label), "{round}");
    assert!(["unreachable", "disconnected", "timeout"].contains(&code.unwrap()), "{round}");
}

#[tokio::test]
async fn a_spare_takes_the_seat_of_a_node_that_refuses() {
    let pair = Pair::new(says_valid()).await;
    let near = pair.hirer.executors([says_valid()]).await;
    pair.lender.engine.peer_block(&admin_caller(), &id(&pair.hirer)).await.unwrap();
    let terms = json!({ "session_pool": ["far", "s1"], "replicas": 1, "spares": 1 });
    let body = json!({ "claim": "x", "consensus": terms });
    let round = ended(&pair.hirer.admin().post("/api/v3/validate", &body).await);
    assert_eq!(round["verdict"], "VALID", "{round}");
    assert_eq!(jobs(&near[0]).len(), 1);
}

#[tokio::test]
async fn a_round_that_is_cancelled_here_is_cancelled_there() {
    let pair = Pair::new(gated(says_valid())).await;
    let admin = pair.hirer.admin();
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["far"] } });
    let prefer = [("prefer", "respond-async")];
    let begun = admin.send("POST", "/api/v3/validate", body.to_string().into(), &prefer).await;
    assert_eq!(begun.status.as_u16(), 202, "{}", begun.text());
    pair.executor.wait_for_calls(1).await;
    let path = format!("/v1/rounds/{}/cancel", begun.json()["round_id"].as_str().unwrap());
    assert_eq!(admin.post(&path, &json!({})).await.status.as_u16(), 200);
    // The executor over there is no longer waited for.
    pair.executor.abandoned(1).await;
    let account = id(&pair.hirer).account();
    let behalf = Behalf::Account(account.clone());
    let filter = RoundFilter { limit: 10, ..RoundFilter::default() };
    let mut ended = pair.lender.store.rounds().list(&behalf, &account, &filter).await.unwrap();
    let open = ended.remove(0).open.id;
    let (engine, reader) = (&pair.lender.engine, reader(&account));
    let ended = engine.round_wait(&reader, &open, Duration::from_secs(10)).await.unwrap();
    let closing = ended.closing.unwrap();
    assert_eq!(closing.ending.as_str(), "cancelled");
    assert_eq!(pair.books().await.map(|books| books.owed_jobs + books.earned_jobs), [0, 0]);
}

/// A caller that reads the rounds of an account.
fn reader(account: &AccountId) -> Caller {
    #[expect(clippy::disallowed_methods, reason = "tests make callers without a key")]
    Caller::authenticated(
        account.clone(),
        [Scope::RoundsRead].into(),
        CallerKey { id: "reader".to_owned(), concurrent_rounds: 1 },
        CreditMode::Metered,
    )
}

#[tokio::test]
async fn a_node_that_moved_is_found_at_its_new_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = StoreLocation::File(folder.path().join("jurat.db"));
    let on_file = async || {
        let store = jurat_store::open(&file).await.unwrap();
        TestApp::node_on(store, 1, Failpoints::default()).await
    };
    let (lender, hirer) = (on_file().await, TestApp::node(2).await);
    let fake = FakeExecutor::start(says_valid()).await;
    lend(&lender, "near", &fake.url()).await;
    join(&lender, PeerTerms::default(), &hirer).await;
    hire(&hirer, "far", &fake.url(), &id(&lender), PRICE).await;
    assert_eq!(validate(&hirer, "far").await["verdict"], "VALID");
    lender.engine.shutdown().await;
    let moved = on_file().await;
    let known = moved.engine.node_show(&admin_caller()).await.unwrap();
    let mut order = trust(&id(&moved), PeerTerms::default());
    order.direct = known.address.unwrap().direct.iter().map(ToString::to_string).collect();
    hirer.engine.peer_trust(&admin_caller(), order).await.unwrap();
    assert_eq!(validate(&hirer, "far").await["verdict"], "VALID");
}
