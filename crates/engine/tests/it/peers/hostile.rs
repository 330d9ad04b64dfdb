//! Nodes that lie, forge, replay, flood and stall: each ends as a reason on a replica, or as a
//! refused message.

use std::sync::Arc;

use bytes::Bytes;
use jurat_core::{
    canonical::digest,
    peer::{PeerId, terms::PeerTerms},
};
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{FakeExecutor, says_valid},
    fake_peer::{FakePeer, FakeReply, digest_of},
};
use jurat_wire::{
    executor::CapabilitiesResponse,
    mesh::{
        AnswerOutcome, Envelope, JobAnswer, JobCall, JobRequest, NodeReply, NodeRequest, Presence,
        PresenceRequest, RefusalCode, Route, SessionOffer, SignedMessage, StatementRequest,
        encode_offers,
    },
};
use serde_json::{Value, json};

use super::{PRICE, ended, hire, id, jobs, lend, replica, trust, validate};

/// Where the executor of the hostile node is said to be.
const CLAIMED: &str = "http://127.0.0.1:9";

/// How a hostile node answers a job that it was paid for.
type Answering =
    fn(&FakePeer, &SignedMessage<NodeRequest>, &JobRequest) -> Option<(Vec<u8>, Bytes)>;

/// A node that hires a hostile one, which claims to lend an executor.
async fn hired(answering: Answering) -> (TestApp, Arc<FakePeer>) {
    let app = TestApp::node(1).await;
    let peer = FakePeer::start(66).await;
    peer.answer(move |peer, head, _| match &head.message {
        NodeRequest::Presence(_) => Some(presence(peer, &head)),
        NodeRequest::Job(job) => answering(peer, &head, job),
        NodeRequest::Join(_) | NodeRequest::Statement(_) => None,
    });
    let node = PeerId::parse(&peer.id()).unwrap();
    let mut order = trust(&node, PeerTerms::default());
    order.direct = peer.address().direct.iter().map(ToString::to_string).collect();
    app.engine.peer_trust(&admin_caller(), order).await.unwrap();
    hire(&app, "far", CLAIMED, &node, PRICE).await;
    (app, peer)
}

fn presence(peer: &FakePeer, head: &SignedMessage<NodeRequest>) -> (Vec<u8>, Bytes) {
    let capabilities = CapabilitiesResponse {
        task_types: vec!["*".to_owned()],
        profiles: vec!["default".to_owned()],
        provider_family: "hostile".to_owned(),
        model_id: "h-1".to_owned(),
        policies: Vec::new(),
    };
    let offer = SessionOffer {
        executor: CLAIMED.to_owned(),
        profile: "default".to_owned(),
        price_micros: PRICE,
        capabilities: Ok(capabilities.into()),
    };
    let body = encode_offers(&[offer]);
    let presence = Presence {
        route: peer.route(&head.message.route().from),
        request: head.digest.clone(),
        valid_ms: 1_000,
        scopes: Vec::new(),
        body_digest: digest_of(&body),
    };
    peer.sealed(&NodeReply::Presence(presence), body.into())
}

fn verdict() -> Vec<u8> {
    let verdict = json!({
        "passed": true, "score": 1.0, "reason_codes": [], "verification_status": "passed",
        "provider_family": "hostile", "model_id": "h-1",
    });
    verdict.to_string().into_bytes()
}

fn honest(peer: &FakePeer, head: &SignedMessage<NodeRequest>, job: &JobRequest) -> JobAnswer {
    JobAnswer {
        route: peer.route(&job.route.from),
        request: head.digest.clone(),
        round: job.round.clone(),
        replica: job.replica,
        execution_id: job.execution_id.clone(),
        outcome: AnswerOutcome::Answered { status: 200 },
        price_micros: PRICE,
        served_by: None,
        body_digest: digest_of(&verdict()),
    }
}

fn sealed(peer: &FakePeer, answer: JobAnswer) -> (Vec<u8>, Bytes) {
    peer.sealed(&NodeReply::Answer(answer), verdict().into())
}

async fn owed(app: &TestApp, peer: &FakePeer) -> u64 {
    let node = PeerId::parse(&peer.id()).unwrap();
    let bookings = app.engine.peer_bookings(&admin_caller(), &node, None, 100).await.unwrap();
    bookings.iter().map(|it| it.booking.price_micros).sum()
}

