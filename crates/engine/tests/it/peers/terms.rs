//! The operator's terms for a peer, invitations, and what ends both.

use std::collections::BTreeSet;

use jurat_core::peer::terms::PeerTerms;
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{FakeExecutor, answers, fact, says_valid},
};
use serde_json::json;

use super::{PRICE, Pair, ended, hire, id, invite, jobs, join, lend, replica, trust, validate};

#[tokio::test]
async fn a_node_that_nobody_invited_gets_no_work_done() {
    let (lender, stranger) = (TestApp::node(1).await, TestApp::node(2).await);
    let fake = FakeExecutor::start(says_valid()).await;
    lend(&lender, "near", &fake.url()).await;
    // It trusts the lender and knows where it is, but the lender does not trust it.
    let mut order = trust(&id(&lender), PeerTerms::default());
    let known = lender.engine.node_show(&admin_caller()).await.unwrap().address.unwrap();
    order.direct = known.direct.iter().map(ToString::to_string).collect();
    stranger.engine.peer_trust(&admin_caller(), order).await.unwrap();
    hire(&stranger, "far", &fake.url(), &id(&lender), PRICE).await;
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["far"] } });
    let reply = stranger.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.json()["code"], "sessions_unavailable");
    assert!(reply.text().contains("not_trusted"), "{}", reply.text());
    assert_eq!(jobs(&fake).len(), 0);
}

#[tokio::test]
async fn a_blocked_node_gets_nothing_and_is_asked_for_nothing() {
    let pair = Pair::new(says_valid()).await;
    assert_eq!(pair.validate().await["verdict"], "VALID");
    pair.lender.engine.peer_block(&admin_caller(), &id(&pair.hirer)).await.unwrap();
    let round = pair.validate().await;
    assert_eq!(replica(&round), ("ERROR", Some("peer_refused")));
    assert_eq!(jobs(&pair.executor).len(), 1);

    let pair = Pair::new(says_valid()).await;
    pair.hirer.engine.peer_block(&admin_caller(), &id(&pair.lender)).await.unwrap();
    let round = pair.validate().await;
    assert_eq!(replica(&round), ("ERROR", Some("unavailable")));
    assert_eq!(jobs(&pair.executor).len(), 0);
    assert_eq!(pair.books().await.map(|books| books.owed_jobs + books.earned_jobs), [0, 0]);
}

#[tokio::test]
async fn nobody_pays_more_than_was_agreed() {
    let pair = Pair::new(says_valid()).await;
    hire(&pair.hirer, "cheap", &pair.executor.url(), &id(&pair.lender), PRICE - 1).await;
    let round = validate(&pair.hirer, "cheap").await;
    assert_eq!(replica(&round), ("ERROR", Some("peer_refused")));
    assert!(round.to_string().contains("price_too_high"), "{round}");
    // A limit of the operator counts besides the price of the session.
    let terms = PeerTerms { most_price_micros: Some(PRICE - 1), ..PeerTerms::default() };
    let order = trust(&id(&pair.lender), terms);
    pair.hirer.engine.peer_trust(&admin_caller(), order).await.unwrap();
    assert_eq!(replica(&pair.validate().await), ("ERROR", Some("peer_refused")));
    assert_eq!(jobs(&pair.executor).len(), 0);
    assert_eq!(pair.books().await.map(|books| books.owed_micros + books.earned_micros), [0, 0]);
}

#[tokio::test]
async fn a_peer_asks_only_for_the_types_of_tasks_in_its_terms() {
    let task_types = BTreeSet::from(["factcheck".to_owned()]);
    let terms = PeerTerms { task_types, ..PeerTerms::default() };
    let pair = Pair::under(terms, answers(json!({ "sum": 4 })).task_types(&["*"])).await;
    let body = json!({ "objective": "Add.", "consensus": { "session_pool": ["far"] } });
    let reply = pair.hirer.admin().post("/api/v3/delegate", &body).await;
    // The presence leaves the type out, so that the job is not even sent.
    assert_eq!(reply.json()["code"], "sessions_unavailable", "{}", reply.text());
    assert_eq!(jobs(&pair.executor).len(), 0);
    pair.executor.set(fact("TRUE").task_types(&["*"]));
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["far"] } });
    let round = ended(&pair.hirer.admin().post("/api/v3/factcheck", &body).await);
    assert_eq!(round["verdict"], "TRUE");
}

