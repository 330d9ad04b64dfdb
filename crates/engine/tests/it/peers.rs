//! Nodes that hire each other's executors.

mod hostile;
mod terms;
mod unreachable;

use jurat_core::{
    executor::{
        Executor,
        session::{EXECUTOR_SESSION_PREFIX, Session},
    },
    peer::{Peer, PeerId, book::PeerBooks, scope::RemoteTarget, terms::PeerTerms},
};
use jurat_engine::{NewExecutor, PeerInvitationOrder, PeerOrder};
use jurat_testkit::{
    app::{TestApp, TestReply, admin_caller},
    fake_executor::{
        Behaviour, FakeExecutor, ReceivedCall, answers, fact, says_invalid, says_valid,
    },
};
use serde_json::{Value, json};

/// A node that lends an executor, and one that may hire it.
struct Pair {
    lender: TestApp,
    hirer: TestApp,
    executor: FakeExecutor,
}

/// The price of the lent executor, in micro-credits.
const PRICE: u64 = 5;

impl Pair {
    /// Two nodes that trust each other by an invitation; the hirer knows the lent executor as
    /// `far`.
    async fn new(executor: Behaviour) -> Self {
        Self::under(PeerTerms::default(), executor).await
    }

    /// The lender has these terms for the hirer.
    async fn under(terms: PeerTerms, executor: Behaviour) -> Self {
        let (lender, hirer) = (TestApp::node(1).await, TestApp::node(2).await);
        let executor = FakeExecutor::start(executor).await;
        lend(&lender, "near", &executor.url()).await;
        join(&lender, terms, &hirer).await;
        hire(&hirer, "far", &executor.url(), &id(&lender), 2 * PRICE).await;
        Self { lender, hirer, executor }
    }

    async fn validate(&self) -> Value {
        validate(&self.hirer, "far").await
    }

    /// The books of both nodes about each other: the lender's, then the hirer's.
    async fn books(&self) -> [PeerBooks; 2] {
        let of = async |app: &TestApp, about: &TestApp| {
            app.engine.peer_statement(&admin_caller(), &id(about)).await.unwrap().ours
        };
        [of(&self.lender, &self.hirer).await, of(&self.hirer, &self.lender).await]
    }
}

/// The work that an executor was asked for, without probes.
fn jobs(executor: &FakeExecutor) -> Vec<ReceivedCall> {
    let is_job = |call: &ReceivedCall| ["execute", "verify"].contains(&call.endpoint());
    executor.calls().into_iter().filter(is_job).collect()
}

fn id(app: &TestApp) -> PeerId {
    PeerId::parse(app.engine.node_key().0).unwrap()
}

async fn lend(app: &TestApp, name: &str, url: &str) {
    let session = json!({ "id": name, "price_micros": PRICE });
    let body = json!({ "name": name, "url": url, "session": session });
    let reply = app.admin().post("/v1/executors", &body).await;
    assert_eq!(reply.status.as_u16(), 201, "{}", reply.text());
}

async fn invite(app: &TestApp, terms: PeerTerms, valid_s: u64) -> String {
    let order = PeerInvitationOrder { name: None, terms, valid_s };
    app.engine.node_invite(&admin_caller(), order).await.unwrap().ticket
}

async fn join(inviter: &TestApp, terms: PeerTerms, joiner: &TestApp) -> Peer {
    let ticket = invite(inviter, terms, 3_600).await;
    let terms = PeerTerms::default();
    joiner.engine.node_join(&admin_caller(), &ticket, None, terms).await.unwrap()
}

/// Registers an executor of another node, with a session of the same name.
async fn hire(app: &TestApp, name: &str, url: &str, node: &PeerId, most_micros: u64) {
    let now = app.engine.clock().now();
    let executor = Executor {
        name: name.to_owned(),
        url: url.to_owned(),
        token_env: None,
        agent_events_url: None,
        remote: Some(RemoteTarget { node: Some(node.clone()), scope: None }),
        created_at: now,
        probe: None,
    };
    let plain = Session::plain(name, "default");
    let id = plain.id.trim_start_matches(EXECUTOR_SESSION_PREFIX).to_owned();
    let session = Session { id, price_micros: most_micros, created_at: now, ..plain };
    let addition = NewExecutor { executor, session: Some(session), must_answer: false };
    app.engine.executor_add(&admin_caller(), addition, None).await.unwrap();
}

async fn validate(app: &TestApp, session: &str) -> Value {
    let body = json!({ "claim": "12 * 12 = 144", "consensus": { "session_pool": [session] } });
    ended(&app.admin().post("/api/v3/validate", &body).await)
}

fn ended(reply: &TestReply) -> Value {
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    reply.json()
}

/// The label of the only replica, and the code of its failure.
fn replica(round: &Value) -> (&str, Option<&str>) {
    let replica = &round["replicas"][0];
    (replica["verdict"].as_str().unwrap(), replica["error"]["code"].as_str())
}