#[tokio::test]
async fn an_honest_answer_of_the_fake_counts() {
    let (app, peer) = hired(|peer, head, job| Some(sealed(peer, honest(peer, head, job)))).await;
    let round = validate(&app, "far").await;
    assert_eq!(replica(&round), ("VALID", None), "{round}");
    assert_eq!(owed(&app, &peer).await, PRICE);
}

#[tokio::test]
async fn answers_that_are_forged_foreign_replayed_or_too_dear_are_no_votes() {
    let cases: [(&str, Answering); 9] = [
        ("forged_answer", |peer, head, job| {
            // Signed by a key that is not the node's.
            let reply = NodeReply::Answer(honest(peer, head, job));
            let head = Envelope::seal(&reply, |_| vec![7; 64]).to_head();
            Some((head, verdict().into()))
        }),
        ("forged_answer", |peer, head, job| {
            // The body is not the one that is signed.
            let other = String::from_utf8(verdict()).unwrap().replace("1.0", "0.9");
            Some(peer.sealed(&NodeReply::Answer(honest(peer, head, job)), other.into()))
        }),
        ("foreign_answer", |peer, head, job| {
            let answer = honest(peer, head, job);
            let route = Route::new(&"ab".repeat(32), &answer.route.to, 0);
            Some(sealed(peer, JobAnswer { route, ..answer }))
        }),
        ("foreign_answer", |peer, head, job| {
            let route = peer.route(&"ab".repeat(32));
            Some(sealed(peer, JobAnswer { route, ..honest(peer, head, job) }))
        }),
        ("foreign_answer", |peer, head, job| {
            Some(sealed(
                peer,
                JobAnswer { round: "rnd_other".to_owned(), ..honest(peer, head, job) },
            ))
        }),
        ("foreign_answer", |peer, head, job| {
            Some(sealed(peer, JobAnswer { replica: 4, ..honest(peer, head, job) }))
        }),
        ("replayed_answer", |peer, head, job| {
            Some(sealed(peer, JobAnswer { request: digest(b"earlier"), ..honest(peer, head, job) }))
        }),
        ("overpriced", |peer, head, job| {
            Some(sealed(peer, JobAnswer { price_micros: PRICE + 1, ..honest(peer, head, job) }))
        }),
        ("bad_shape", |peer, head, job| {
            let outcome = AnswerOutcome::Answered { status: 9 };
            Some(sealed(peer, JobAnswer { outcome, ..honest(peer, head, job) }))
        }),
    ];
    for (code, answering) in cases {
        let (app, peer) = hired(answering).await;
        let round = validate(&app, "far").await;
        assert_eq!(replica(&round), ("ERROR", Some(code)), "{round}");
        assert_eq!(round["verdict"], Value::Null);
        assert_eq!(owed(&app, &peer).await, 0, "{code}");
    }
}

#[tokio::test]
async fn garbage_and_lies_about_sizes_end_as_reasons() {
    let (app, _peer) = hired(|_, _, _| Some((b"nonsense".to_vec(), Bytes::new()))).await;
    assert_eq!(replica(&validate(&app, "far").await), ("ERROR", Some("bad_shape")));
    // Ten million bytes are not read.
    let (app, _peer) = hired(|peer, head, job| {
        let body = Bytes::from(vec![b'x'; 10_000_000]);
        let answer = JobAnswer { body_digest: digest_of(&body), ..honest(peer, head, job) };
        Some(peer.sealed(&NodeReply::Answer(answer), body))
    })
    .await;
    assert_eq!(replica(&validate(&app, "far").await), ("ERROR", Some("too_large")));
    // It claims a failure with a name of its own choice.
    let (app, _peer) = hired(|peer, head, job| {
        let outcome =
            AnswerOutcome::Failed { code: "cancelled".to_owned(), detail: "\u{1b}[2J".repeat(99) };
        let empty = digest_of(b"");
        let answer = JobAnswer { outcome, body_digest: empty, ..honest(peer, head, job) };
        Some(peer.sealed(&NodeReply::Answer(answer), Bytes::new()))
    })
    .await;
    let round = validate(&app, "far").await;
    assert_eq!(replica(&round), ("ERROR", Some("unavailable")));
    assert!(!round.to_string().contains("\\u001b"), "{round}");
}

#[tokio::test]
async fn a_node_that_stalls_is_a_timeout_and_holds_nobody_up() {
    let (app, _peer) = hired(|_, _, _| None).await;
    let body = json!({
        "claim": "x", "consensus": { "session_pool": ["far"] },
        "execution": { "timeout_ms": 500 },
    });
    let round = ended(&app.admin().post("/api/v3/validate", &body).await);
    assert_eq!(replica(&round), ("TIMEOUT", Some("timeout")));
}

