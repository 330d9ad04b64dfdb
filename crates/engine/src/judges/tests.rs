//! Judges over real sockets: the requests they get, and the meaning of their answers and faults.

mod cache;
mod costs;
mod faults;
mod hostile;
mod images;
mod injection;
mod logs;
mod retries;
mod setup;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use jurat_core::{
    id::AccountId,
    judge::{JudgeVerdict, Price, Question},
    round::replica::FailureCode,
    time::Timestamp,
    verifier::{InputContract, VerifierExample},
};
use jurat_guard::{client::OutboundClient, sandbox::Sandbox};
use jurat_store::StoreLocation;
use jurat_testkit::fake_provider::FakeProvider;
use tokio::time::Instant;

use super::{
    JudgeQuestion, JudgeResult, JudgesConfig, ProviderKind, ProviderSettings, SharedImage,
};
use crate::{Clock, Engine, EngineLimits, EngineParts, NodeSigningKey};

/// The key of every fake; it must not appear in any log.
const KEY: &str = "sk-test-0123456789";
const BOTH: [ProviderKind; 2] = [ProviderKind::OpenAi, ProviderKind::Anthropic];

/// A clock that moves only when a test moves it, with repeatable random numbers.
#[derive(Debug)]
struct JudgeTestClock {
    micros: AtomicI64,
    draws: AtomicU64,
}

impl JudgeTestClock {
    fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap();
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for JudgeTestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }

    fn bits(&self) -> u128 {
        u128::from(self.draws.fetch_add(1, Ordering::SeqCst)) << 64 | 7
    }
}

/// An engine with one provider.
struct JudgeTestNode {
    engine: Engine,
    clock: Arc<JudgeTestClock>,
}

impl JudgeTestNode {
    async fn new(kind: ProviderKind, fake: &FakeProvider) -> Self {
        Self::with(kind, fake, |_| ()).await
    }

    async fn with(
        kind: ProviderKind,
        fake: &FakeProvider,
        change: impl FnOnce(&mut JudgesConfig),
    ) -> Self {
        let mut settings = ProviderSettings::new(kind, fake.url());
        settings.key_env = Some("THE_KEY".to_owned());
        settings.timeout = Duration::from_secs(30);
        let price =
            Price { input_micros_per_million: 3_000_000, output_micros_per_million: 15_000_000 };
        settings.prices.insert("m".to_owned(), price);
        let mut judges = JudgesConfig::default();
        judges.providers.insert("fake".to_owned(), settings);
        change(&mut judges);
        let clock = Arc::new(JudgeTestClock {
            micros: AtomicI64::new(1_790_000_000_000_000),
            draws: AtomicU64::new(0),
        });
        let engine = Engine::new(EngineParts {
            store: jurat_store::open(&StoreLocation::Memory).await.unwrap(),
            clock: Arc::<JudgeTestClock>::clone(&clock),
            client: OutboundClient::new(jurat_guard::client::ClientLimits::default()).unwrap(),
            bounded: Sandbox::new(1),
            node_key: NodeSigningKey::from_seed(&[7; 32]).unwrap(),
            secrets: Arc::new(|name| (name == "THE_KEY").then(|| KEY.to_owned())),
            limits: EngineLimits::default(),
            judges,
            accounts: crate::AccountSettings::default(),
            profiles: crate::ConsensusProfiles::default(),
            webhooks: crate::WebhookSettings::default(),
            payments: None,
            peers: None,
            failpoints: crate::Failpoints::default(),
        });
        Self { engine, clock }
    }

    async fn judge(&self, task: &JudgeQuestion) -> JudgeResult {
        self.engine.judge(task).await
    }
}

fn inputs(response: &str, source: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("response".to_owned(), response.to_owned()),
        ("source".to_owned(), source.to_owned()),
    ])
}

fn question(response: &str) -> Question {
    let example = |response: &str, passed| VerifierExample {
        inputs: inputs(response, "The sky is blue."),
        media_url: None,
        passed,
        reasoning: Some("As the source says.".to_owned()),
    };
    Question {
        criterion: "Return passed=true when every claim is in the source.".to_owned(),
        contract: InputContract::Text,
        fields: vec!["response".to_owned(), "source".to_owned()],
        examples: vec![example("It is blue.", true), example("It is red.", false)],
        inputs: inputs(response, "Grass is green."),
    }
}

fn task(question: Question) -> JudgeQuestion {
    JudgeQuestion {
        question: Arc::new(question),
        model: "fake/m".parse().unwrap(),
        effort: None,
        commit_first: false,
        image: None,
        account: AccountId::admin(),
        sharer: AccountId::admin(),
        // Verdicts are cached only for existing verifiers, and this one always exists.
        verifier_id: "system:test".to_owned(),
        is_fresh: false,
        deadline: Instant::now() + Duration::from_mins(1),
        seat_bill: None,
    }
}

#[track_caller]
fn verdict_of(judged: &JudgeResult) -> JudgeVerdict {
    judged.outcome.as_ref().unwrap().verdict
}

#[track_caller]
fn failure_of(judged: &JudgeResult) -> (FailureCode, &str) {
    let failure = judged.outcome.as_ref().unwrap_err();
    (failure.code, &failure.detail)
}
