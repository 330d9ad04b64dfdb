//! A complete Jurat for tests: engine, embedded store and router, with a manual clock and
//! repeatable random numbers.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, to_bytes},
};
use http::{HeaderMap, Request, StatusCode, header};
use jurat_core::{
    account::{
        caller::{Caller, CallerKey, CreditMode, Scope},
        key::{ApiKey, Key},
    },
    id::AccountId,
    time::Timestamp,
};
use jurat_engine::{
    AccountSettings, Clock, ConsensusProfiles, Engine, EngineLimits, EngineParts, Failpoints,
    JudgesConfig, NodeSigningKey, PaymentSettings, PeerParts, PeerSettings, SoleNode,
    WebhookSettings,
};
use jurat_guard::{client::OutboundClient, sandbox::Sandbox};
use jurat_store::{Behalf, KeyRecord, Store, StoreLocation};
use jurat_wire::api::openai::profile::built_in;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{
    client::RouterTransport,
    described,
    fake_executor::{Behaviour, FakeExecutor},
    fake_peer::bind_mesh,
    mail::Outbox,
};

/// A clock that moves only when a test moves it, with repeatable random numbers.
#[derive(Debug)]
pub struct ManualClock {
    micros: AtomicI64,
    /// How far a test has set the clock ahead.
    ahead: AtomicI64,
    draws: AtomicU64,
}

impl ManualClock {
    /// A fixed morning in 2026.
    pub fn new() -> Arc<Self> {
        static CLOCKS: AtomicU64 = AtomicU64::new(0);
        // Two nodes in one test must not draw the same identifiers.
        let draws = CLOCKS.fetch_add(1, Ordering::SeqCst) * 1_000_000;
        Arc::new(Self {
            micros: AtomicI64::new(1_790_000_000_000_000),
            ahead: AtomicI64::new(0),
            draws: AtomicU64::new(draws),
        })
    }

    pub fn advance_ms(&self, millis: i64) {
        self.micros.fetch_add(millis * 1_000, Ordering::SeqCst);
    }

    /// Sets the clock ahead, or back if negative, while no time passes.
    pub fn set_by_ms(&self, millis: i64) {
        self.ahead.fetch_add(millis * 1_000, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(
            self.micros.load(Ordering::SeqCst) + self.ahead.load(Ordering::SeqCst),
        )
    }

    fn steady(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }

    fn bits(&self) -> u128 {
        let draw = u128::from(self.draws.fetch_add(1, Ordering::SeqCst) + 1);
        // An odd multiplier spreads a counter over all bits, the same way every time.
        draw.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }
}

#[derive(Debug)]
pub struct TestApp {
    pub engine: Engine,
    pub clock: Arc<ManualClock>,
    pub store: Arc<Store>,
    pub outbox: Arc<Outbox>,
    router: Router,
}

/// A complete reply.
#[derive(Debug)]
pub struct TestReply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl TestReply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The sender of requests in a test.
#[derive(Debug)]
pub struct TestCaller<'a> {
    app: &'a TestApp,
    key: Option<String>,
    address: Option<IpAddr>,
}

/// The settings in which test applications differ.
struct AppSettings {
    judges: JudgesConfig,
    profiles: ConsensusProfiles,
    webhooks: WebhookSettings,
    payments: Option<PaymentSettings>,
    points: Failpoints,
    node_seed: [u8; 32],
    peers: Option<PeerParts>,
}

impl Default for AppSettings {
    fn default() -> Self {
        Self {
            judges: JudgesConfig::default(),
            profiles: built_in(),
            webhooks: WebhookSettings::default(),
            payments: None,
            points: Failpoints::default(),
            node_seed: [7; 32],
            peers: None,
        }
    }
}

impl TestApp {
    /// On an embedded store in memory.
    pub async fn new() -> Self {
        Self::with_store(&StoreLocation::Memory).await
    }

    pub async fn with_store(location: &StoreLocation) -> Self {
        let store = jurat_store::open(location).await.unwrap();
        Self::on(store, EngineLimits::default()).await
    }

    pub async fn with_limits(limits: EngineLimits) -> Self {
        Self::on(jurat_store::open(&StoreLocation::Memory).await.unwrap(), limits).await
    }

    pub async fn on(store: Arc<Store>, limits: EngineLimits) -> Self {
        Self::made_of(store, limits, JudgesConfig::default()).await
    }

    /// With these settings for webhooks, on an embedded store in memory.
    pub async fn with_webhooks(webhooks: WebhookSettings) -> Self {
        Self::sending(jurat_store::open(&StoreLocation::Memory).await.unwrap(), webhooks).await
    }

    /// With these settings for webhooks.
    pub async fn sending(store: Arc<Store>, webhooks: WebhookSettings) -> Self {
        let settings = AppSettings { webhooks, ..AppSettings::default() };
        Self::assembled(store, EngineLimits::default(), settings).await
    }