#[tokio::test]
async fn an_executor_of_another_node_answers_as_if_it_were_near() {
    let pair = Pair::new(says_valid()).await;
    let round = pair.validate().await;
    assert_eq!((&round["verdict"], replica(&round)), (&json!("VALID"), ("VALID", None)));
    // It is paid what its own node asks, not what was offered.
    assert_eq!(round["replicas"][0]["cost"], PRICE, "{round}");
    assert_eq!(jobs(&pair.executor).len(), 1);
    // Its own node called it, and signed the call.
    let call = &jobs(&pair.executor)[0];
    let signed = call.header("signature-input").unwrap();
    assert!(signed.contains(id(&pair.lender).as_str()), "{signed}");
    let earned = PeerBooks { earned_jobs: 1, earned_micros: PRICE, owed_jobs: 0, owed_micros: 0 };
    let owed = PeerBooks { earned_jobs: 0, earned_micros: 0, owed_jobs: 1, owed_micros: PRICE };
    assert_eq!(pair.books().await, [earned, owed]);
    let statement = pair.hirer.engine.peer_statement(&admin_caller(), &id(&pair.lender)).await;
    assert_eq!(statement.unwrap().agrees(), Some(true));
}

#[tokio::test]
async fn what_another_node_says_no_is_no() {
    let pair = Pair::new(says_invalid()).await;
    let round = pair.validate().await;
    assert_eq!((&round["verdict"], replica(&round)), (&json!("INVALID"), ("INVALID", None)));
}

#[tokio::test]
async fn work_and_fact_checks_travel_as_well() {
    let pair = Pair::new(answers(json!({ "sum": 4 }))).await;
    let body = json!({ "objective": "Add 2 and 2.", "consensus": { "session_pool": ["far"] } });
    let round = ended(&pair.hirer.admin().post("/api/v3/delegate", &body).await);
    assert_eq!((&round["status"], &round["output"]), (&json!("OK"), &json!({ "sum": 4 })));
    let sent = jobs(&pair.executor).remove(0).body;
    assert_eq!(sent["inputs"]["objective"], "Add 2 and 2.");

    pair.executor.set(fact("TRUE"));
    let body = json!({ "claim": "Water is wet.", "consensus": { "session_pool": ["far"] } });
    let round = ended(&pair.hirer.admin().post("/api/v3/factcheck", &body).await);
    assert_eq!(round["verdict"], "TRUE", "{round}");
}

#[tokio::test]
async fn near_and_far_executors_form_one_consensus() {
    let pair = Pair::new(says_valid()).await;
    let near = pair.hirer.executors([says_valid(), says_invalid()]).await;
    let pool = json!({ "replicas": 3, "session_pool": ["far", "s1", "s2"] });
    let body = json!({ "claim": "12 * 12 = 144", "consensus": pool });
    let round = ended(&pair.hirer.admin().post("/api/v3/validate", &body).await);
    assert_eq!(round["verdict"], "VALID", "{round}");
    assert_eq!(round["consensus"]["verdicts"].as_array().unwrap().len(), 3);
    assert_eq!(near.map(|it| jobs(&it).len()), [1, 1]);
    // Executors of one node are not independent of each other, and the key says which node it is.
    let far = round["replicas"].as_array().unwrap().iter().find(|it| it["session_id"] == "far");
    let key = far.unwrap()["independence"].as_str().unwrap();
    assert!(key.ends_with(id(&pair.lender).as_str()), "{key}");
}

#[tokio::test]
async fn a_job_is_a_recorded_round_of_the_peer_on_its_node() {
    let pair = Pair::new(says_valid()).await;
    pair.validate().await;
    let account = id(&pair.hirer).account();
    let rounds = pair.lender.store.rounds();
    let behalf = jurat_store::Behalf::Account(account.clone());
    let filter = jurat_core::round::RoundFilter { limit: 10, ..Default::default() };
    let found = rounds.list(&behalf, &account, &filter).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].closing.is_some());
}

#[tokio::test]
async fn the_proof_of_another_node_is_kept_with_the_answer() {
    let pair = Pair::new(says_valid()).await;
    let terms = json!({ "session_pool": ["far"], "include": ["traces"] });
    let body = json!({ "claim": "12 * 12 = 144", "consensus": terms });
    let round = ended(&pair.hirer.admin().post("/api/v3/validate", &body).await);
    let evidence = round["replicas"][0]["evidence"].to_string();
    assert!(evidence.contains("application/vnd.jurat.answer+json"), "{evidence}");
    assert!(evidence.contains(id(&pair.lender).as_str()), "{evidence}");
}

#[tokio::test]
async fn nodes_say_what_they_lend_and_lend_nothing_on() {
    let pair = Pair::new(says_valid()).await;
    let offers = pair.hirer.engine.peer_offers(&admin_caller(), &id(&pair.lender)).await.unwrap();
    let found: Vec<_> = offers
        .iter()
        .map(|it| (it.executor.clone(), it.price_micros, it.capabilities.is_ok()))
        .collect();
    assert_eq!(found, [(pair.executor.url(), PRICE, true)]);
    // The hirer has only what it hired, which is not its own to lend.
    let back = pair.lender.engine.peer_offers(&admin_caller(), &id(&pair.hirer)).await.unwrap();
    assert_eq!(back, []);
}

#[tokio::test]
async fn nodes_whose_clocks_differ_work_together() {
    let pair = Pair::new(says_valid()).await;
    pair.lender.clock.set_by_ms(3_600_000);
    pair.hirer.clock.set_by_ms(-3_600_000);
    assert_eq!(pair.validate().await["verdict"], "VALID");
}

/// The order with which an operator trusts a node.
fn trust(peer: &PeerId, terms: PeerTerms) -> PeerOrder {
    PeerOrder { id: peer.clone(), name: None, direct: Vec::new(), relays: Vec::new(), terms }
}
