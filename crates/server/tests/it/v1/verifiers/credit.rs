//! The cost of judge calls, even abandoned ones, and how an account with little credit spends it.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use http::StatusCode;
use jurat_core::{
    account::caller::Scope,
    id::{AccountId, RoundId},
    idempotency::SavedAnswer,
    judge::Price,
};
use jurat_engine::{Clock as _, EngineLimits, JudgesConfig, ProviderKind, ProviderSettings};
use jurat_store::{
    Behalf, CostCorrection, IdempotencyAnswer, IdempotencyRecord, JudgeHistoryKey, Store,
    StoreLocation, TakeoverScope,
};
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_executor::Gate,
    fake_provider::{FakeProvider, ProviderReply, verdict},
    postgres::TestSchema,
    unreliable_store::{UnreliableStore, WriteFault},
};
use serde_json::{Value, json};

use super::{OWNER, assert_problem, claims_with, deploy, text};

const RUNS: &str = "/v1/verifiers/claims-cite-source/runs";
const SYSTEM_RUNS: &str = "/v1/verifiers/system:safety-block/runs";

/// What an answer costs at these prices: the fake counts 100 tokens in and 20 out.
const ANSWER: i64 = 100 * 3 + 20 * 15;
/// The longest answer, which is assumed while there is no history.
const LONGEST: i64 = 2_048 * 15;

/// A store, and a scripted provider.
pub(crate) struct Scene {
    store: Arc<Store>,
    limits: EngineLimits,
    schema: Option<TestSchema>,
}

impl Scene {
    /// A node with judges at ordinary prices: `p1/m`, `p2/m` and `p3/m`.
    async fn node(&self, fake: &FakeProvider) -> TestApp {
        let mut judges = JudgesConfig::default();
        for name in ["p1", "p2", "p3"] {
            let mut settings = ProviderSettings::new(ProviderKind::OpenAi, fake.url());
            let price = Price {
                input_micros_per_million: 3_000_000,
                output_micros_per_million: 15_000_000,
            };
            settings.prices.insert("*".to_owned(), price);
            settings.timeout = Duration::from_mins(10);
            judges.providers.insert(name.to_owned(), settings);
            judges.panel.push(format!("{name}/m").parse().unwrap());
        }
        judges.default_model = Some("p1/m".parse().unwrap());
        judges.cache_for = Some(Duration::from_mins(10));
        TestApp::made_of(Arc::clone(&self.store), self.limits, judges).await
    }

    /// Expires the open rounds of other nodes, as if they were gone.
    async fn expire(&self, node: &TestApp) -> usize {
        // One database measures leases by its own clock, the other by that of the node.
        if let Some(schema) = &self.schema {
            schema.execute("update rounds set lease_until = 0").await.unwrap();
        }
        node.clock.advance_ms(200_000);
        node.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap()
    }
}

async fn told(story: impl AsyncFnOnce(&Scene)) {
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    story(&Scene { store, limits: EngineLimits::default(), schema: None }).await;
}

pub(crate) async fn told_on_postgres(story: impl AsyncFnOnce(&Scene)) {
    let schema = TestSchema::new().await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    let limits = EngineLimits { lag: None, ..EngineLimits::default() };
    let scene = Scene { store, limits, schema: Some(schema) };
    story(&scene).await;
    scene.store.close().await;
    scene.schema.unwrap().drop().await;
}

/// Time that stands still until a test moves it, whatever sockets do meanwhile.
struct Still(
    #[expect(dead_code, reason = "dropping it lets time go on")] std::sync::mpsc::Sender<()>,
);

impl Still {
    fn begin() -> Self {
        tokio::time::pause();
        let (end, is_over) = std::sync::mpsc::channel::<()>();
        // Paused time does not advance while a thread works for the runtime.
        tokio::task::spawn_blocking(move || is_over.recv());
        Self(end)
    }

    fn end(self) {
        drop(self);
        tokio::time::resume();
    }
}

/// Does something that takes until the deadline, which comes as soon as the provider was asked.
async fn until_deadline<T>(fake: &FakeProvider, asked: usize, doing: impl Future<Output = T>) -> T {
    let still = Still::begin();
    let (done, ()) = tokio::join!(doing, async {
        fake.was_asked(asked).await;
        tokio::time::advance(Duration::from_secs(130)).await;
    });
    still.end();
    done
}