    /// With judges, and these settings for webhooks.
    pub async fn announcing(
        store: Arc<Store>,
        limits: EngineLimits,
        judges: JudgesConfig,
        webhooks: WebhookSettings,
    ) -> Self {
        let settings = AppSettings { judges, webhooks, ..AppSettings::default() };
        Self::assembled(store, limits, settings).await
    }

    /// With judges, on an embedded store in memory.
    pub async fn with_judges(judges: JudgesConfig) -> Self {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        Self::made_of(store, EngineLimits::default(), judges).await
    }

    /// With actions at named fail points, on an embedded store in memory.
    pub async fn with_points(points: Failpoints) -> Self {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        let settings = AppSettings { points, ..AppSettings::default() };
        Self::assembled(store, EngineLimits::default(), settings).await
    }

    /// With consensus profiles of an operator, on an embedded store in memory.
    pub async fn with_profiles(profiles: ConsensusProfiles) -> Self {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        let settings = AppSettings { profiles, ..AppSettings::default() };
        Self::assembled(store, EngineLimits::default(), settings).await
    }

    pub async fn made_of(store: Arc<Store>, limits: EngineLimits, judges: JudgesConfig) -> Self {
        Self::assembled(store, limits, AppSettings { judges, ..AppSettings::default() }).await
    }

    /// Selling rounds.
    pub async fn selling(store: Arc<Store>, payments: PaymentSettings) -> Self {
        let settings = AppSettings { payments: Some(payments), ..AppSettings::default() };
        Self::assembled(store, EngineLimits::default(), settings).await
    }

    /// Selling rounds, with actions at named fail points.
    pub async fn selling_through(
        store: Arc<Store>,
        payments: PaymentSettings,
        points: Failpoints,
    ) -> Self {
        let settings = AppSettings { payments: Some(payments), points, ..AppSettings::default() };
        Self::assembled(store, EngineLimits::default(), settings).await
    }

    /// Selling rounds within limits, on an embedded store in memory.
    pub async fn selling_within(limits: EngineLimits, payments: PaymentSettings) -> Self {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        let settings = AppSettings { payments: Some(payments), ..AppSettings::default() };
        Self::assembled(store, limits, settings).await
    }

    /// Selling rounds, with consensus profiles of an operator, on an embedded store in memory.
    pub async fn selling_with(payments: PaymentSettings, profiles: ConsensusProfiles) -> Self {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        let settings = AppSettings { payments: Some(payments), profiles, ..AppSettings::default() };
        Self::assembled(store, EngineLimits::default(), settings).await
    }

    /// A node with an endpoint for others on this machine, which serves them.
    pub async fn node(seed: u8) -> Self {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        Self::node_on(store, seed, Failpoints::default()).await
    }

    /// The same on a store, with actions at named fail points.
    pub async fn node_on(store: Arc<Store>, seed: u8, points: Failpoints) -> Self {
        let (mesh, requests) = bind_mesh(seed).await;
        let name = Some(format!("node {seed}"));
        let settings = PeerSettings { name, ..PeerSettings::default() };
        let peers = Some(PeerParts { mesh, requests, settings });
        let node_seed = [seed; 32];
        let settings = AppSettings { points, node_seed, peers, ..AppSettings::default() };
        let app = Self::assembled(store, EngineLimits::default(), settings).await;
        app.start(SoleNode::No).await;
        app
    }

    async fn assembled(store: Arc<Store>, limits: EngineLimits, settings: AppSettings) -> Self {
        let AppSettings { judges, profiles, webhooks, payments, points, node_seed, peers } =
            settings;
        let (clock, outbox) = (ManualClock::new(), Arc::<Outbox>::default());
        let tokens = BTreeMap::from([
            ("JURAT_TEST_TOKEN", "a-token-for-tests".to_owned()),
            // Every test application knows the same admin, so that one can be the executor of
            // another.
            ("JURAT_TEST_ADMIN", admin_key().reveal()),
        ]);
        let engine = Engine::new(EngineParts {
            store: Arc::clone(&store),
            clock: Arc::<ManualClock>::clone(&clock),
            client: OutboundClient::new(jurat_guard::client::ClientLimits::default()).unwrap(),
            bounded: Sandbox::new(2),
            node_key: NodeSigningKey::from_seed(&node_seed).unwrap(),
            secrets: Arc::new(move |name| tokens.get(name).cloned()),
            limits,
            judges,
            profiles,
            failpoints: points,
            payments,
            peers,
            accounts: AccountSettings {
                mailer: Arc::<Outbox>::clone(&outbox),
                is_open: true,
                grant_micros: 0,
                public_url: None,
            },
            webhooks,
        });
        engine.key_ensure_admin(&admin_key()).await.unwrap();
        let router = jurat_server::router(engine.clone());
        Self { engine, clock, store, outbox, router }
    }

    /// The same application with these settings for other systems.
    #[must_use]
    pub fn with_peers(self, peers: jurat_server::PeerOptions) -> Self {
        let router = jurat_server::router_with(self.engine.clone(), peers);
        Self { router, ..self }
    }

