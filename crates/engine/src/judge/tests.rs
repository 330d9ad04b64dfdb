//! Judges over real sockets: what they are sent, and what their answers and faults amount to.

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
    replica::FailureCode,
    time::Timestamp,
    verifier::{Example, InputContract},
};
use jurat_guard::{bounded::Bounded, client::Client};
use jurat_store::Location;
use jurat_testkit::fake_provider::FakeProvider;
use tokio::time::Instant;

use super::{JudgeTask, Judged, Judges, ProviderKind, ProviderSettings, SharedImage};
use crate::{Clock, Engine, Limits, NodeKey, Parts};

/// The key of every fake; no log may have it.
const KEY: &str = "sk-test-0123456789";
const BOTH: [ProviderKind; 2] = [ProviderKind::OpenAi, ProviderKind::Anthropic];

/// Time that moves only when told to, and chance that repeats itself.
#[derive(Debug)]
struct Hand {
    micros: AtomicI64,
    draws: AtomicU64,
}

impl Hand {
    fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap();
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }

    fn bits(&self) -> u128 {
        u128::from(self.draws.fetch_add(1, Ordering::SeqCst)) << 64 | 7
    }
}

/// An engine with one provider.
struct Court {
    engine: Engine,
    clock: Arc<Hand>,
}

impl Court {
    async fn new(kind: ProviderKind, fake: &FakeProvider) -> Self {
        Self::with(kind, fake, |_| ()).await
    }

    async fn with(
        kind: ProviderKind,
        fake: &FakeProvider,
        change: impl FnOnce(&mut Judges),
    ) -> Self {
        let mut settings = ProviderSettings::new(kind, fake.url());
        settings.key_env = Some("THE_KEY".to_owned());
        settings.timeout = Duration::from_secs(30);
        let price =
            Price { input_micros_per_million: 3_000_000, output_micros_per_million: 15_000_000 };
        settings.prices.insert("m".to_owned(), price);
        let mut judges = Judges::default();
        judges.providers.insert("fake".to_owned(), settings);
        change(&mut judges);
        let clock = Arc::new(Hand {
            micros: AtomicI64::new(1_790_000_000_000_000),
            draws: AtomicU64::new(0),
        });
        let engine = Engine::new(Parts {
            store: jurat_store::open(&Location::Memory).await.unwrap(),
            clock: Arc::<Hand>::clone(&clock),
            client: Client::new(jurat_guard::client::Limits::default()).unwrap(),
            bounded: Bounded::new(1),
            node_key: NodeKey::from_seed(&[7; 32]).unwrap(),
            secrets: Arc::new(|name| (name == "THE_KEY").then(|| KEY.to_owned())),
            limits: Limits::default(),
            judges,
            accounts: crate::Accounts::default(),
            points: crate::Points::default(),
        });
        Self { engine, clock }
    }

    async fn judge(&self, task: &JudgeTask) -> Judged {
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
    let example = |response: &str, passed| Example {
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

fn task(question: Question) -> JudgeTask {
    JudgeTask {
        question: Arc::new(question),
        model: "fake/m".parse().unwrap(),
        effort: None,
        commit_first: false,
        image: None,
        account: AccountId::admin(),
        sharer: AccountId::admin(),
        // Verdicts are kept only for verifiers that are there, and this one always is.
        verifier_id: "system:test".to_owned(),
        is_fresh: false,
        deadline: Instant::now() + Duration::from_mins(1),
        bill: None,
    }
}

#[track_caller]
fn verdict_of(judged: &Judged) -> JudgeVerdict {
    judged.outcome.as_ref().unwrap().verdict
}

#[track_caller]
fn failure_of(judged: &Judged) -> (FailureCode, &str) {
    let failure = judged.outcome.as_ref().unwrap_err();
    (failure.code, &failure.detail)
}