async fn alice(app: &TestApp, micros: i64) -> TestCaller<'_> {
    let scopes: Vec<Scope> = OWNER
        .iter()
        .copied()
        .chain([Scope::RoundsCreate, Scope::RoundsRead, Scope::UsageRead])
        .collect();
    let alice = app.caller("alice", &scopes).await;
    deploy(&alice, &claims_with("model_settings", json!({ "model": "p1/m" }))).await;
    grant(app, micros).await;
    alice
}

async fn grant(app: &TestApp, micros: i64) {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, part) = (micros.abs() / 1_000_000, micros.abs() % 1_000_000);
    let body = json!({ "amount_usd": format!("{sign}{whole}.{part:06}") });
    let reply = app.admin().post("/v1/accounts/acct_alice/grants", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

fn inputs(response: &str) -> Value {
    json!({ "inputs": { "response": response, "source": "Rain all day." } })
}

async fn run(caller: &TestCaller<'_>, response: &str) -> TestReply {
    caller.post(RUNS, &inputs(response)).await
}

fn micros(text: &str) -> i64 {
    jurat_core::account::ledger::micros(text).unwrap()
}

/// The available, held and spent credit of the caller's account.
async fn credit(caller: &TestCaller<'_>) -> (i64, i64, i64) {
    let usage = caller.get("/v1/me/usage").await.json();
    let part = |name: &str| micros(text(&usage[name]));
    (part("available_usd"), part("held_usd"), part("spent_usd"))
}

async fn sound(scene: &Scene) {
    assert_eq!(scene.store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn late(scene: &Scene) {
    let fake = FakeProvider::saying([ProviderReply::Hangs]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    let ran = until_deadline(&fake, 1, run(&alice, "It rains.")).await.json();
    assert_eq!(text(&ran["error_code"]), "timeout", "{ran}");
    let (available, held, spent) = credit(&alice).await;
    assert_eq!((available, held), (1_000_000 - spent, 0));
    // The prompt as it was sent, and the longest answer, because there is no history.
    let prompt = spent - LONGEST;
    assert!((1_000..10_000).contains(&prompt), "{spent}");
    assert_eq!(micros(text(&ran["cost_usd"])), spent);
    sound(scene).await;
    app.engine.shutdown().await;
}

/// A claim for the judges of the verifier, under the given terms of consensus.
fn judged_under(consensus: &Value) -> Value {
    json!({
        "claim": { "response": "It rains.", "source": "Rain all day." },
        "policy": {
            "policy_id": "vp.semantic.v1",
            "policy_params": { "verifier": "claims-cite-source" },
        },
        "consensus": consensus,
    })
}

#[tokio::test]
async fn a_judge_that_does_not_answer_in_time_is_paid() {
    told(late).await;
}

#[tokio::test]
async fn a_late_judge_costs_the_prompt_and_the_median_answer() {
    told(async |scene: &Scene| {
        let fake =
            FakeProvider::saying([ProviderReply::Answer(verdict("met")), ProviderReply::Hangs])
                .await;
        let app = scene.node(&fake).await;
        let alice = alice(&app, 1_000_000).await;
        run(&alice, "It rains.").await;
        assert_eq!(credit(&alice).await.2, ANSWER);
        until_deadline(&fake, 2, run(&alice, "It pours.")).await;
        // Four bytes of the prompt are a token, however few the provider counted before, and the
        // median answer is the only one.
        let sent = &fake.asked()[1];
        let texts = sent.conversation().into_iter().map(|(_, text)| text).chain([sent.system()]);
        let bytes: usize = texts.map(|text| text.len()).sum();
        let prompt = i64::try_from(bytes.div_ceil(4)).unwrap() * 3;
        assert_eq!(credit(&alice).await.2, ANSWER + prompt + 20 * 15);
    })
    .await;
}

pub(crate) async fn reported_later(scene: &Scene) {
    let gate = Gate::new();
    let answer =
        ProviderReply::After(gate.clone(), Box::new(ProviderReply::Answer(verdict("met"))));
    let fake = FakeProvider::saying([answer]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    let ran = until_deadline(&fake, 1, run(&alice, "It rains.")).await.json();
    assert!(LONGEST < credit(&alice).await.2);
    gate.release();
    // The provider answers after all, and its count replaces the estimate.
    while credit(&alice).await.2 != ANSWER {
        tokio::task::yield_now().await;
    }
    assert_eq!(credit(&alice).await, (1_000_000 - ANSWER, 0, ANSWER));
    let id = text(&ran["verifier_run_id"]);
    let read = alice.get(&format!("/v1/verifier-runs/{id}")).await;
    assert_eq!(micros(text(&read.json()["cost_usd"])), ANSWER, "{}", read.text());
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_late_report_corrects_the_charge() {
    told(reported_later).await;
}

#[tokio::test]
async fn what_is_reported_while_the_store_is_gone_corrects_the_charge() {
    let store = UnreliableStore::new(WriteFault::Refused, 0);
    let scene = Scene { store: store.store(), limits: EngineLimits::default(), schema: None };
    let gate = Gate::new();
    let answer =
        ProviderReply::After(gate.clone(), Box::new(ProviderReply::Answer(verdict("met"))));
    let fake = FakeProvider::saying([answer]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    until_deadline(&fake, 1, run(&alice, "It rains.")).await;
    // Neither the history nor the ledger can be written.
    tokio::join!(store.without_sharing(2), async { gate.release() });
    let corrected = async {
        while credit(&alice).await.2 != ANSWER {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), corrected).await.unwrap();
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_correction_whose_answer_was_lost_is_not_made_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = StoreLocation::File(folder.path().join("jurat.db"));
    let store = jurat_store::open(&file).await.unwrap();
    let scene = Scene { store, limits: EngineLimits::default(), schema: None };
    let gate = Gate::new();
    let answer =
        ProviderReply::After(gate.clone(), Box::new(ProviderReply::Answer(verdict("met"))));
    let fake = FakeProvider::saying([ProviderReply::Hangs, answer]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    // So much is spent that the ledger would let the correction be made again.
    until_deadline(&fake, 1, run(&alice, "It hails.")).await;
    let before = credit(&alice).await.2;
    until_deadline(&fake, 2, run(&alice, "It rains.")).await;
    let rounds = alice.get("/v1/rounds").await.json();
    let round = RoundId::parse(text(&rounds["items"][0]["round_id"])).unwrap();
    let account = AccountId::parse("acct_alice").unwrap();
    let correction = CostCorrection {
        account: account.clone(),
        round: round.clone(),
        run: None,
        micros: before + ANSWER - credit(&alice).await.2,
        is_limited: true,
        day_cap_micros: None,
        opened_at: app.clock.now(),
        at: app.clock.now(),
    };
    // As the node writes it, except that the node does not learn of it.
    let moved = SavedAnswer { tag: 200, text: correction.micros.to_string() };
    let once = IdempotencyRecord {
        account: account.clone(),
        key: format!("\u{b7}correction\u{b7}{round}\u{b7}0"),
        operation: "correction".to_owned(),
        request_digest: String::new(),
        answer: IdempotencyAnswer::Known(moved),
        at: app.clock.now(),
    };
    let (behalf, judge_calls) = (Behalf::Account(account.clone()), scene.store.judge_calls());
    judge_calls.correct_cost(&behalf, &correction, Some(&once)).await.unwrap();
    let verifier = alice.get("/v1/verifiers/claims-cite-source").await.json();
    gate.release();
    // The report is recorded before the charge is corrected, and a stopping node waits for that.
    let verifier_id = text(&verifier["verifier_id"]).to_owned();
    let of = JudgeHistoryKey { account: account.clone(), verifier_id, model: "p1/m".to_owned() };
    while judge_calls.history(&behalf, &of).await.unwrap().median_answer().is_none() {
        tokio::task::yield_now().await;
    }
    app.engine.shutdown().await;
    let store = jurat_store::open(&file).await.unwrap();
    let balance = store.accounts().get(&Behalf::Platform, &account).await.unwrap().unwrap().balance;
    assert_eq!(balance.spent, before + ANSWER);
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn cancelled(scene: &Scene) {
    let fake = FakeProvider::saying([ProviderReply::Hangs]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    let cancel = async {
        fake.was_asked(1).await;
        let open = alice.get("/v1/rounds?state=open").await.json();
        let id = text(&open["items"][0]["round_id"]).to_owned();
        let reply = alice.post(&format!("/v1/rounds/{id}/cancel"), &json!({})).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    };
    let (ran, ()) = tokio::join!(run(&alice, "It rains."), cancel);
    assert_eq!(ran.json()["passed"], Value::Null, "{}", ran.text());
    let (available, held, spent) = credit(&alice).await;
    assert!(LONGEST < spent, "{spent}");
    assert_eq!((available, held), (1_000_000 - spent, 0));
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_pays_for_what_was_sent() {
    told(cancelled).await;
}

#[tokio::test]
async fn a_judge_abandoned_by_an_early_stop_is_paid() {
    told(async |scene: &Scene| {
        let gate = Gate::new();
        let fake = {
            let gate = gate.clone();
            let count = std::sync::atomic::AtomicUsize::new(0);
            FakeProvider::start(move |_| {
                match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                    0 | 1 => ProviderReply::After(
                        gate.clone(),
                        Box::new(ProviderReply::Answer(verdict("met"))),
                    ),
                    _ => ProviderReply::Hangs,
                }
            })
            .await
        };
        let app = scene.node(&fake).await;
        let alice = alice(&app, 1_000_000).await;
        let body = judged_under(&json!({ "replicas": 3, "early_stop": true }));
        let (asked, ()) = tokio::join!(alice.post("/api/v3/validate", &body), async {
            fake.was_asked(3).await;
            gate.release();
        });
        let asked = asked.json();
        assert_eq!(
            (&asked["verdict"], &asked["consensus"]["cancelled"]),
            (&json!("VALID"), &json!(1)),
            "{asked}"
        );
        let spent = credit(&alice).await.2;
        assert!(2 * ANSWER + LONGEST < spent, "{spent}");
        sound(scene).await;
    })
    .await;
}

pub(crate) async fn died(scene: &Scene) {
    let fake = FakeProvider::saying([ProviderReply::Hangs]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    let other = scene.node(&fake).await;
    let still = Still::begin();
    let (ran, ()) = tokio::join!(run(&alice, "It rains."), async {
        fake.was_asked(1).await;
        // For the other nodes, the node of the round is gone.
        assert_eq!(scene.expire(&other).await, 1);
        tokio::time::advance(Duration::from_secs(130)).await;
    });
    still.end();
    assert_eq!(ran.status, StatusCode::CONFLICT, "{}", ran.text());
    let rounds = alice.get("/v1/rounds").await.json();
    assert_eq!(rounds["items"][0]["state"], "expired", "{rounds}");
    let (available, held, spent) = credit(&alice).await;
    assert!(LONGEST < spent, "{spent}");
    assert_eq!((available, held), (1_000_000 - spent, 0));
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn calls_of_a_node_that_died_are_paid_when_their_round_expires() {
    told(died).await;
}

pub(crate) async fn first_anonymous(scene: &Scene) {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = scene.node(&fake).await;
    let nobody = app.anonymous().at("192.0.2.7");
    let mut body = json!({ "inputs": { "content": "List the files." } });
    let ran = nobody.post(SYSTEM_RUNS, &body).await;
    assert_eq!(ran.status, StatusCode::CREATED, "{}", ran.text());
    assert_eq!(
        (&ran.json()["passed"], micros(text(&ran.json()["cost_usd"]))),
        (&json!(true), ANSWER)
    );
    // A judge is given time to answer, because it is paid either way.
    body["timeout_ms"] = json!(9_999);
    let refused = nobody.post(SYSTEM_RUNS, &body).await;
    assert_problem(&refused, StatusCode::BAD_REQUEST, "validation_error");
    assert_eq!(refused.json()["field"], "timeout_ms");
    body["timeout_ms"] = json!(10_000);
    assert_eq!(nobody.post(SYSTEM_RUNS, &body).await.status, StatusCode::CREATED);
    // A caller with a key pays for its requests.
    body["timeout_ms"] = json!(9_999);
    assert_eq!(app.admin().post(SYSTEM_RUNS, &body).await.status, StatusCode::CREATED);
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_first_run_without_a_key_works_and_its_time_has_a_floor() {
    told(first_anonymous).await;
}

pub(crate) async fn late_anonymous(scene: &Scene) {
    let fake = FakeProvider::saying([ProviderReply::Hangs]).await;
    let app = scene.node(&fake).await;
    let nobody = app.anonymous().at("192.0.2.7");
    let ask = async |number: usize| {
        let body = json!({ "inputs": { "content": format!("Step {number}.") } });
        nobody.post(SYSTEM_RUNS, &body).await
    };
    // The credit of an address runs out, even if its judges do not answer.
    let mut asked = 0;
    let refused = loop {
        asked += 1;
        assert!(asked < 9, "it is never refused");
        let still = Still::begin();
        let mut doing = std::pin::pin!(ask(asked));
        let reply = tokio::select! {
            reply = &mut doing => reply,
            () = fake.was_asked(asked) => {
                tokio::time::advance(Duration::from_secs(130)).await;
                doing.await
            }
        };
        still.end();
        if reply.status != StatusCode::CREATED {
            break reply;
        }
        assert_eq!(text(&reply.json()["error_code"]), "timeout");
    };
    assert_problem(&refused, StatusCode::PAYMENT_REQUIRED, "budget_exhausted");
    assert_eq!(fake.asked().len(), asked - 1);
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_late_judge_is_paid_without_a_key_too_and_counts_for_the_day() {
    told(late_anonymous).await;
}

pub(crate) async fn known(scene: &Scene) {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 10_000).await;
    assert_eq!(run(&alice, "It rains.").await.json()["passed"], true);
    grant(&app, ANSWER - 10_000).await;
    assert_eq!(credit(&alice).await, (0, 0, ANSWER));
    let again = run(&alice, "It rains.").await;
    assert_eq!(again.status, StatusCode::CREATED, "{}", again.text());
    let again = again.json();
    assert_eq!((&again["passed"], &again["judges"][0]["cached"]), (&json!(true), &json!(true)));
    assert_eq!(text(&again["cost_usd"]), "0.00");
    let other = run(&alice, "It snows.").await;
    assert_problem(&other, StatusCode::PAYMENT_REQUIRED, "budget_exhausted");
    assert_eq!((fake.asked().len(), credit(&alice).await), (1, (0, 0, ANSWER)));
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_cached_verdict_needs_no_credit() {
    told(known).await;
}

pub(crate) async fn shared(scene: &Scene) {
    let gate = Gate::new();
    let answer =
        ProviderReply::After(gate.clone(), Box::new(ProviderReply::Answer(verdict("met"))));
    let fake = FakeProvider::saying([answer]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    let runs = join_all((0..10).map(|_| run(&alice, "It rains.")));
    let (runs, ()) = tokio::join!(runs, async {
        fake.was_asked(1).await;
        gate.release();
    });
    for ran in &runs {
        assert_eq!(ran.status, StatusCode::CREATED, "{}", ran.text());
        assert_eq!(ran.json()["passed"], true, "{}", ran.text());
    }
    let paid: Vec<i64> = runs
        .iter()
        .map(|ran| micros(text(&ran.json()["cost_usd"])))
        .filter(|cost| *cost != 0)
        .collect();
    assert_eq!((fake.asked().len(), paid), (1, vec![ANSWER]));
    let lines = alice.get("/v1/me/transfers?limit=100").await.json();
    let lines = lines["items"].as_array().unwrap();
    let captures = lines.iter().filter(|line| line["movement"] == "capture").count();
    assert_eq!((captures, credit(&alice).await.2), (1, ANSWER));
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn equal_concurrent_runs_are_one_call_that_the_first_pays() {
    told(shared).await;
}

pub(crate) async fn shared_failure(scene: &Scene) {
    let gate = Gate::new();
    let fake = {
        let gate = gate.clone();
        FakeProvider::start(move |asked| {
            // An undecided verdict is not cached, so each caller pays.
            let decides_nothing = ProviderReply::Answer(verdict("cannot_confirm"));
            match asked.body()["model"].as_str() {
                Some("gone") => {
                    ProviderReply::After(gate.clone(), Box::new(ProviderReply::Status(404)))
                }
                _ => decides_nothing,
            }
        })
        .await
    };
    let app = scene.node(&fake).await;
    let alice = alice(&app, 1_000_000).await;
    let body =
        judged_under(&json!({ "replicas": 1, "session_pool": ["judge:p1/gone", "judge:p1/dear"] }));
    let rounds = join_all((0..12).map(|_| alice.post("/api/v3/validate", &body)));
    let (rounds, ()) = tokio::join!(rounds, async {
        fake.was_asked(1).await;
        // The others wait for the same judgment meanwhile.
        for _ in 0..30 {
            credit(&alice).await;
        }
        gate.release();
    });
    let mut replaced = 0;
    for round in &rounds {
        assert_eq!(round.status, StatusCode::OK, "{}", round.text());
        assert_eq!(round.json()["consensus"]["verdicts"], json!(["RETRY"]), "{}", round.text());
        replaced += round.json()["replicas"].as_array().unwrap().len() - 1;
    }
    let asked = |model: &str| {
        let asked = fake.asked().into_iter().filter(|it| it.body()["model"] == model).count();
        i64::try_from(asked).unwrap()
    };
    // Several shared the failure of one, and each of them asked and pays the spare.
    assert!(asked("gone") < i64::try_from(replaced).unwrap(), "{} {replaced}", asked("gone"));
    let (available, held, spent) = credit(&alice).await;
    assert_eq!((available, held, spent), (1_000_000 - spent, 0, asked("dear") * ANSWER));
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_spare_of_a_judge_whose_failure_is_shared_is_paid() {
    told(shared_failure).await;
}

pub(crate) async fn little(scene: &Scene) {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = scene.node(&fake).await;
    // Far less than the maximum cost of a judgment, which would be held by itself.
    let alice = alice(&app, 10_000).await;
    let first = run(&alice, "It rains.").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    // Enough for one answer and a half.
    let left = 3 * ANSWER / 2 + 50;
    grant(&app, left + ANSWER - 10_000).await;
    let responses: Vec<String> = (0..6).map(|number| format!("Rains n{number}.")).collect();
    let runs = join_all(responses.iter().map(|response| run(&alice, response))).await;
    let (done, refused): (Vec<_>, Vec<_>) =
        runs.iter().partition(|ran| ran.status == StatusCode::CREATED);
    // The second starts with half of its cost, and no third starts.
    assert_eq!((done.len(), refused.len()), (2, 4));
    for refused in refused {
        assert_problem(refused, StatusCode::PAYMENT_REQUIRED, "budget_exhausted");
    }
    assert_eq!(credit(&alice).await, (left - 2 * ANSWER, 0, 3 * ANSWER));
    assert_eq!(fake.asked().len(), 3);
    // The next grant pays the debt first.
    grant(&app, ANSWER).await;
    assert_eq!(credit(&alice).await.0, left - ANSWER);
    assert_eq!(run(&alice, "It pours.").await.status, StatusCode::CREATED);
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_small_balance_is_spent_one_call_at_a_time() {
    told(little).await;
}

/// How many writes of this name the node has made.
async fn writes(app: &TestApp, name: &str) -> u64 {
    let metrics = app.admin().get("/metrics").await.text();
    let count = format!("jurat_store_write_duration_seconds_count{{write=\"{name}\"}} ");
    let found = metrics.lines().find_map(|line| line.strip_prefix(&count)?.parse().ok());
    found.unwrap_or(0)
}

pub(crate) async fn left(scene: &Scene) {
    let gate = Gate::new();
    let met = || ProviderReply::Answer(verdict("met"));
    let gated = ProviderReply::After(gate.clone(), Box::new(met()));
    let fake = FakeProvider::saying([met(), gated, met()]).await;
    let app = scene.node(&fake).await;
    let alice = alice(&app, 10_000).await;
    assert_eq!(run(&alice, "It rains.").await.status, StatusCode::CREATED);
    // Enough for one answer and a half.
    grant(&app, 3 * ANSWER / 2 + 50 + ANSWER - 10_000).await;
    let (second, ()) = tokio::join!(run(&alice, "It snows."), async {
        fake.was_asked(2).await;
        let before = writes(&app, "round_open").await;
        // The third is refused its turn twice: at first, and at the head of the queue.
        tokio::select! {
            third = run(&alice, "It pours.") => panic!("it did not wait: {}", third.text()),
            () = async {
                while writes(&app, "round_open").await < before + 2 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        gate.release();
    });
    assert_eq!(second.status, StatusCode::CREATED, "{}", second.text());
    app.engine.drain().await;
    assert_eq!(fake.asked().len(), 2, "nobody wanted the third any more");
    let rounds = alice.get("/v1/rounds").await.json();
    assert_eq!(rounds["items"].as_array().unwrap().len(), 2);
    sound(scene).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn no_round_is_opened_for_a_caller_that_leaves_the_queue_for_credit() {
    told(left).await;
}