    /// Starts the background work of a node.
    pub async fn start(&self, alone: SoleNode) {
        self.engine.start(alone).await.unwrap();
    }

    pub fn admin(&self) -> TestCaller<'_> {
        TestCaller { app: self, key: Some(admin_key().reveal()), address: None }
    }

    pub fn anonymous(&self) -> TestCaller<'_> {
        TestCaller { app: self, key: None, address: None }
    }

    pub fn with_key(&self, key: &str) -> TestCaller<'_> {
        TestCaller { app: self, key: Some(key.to_owned()), address: None }
    }

    /// A caller with an account of its own, which is created if necessary.
    pub async fn caller(&self, name: &str, scopes: &[Scope]) -> TestCaller<'_> {
        let account = AccountId::parse(&format!("acct_{name}")).unwrap();
        self.store.accounts().ensure(&Behalf::Platform, &account, &self.clock.now()).await.unwrap();
        let key = ApiKey::new(self.clock.bits(), [self.clock.bits(), self.clock.bits()]);
        let record = key_record(&key, account, scopes, self.clock.now());
        self.store.keys().put(&Behalf::Platform, &record).await.unwrap();
        TestCaller { app: self, key: Some(key.reveal()), address: None }
    }

    /// Starts fakes and registers them with sessions `s1`, `s2`, …, each with a provider and a
    /// model of its own.
    pub async fn executors<const N: usize>(&self, behaviours: [Behaviour; N]) -> [FakeExecutor; N] {
        let mut fakes = Vec::with_capacity(N);
        for (index, behaviour) in behaviours.into_iter().enumerate() {
            let (family, model) = (format!("family-{}", index + 1), format!("model-{}", index + 1));
            let behaviour = behaviour.provider_family(&family).model_id(&model);
            let fake = FakeExecutor::start(behaviour).await;
            self.register(&format!("s{}", index + 1), &fake.url()).await;
            fakes.push(fake);
        }
        fakes.try_into().unwrap()
    }

    pub async fn register(&self, name: &str, url: &str) {
        let reply = self.admin().post("/v1/executors", &json!({ "name": name, "url": url })).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    }
}

impl TestCaller<'_> {
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    pub(crate) fn transport(&self) -> RouterTransport {
        RouterTransport { router: self.app.router.clone(), address: self.address }
    }

    /// The same caller from this network address.
    #[must_use]
    pub fn at(self, address: &str) -> Self {
        Self { address: Some(address.parse().unwrap()), ..self }
    }

    pub async fn post(&self, path: &str, body: &Value) -> TestReply {
        self.send("POST", path, Body::from(body.to_string()), &[]).await
    }

    /// Posts with additional headers.
    pub async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> TestReply {
        self.send("POST", path, Body::from(body.to_string()), headers).await
    }

    pub async fn get(&self, path: &str) -> TestReply {
        self.send("GET", path, Body::empty(), &[]).await
    }

    pub async fn delete(&self, path: &str) -> TestReply {
        self.send("DELETE", path, Body::empty(), &[]).await
    }

    /// Sends a request as it is; later headers replace earlier ones. The reply must match the
    /// OpenAPI document.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: Body,
        headers: &[(&str, &str)],
    ) -> TestReply {
        let reply = self.send_undescribed(method, path, body, headers).await;
        described::check(method, path, &reply);
        reply
    }

    /// Sends a request that the OpenAPI document does not describe.
    pub async fn send_undescribed(
        &self,
        method: &str,
        path: &str,
        body: Body,
        headers: &[(&str, &str)],
    ) -> TestReply {
        let mut request = Request::builder().method(method).uri(path).body(body).unwrap();
        let map = request.headers_mut();
        map.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        if let Some(key) = &self.key {
            map.insert(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
        }
        for (name, value) in headers {
            map.insert(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        if let Some(address) = self.address {
            request.extensions_mut().insert(jurat_server::PeerAddress(address));
        }
        let response = self.app.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        TestReply { status: parts.status, headers: parts.headers, body }
    }
}

/// A caller for tests that use the engine without HTTP.
pub fn admin_caller() -> Caller {
    #[expect(clippy::disallowed_methods, reason = "tests make callers without a key")]
    Caller::authenticated(
        AccountId::admin(),
        BTreeSet::from([Scope::Admin]),
        CallerKey { id: admin_key().id().to_owned(), concurrent_rounds: usize::MAX },
        CreditMode::Unmetered,
    )
}

/// A stored key without limits or expiry, named like its account.
pub fn key_record(
    key: &ApiKey,
    account: AccountId,
    scopes: &[Scope],
    created_at: Timestamp,
) -> KeyRecord {
    let name = account.to_string();
    let known = Key {
        id: key.id().to_owned(),
        account,
        name,
        scopes: scopes.iter().copied().collect(),
        rate_per_minute: None,
        concurrent_rounds: None,
        created_at,
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    KeyRecord { key: known, secret_hash: key.secret_hash(), suspended: false }
}

/// The operator's key of every test application.
pub fn admin_key() -> ApiKey {
    ApiKey::new(1, [2, 3])
}