/// A node that lends an executor to a hostile one.
struct Lender {
    app: TestApp,
    peer: Arc<FakePeer>,
    executor: FakeExecutor,
}

impl Lender {
    async fn new() -> Self {
        let app = TestApp::node(1).await;
        let executor = FakeExecutor::start(says_valid()).await;
        lend(&app, "near", &executor.url()).await;
        let peer = FakePeer::start(66).await;
        let node = PeerId::parse(&peer.id()).unwrap();
        let order = trust(&node, PeerTerms::default());
        app.engine.peer_trust(&admin_caller(), order).await.unwrap();
        Self { app, peer, executor }
    }

    fn body(claim: &str) -> Bytes {
        let body = json!({
            "candidate": { "candidate_id": "cand-1", "execution_id": "exec-1", "output": claim },
            "output_schema": {},
            "policy": {
                "policy_id": "vp.claim.v1", "policy_version": "1",
                "policy_hash": jurat_core::policy::policy_hash("vp.claim.v1", &json!({})),
                "policy_params": {},
            },
        });
        body.to_string().into()
    }

    fn job(&self, execution_id: &str, body: &Bytes) -> JobRequest {
        JobRequest {
            route: self.peer.route(id(&self.app).as_str()),
            round: "rnd_1".to_owned(),
            replica: 0,
            execution_id: execution_id.to_owned(),
            call: JobCall::Verify,
            executor: self.executor.url(),
            profile: "default".to_owned(),
            most_price_micros: PRICE,
            within_ms: 10_000,
            body_digest: digest_of(body),
        }
    }

    async fn ask(&self, request: NodeRequest, body: Bytes) -> FakeReply {
        let to = self.app.engine.node_show(&admin_caller()).await.unwrap().address.unwrap();
        self.peer.ask(&to, &request, body).await.unwrap()
    }

    async fn refused(&self, request: NodeRequest, body: Bytes) -> RefusalCode {
        let reply = self.ask(request, body).await.0;
        let NodeReply::Refused(refusal) = reply else { panic!("{reply:?}") };
        refusal.code
    }

    async fn earned(&self) -> (usize, u64) {
        let node = PeerId::parse(&self.peer.id()).unwrap();
        let found = self.app.engine.peer_bookings(&admin_caller(), &node, None, 100).await.unwrap();
        (found.len(), found.iter().map(|it| it.booking.price_micros).sum())
    }
}