#[tokio::test]
async fn a_peer_sends_no_more_and_no_larger_jobs_than_its_terms_allow() {
    let terms = PeerTerms { payload_bytes: 2_000, ..PeerTerms::default() };
    let pair = Pair::under(terms, says_valid()).await;
    let large = json!({ "claim": "x".repeat(3_000), "consensus": { "session_pool": ["far"] } });
    let round = ended(&pair.hirer.admin().post("/api/v3/validate", &large).await);
    assert_eq!(replica(&round), ("ERROR", Some("peer_refused")));
    assert!(round.to_string().contains("too_large"), "{round}");
    assert_eq!(pair.validate().await["verdict"], "VALID");

    // The probe when the executor is added is a request as well.
    let terms = PeerTerms { requests_per_minute: 2, ..PeerTerms::default() };
    let pair = Pair::under(terms, says_valid()).await;
    assert_eq!(pair.validate().await["verdict"], "VALID");
    let round = pair.validate().await;
    assert_eq!(replica(&round), ("ERROR", Some("peer_refused")));
    assert!(round.to_string().contains("rate_limited"), "{round}");
}

#[tokio::test]
async fn a_peer_that_is_only_worked_for_is_not_hired_and_the_reverse() {
    let terms = PeerTerms { works_for: false, ..PeerTerms::default() };
    let pair = Pair::new(says_valid()).await;
    let order = trust(&id(&pair.hirer), terms);
    pair.lender.engine.peer_trust(&admin_caller(), order).await.unwrap();
    assert_eq!(replica(&pair.validate().await), ("ERROR", Some("peer_refused")));
    let terms = PeerTerms { hires: false, ..PeerTerms::default() };
    let order = trust(&id(&pair.lender), terms);
    pair.hirer.engine.peer_trust(&admin_caller(), order).await.unwrap();
    assert_eq!(replica(&pair.validate().await), ("ERROR", Some("unavailable")));
    assert_eq!(jobs(&pair.executor).len(), 0);
}

#[tokio::test]
async fn an_invitation_is_for_one_node_and_for_a_while() {
    let [inviter, first, second] =
        [TestApp::node(1).await, TestApp::node(2).await, TestApp::node(3).await];
    let ticket = invite(&inviter, PeerTerms::default(), 60).await;
    let join = async |app: &TestApp, ticket: &str| {
        app.engine.node_join(&admin_caller(), ticket, None, PeerTerms::default()).await
    };
    let peer = join(&first, &ticket).await.unwrap();
    assert_eq!((peer.id, peer.name.as_deref()), (id(&inviter), Some("node 1")));
    // The reply may have been lost, so the same node may try again.
    join(&first, &ticket).await.unwrap();
    let used = join(&second, &ticket).await.unwrap_err();
    assert!(used.to_string().contains("bad_invitation"), "{used}");
    assert_eq!(second.engine.node_show(&admin_caller()).await.unwrap().trusted_peers, 0);

    let ticket = invite(&inviter, PeerTerms::default(), 60).await;
    inviter.clock.advance_ms(60_000);
    assert!(join(&second, &ticket).await.unwrap_err().to_string().contains("bad_invitation"));
    let own = invite(&inviter, PeerTerms::default(), 60).await;
    assert!(join(&inviter, &own).await.unwrap_err().to_string().contains("this node itself"));
    assert!(join(&first, "jurat0nonsense").await.is_err());
}

#[tokio::test]
async fn a_blocked_node_stays_blocked_whatever_invitation_it_has() {
    let (inviter, joiner) = (TestApp::node(1).await, TestApp::node(2).await);
    let ticket = invite(&inviter, PeerTerms::default(), 60).await;
    inviter.engine.peer_block(&admin_caller(), &id(&joiner)).await.unwrap();
    let refused =
        joiner.engine.node_join(&admin_caller(), &ticket, None, PeerTerms::default()).await;
    assert!(refused.is_err());
    assert_eq!(inviter.engine.node_show(&admin_caller()).await.unwrap().trusted_peers, 0);
}

#[tokio::test]
async fn a_removed_node_is_a_stranger_and_its_books_stay() {
    let pair = Pair::new(says_valid()).await;
    pair.validate().await;
    pair.lender.engine.peer_remove(&admin_caller(), &id(&pair.hirer)).await.unwrap();
    // The request may still leave on the connection that the removal ends.
    let round = pair.validate().await;
    let (label, code) = replica(&round);
    assert_eq!(label, "ERROR", "{round}");
    assert!(["peer_refused", "disconnected"].contains(&code.unwrap()), "{round}");
    assert_eq!(jobs(&pair.executor).len(), 1);
    join(&pair.lender, PeerTerms::default(), &pair.hirer).await;
    assert_eq!(pair.books().await[0].earned_jobs, 1);
}

#[tokio::test]
async fn a_server_without_an_endpoint_says_so() {
    let app = TestApp::new().await;
    let refused = app.engine.node_join(&admin_caller(), "x", None, PeerTerms::default()).await;
    assert!(refused.unwrap_err().to_string().contains("node.listen"));
    let other = TestApp::node(2).await;
    hire(&app, "far", "http://127.0.0.1:1", &id(&other), PRICE).await;
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["far"] } });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert!(reply.text().contains("no endpoint for other nodes"), "{}", reply.text());
}