#[tokio::test]
async fn a_job_that_is_sent_again_is_done_and_booked_once() {
    let lender = Lender::new().await;
    let body = Lender::body("x");
    let request = NodeRequest::Job(lender.job("exec-1", &body));
    let mut answers = Vec::new();
    for _ in 0..3 {
        let (reply, body) = lender.ask(request.clone(), body.clone()).await;
        let NodeReply::Answer(answer) = reply else { panic!("{reply:?}") };
        answers.push((answer.outcome, answer.price_micros, answer.served_by, body));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    assert_eq!(answers[0].1, PRICE);
    assert_eq!(jobs(&lender.executor).len(), 1);
    assert_eq!(lender.earned().await, (1, PRICE));
    // A task that was interrupted asks again in another round.
    let again = JobRequest { round: "rnd_2".to_owned(), replica: 1, ..lender.job("exec-1", &body) };
    let NodeReply::Answer(answer) = lender.ask(NodeRequest::Job(again), body).await.0 else {
        panic!("no answer");
    };
    assert_eq!((answer.round.as_str(), answer.replica, answer.price_micros), ("rnd_2", 1, PRICE));
    assert_eq!((jobs(&lender.executor).len(), lender.earned().await), (1, (1, PRICE)));
    // The same execution with another content is refused, and another execution is another job.
    let other = Lender::body("y");
    let changed = NodeRequest::Job(lender.job("exec-1", &other));
    assert_eq!(lender.refused(changed, other.clone()).await, RefusalCode::Mismatch);
    lender.ask(NodeRequest::Job(lender.job("exec-2", &other)), other).await;
    assert_eq!(lender.earned().await, (2, 2 * PRICE));
}

#[tokio::test]
async fn messages_that_are_not_what_they_say_are_refused() {
    let lender = Lender::new().await;
    let (node, body) = (id(&lender.app), Lender::body("x"));
    let job = || lender.job("exec-1", &body);
    let to = lender.app.engine.node_show(&admin_caller()).await.unwrap().address.unwrap();

    let unsigned = Envelope::seal(&NodeRequest::Job(job()), |_| vec![1; 64]).to_head();
    let foreign = JobRequest { route: lender.peer.route(&"ab".repeat(32)), ..job() };
    let borrowed = JobRequest { route: Route::new(&"ab".repeat(32), node.as_str(), 0), ..job() };
    let sign = |job: JobRequest| {
        Envelope::seal(&NodeRequest::Job(job), |it| lender.peer.sign(it)).to_head()
    };
    for head in [unsigned, sign(foreign), sign(borrowed), b"{}".to_vec(), b"\xff".to_vec()] {
        let reply = lender.peer.send(&to, head, body.clone()).await.unwrap().0;
        let NodeReply::Refused(refusal) = reply else { panic!("{reply:?}") };
        assert_eq!(refusal.code, RefusalCode::BadMessage, "{}", refusal.detail);
    }
    let other = Lender::body("y");
    assert_eq!(lender.refused(NodeRequest::Job(job()), other).await, RefusalCode::BadMessage);
    for (wrong, code) in [
        (JobRequest { execution_id: "x".repeat(201), ..job() }, RefusalCode::BadMessage),
        (JobRequest { execution_id: String::new(), ..job() }, RefusalCode::BadMessage),
        (JobRequest { executor: CLAIMED.to_owned(), ..job() }, RefusalCode::UnknownExecutor),
        (JobRequest { profile: "other".to_owned(), ..job() }, RefusalCode::UnknownExecutor),
        (JobRequest { most_price_micros: PRICE - 1, ..job() }, RefusalCode::PriceTooHigh),
    ] {
        assert_eq!(lender.refused(NodeRequest::Job(wrong), body.clone()).await, code);
    }
    assert_eq!(jobs(&lender.executor).len(), 0);
    assert_eq!(lender.earned().await, (0, 0));
}

#[tokio::test]
async fn an_unknown_version_is_refused_and_counted() {
    let lender = Lender::new().await;
    let to = lender.app.engine.node_show(&admin_caller()).await.unwrap().address.unwrap();
    let later = json!({ "type": "jurat.job", "route": { "version": 2 } });
    let head = Envelope::seal(&later, |it| lender.peer.sign(it)).to_head();
    let reply = lender.peer.send(&to, head, Bytes::new()).await.unwrap().0;
    let NodeReply::Refused(refusal) = reply else { panic!("{reply:?}") };
    assert_eq!(refusal.code, RefusalCode::Unsupported);
    let metrics = lender.app.admin().get("/metrics").await.text();
    assert!(metrics.contains("jurat_peer_refusals_total{code=\"unsupported\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_verifier_of_this_node_is_not_judged_for_others() {
    let lender = Lender::new().await;
    let body = json!({
        "candidate": { "candidate_id": "c", "execution_id": "e", "output": "x" },
        "output_schema": {},
        "policy": {
            "policy_id": "vp.semantic.v1", "policy_version": "1", "policy_hash": "sha256:00",
            "policy_params": { "verifier": "system:safety-block" },
        },
    });
    let body = Bytes::from(body.to_string());
    let request = NodeRequest::Job(lender.job("exec-1", &body));
    assert_eq!(lender.refused(request, body).await, RefusalCode::Unsupported);
}

#[tokio::test]
async fn strangers_are_told_nothing() {
    let lender = Lender::new().await;
    let stranger = FakePeer::start(67).await;
    let node = id(&lender.app);
    let to = lender.app.engine.node_show(&admin_caller()).await.unwrap().address.unwrap();
    let route = || stranger.route(node.as_str());
    let presence = PresenceRequest { route: route(), executor: None };
    let statement = StatementRequest { route: route() };
    for request in [NodeRequest::Presence(presence), NodeRequest::Statement(statement)] {
        let (reply, body) = stranger.ask(&to, &request, Bytes::new()).await.unwrap();
        let NodeReply::Refused(refusal) = reply else { panic!("{reply:?}") };
        assert_eq!((refusal.code, body.len()), (RefusalCode::NotTrusted, 0));
    }
}

#[tokio::test]
async fn an_executor_of_a_third_node_is_not_lent_on() {
    let lender = Lender::new().await;
    hire(&lender.app, "third", CLAIMED, &PeerId::of_key(&[9; 32]), PRICE).await;
    let body = Lender::body("x");
    let job = JobRequest { executor: CLAIMED.to_owned(), ..lender.job("exec-1", &body) };
    let code = lender.refused(NodeRequest::Job(job), body).await;
    assert_eq!(code, RefusalCode::UnknownExecutor);
}
