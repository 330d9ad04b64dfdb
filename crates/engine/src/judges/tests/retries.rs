//! Providers that are busy, late or gone: how often and how long they are asked.

use std::time::Duration;

use futures::future::join_all;
use jurat_core::{id::AccountId, judge::JudgeVerdict, round::replica::FailureCode};
use jurat_testkit::{
    fake_executor::Gate,
    fake_provider::{FakeProvider, ProviderReply, verdict},
};
use serde_json::json;
use tokio::time::{Instant, advance};

use super::{BOTH, JudgeQuestion, JudgeTestNode, failure_of, question, task, verdict_of};

/// Time that stands still until a test moves it, whatever sockets do meanwhile.
struct PausedTime(
    #[expect(dead_code, reason = "dropping it lets time go on")] std::sync::mpsc::Sender<()>,
);

impl PausedTime {
    fn begin() -> Self {
        tokio::time::pause();
        let (end, is_over) = std::sync::mpsc::channel::<()>();
        // Paused time does not advance while a thread works for the runtime.
        tokio::task::spawn_blocking(move || is_over.recv());
        Self(end)
    }
}

impl JudgeTestNode {
    /// Returns when no request is in progress, after this many.
    async fn waits(&self, fake: &FakeProvider, asked: usize) {
        fake.was_asked(asked).await;
        self.rests().await;
    }

    /// Returns when no request is in progress.
    async fn rests(&self) {
        // A task whose wait is over may run first.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let model = "fake/m".parse().unwrap();
        let secrets = &self.engine.inner.secrets;
        let provider = self.engine.inner.judge_providers.provider(&model, secrets).unwrap();
        while provider.permits.free() < provider.settings.concurrency {
            tokio::task::yield_now().await;
        }
    }
}

fn soon(task: JudgeQuestion, seconds: u64) -> JudgeQuestion {
    JudgeQuestion { deadline: Instant::now() + Duration::from_secs(seconds), ..task }
}

#[tokio::test]
async fn a_retry_waits_as_long_as_the_provider_asks() {
    // The test clock shows 2026-09-21 14:13:20.
    for wait in ["20", "Mon, 21 Sep 2026 14:13:40 GMT"] {
        let says =
            [ProviderReply::Wait(429, wait.to_owned()), ProviderReply::Answer(verdict("met"))];
        let fake = FakeProvider::saying(says).await;
        let court = JudgeTestNode::new(BOTH[0], &fake).await;
        let still = PausedTime::begin();
        let task = task(question("x"));
        let (judged, ()) = tokio::join!(court.judge(&task), async {
            court.waits(&fake, 1).await;
            advance(Duration::from_millis(19_990)).await;
            court.waits(&fake, 1).await;
            assert_eq!(fake.asked().len(), 1);
            advance(Duration::from_millis(20)).await;
        });
        drop(still);
        tokio::time::resume();
        assert_eq!(verdict_of(&judged), JudgeVerdict::Met);
        assert_eq!(judged.usage.calls, 2);
    }
}

#[tokio::test]
async fn a_wait_beyond_the_deadline_is_not_started() {
    let fake = FakeProvider::saying([ProviderReply::Wait(529, "61".to_owned())]).await;
    let court = JudgeTestNode::new(BOTH[1], &fake).await;
    let judged = court.judge(&task(question("x"))).await;
    let (code, detail) = failure_of(&judged);
    assert_eq!(code, FailureCode::JudgeUnavailable);
    assert_eq!(detail, "the provider `fake` answered 529 (some_error) and asks to wait 61 s");
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_temporary_failure_is_tried_three_times() {
    for kind in BOTH {
        let faults = [429, 500, 502, 503, 504, 529].map(ProviderReply::Status);
        for says in faults.into_iter().chain([ProviderReply::HangsUp]) {
            let fake = FakeProvider::saying([says.clone()]).await;
            let court = JudgeTestNode::new(kind, &fake).await;
            let still = PausedTime::begin();
            let task = task(question("x"));
            let (judged, ()) = tokio::join!(court.judge(&task), async {
                for asked in 1..3 {
                    court.waits(&fake, asked).await;
                    advance(Duration::from_secs(2)).await;
                }
            });
            drop(still);
            tokio::time::resume();
            assert_eq!(failure_of(&judged).0, FailureCode::JudgeUnavailable, "{says:?}");
            assert!(!failure_of(&judged).1.contains("sk-leak"));
            assert_eq!((fake.asked().len(), judged.usage.calls), (3, 3), "{says:?}");
            // A refusal costs nothing; after a cut connection the usage is unknown, so each try
            // costs its prompt and the longest answer.
            let longest = if matches!(says, ProviderReply::HangsUp) { 3 * 2_048 * 15 } else { 0 };
            assert_eq!(longest == 0, judged.cost_micros == 0, "{says:?}");
            assert!(longest <= judged.cost_micros, "{says:?}: {}", judged.cost_micros);
        }
    }
}

#[tokio::test]
async fn a_permanent_failure_is_tried_once() {
    let cases = [
        (ProviderReply::Status(400), FailureCode::JudgeUnavailable),
        (ProviderReply::Status(401), FailureCode::JudgeUnavailable),
        (ProviderReply::Status(403), FailureCode::JudgeUnavailable),
        (ProviderReply::Status(404), FailureCode::JudgeUnavailable),
        (ProviderReply::Status(301), FailureCode::JudgeUnavailable),
        (ProviderReply::Huge, FailureCode::JudgeUnreadable),
        (ProviderReply::Refusal, FailureCode::JudgeUnreadable),
        (ProviderReply::Filtered, FailureCode::JudgeUnreadable),
        (ProviderReply::Truncated(verdict("met").to_string()), FailureCode::JudgeUnreadable),
    ];
    for kind in BOTH {
        for (says, code) in &cases {
            let fake = FakeProvider::saying([says.clone()]).await;
            let court = JudgeTestNode::new(kind, &fake).await;
            let judged = court.judge(&task(question("x"))).await;
            assert_eq!(failure_of(&judged).0, *code, "{says:?}");
            assert_eq!(fake.asked().len(), 1, "{says:?}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_not_a_verdict() {
    let fake = FakeProvider::saying([]).await;
    let court = JudgeTestNode::with(BOTH[0], &fake, |judges| {
        let provider = judges.providers.get_mut("fake").unwrap();
        provider.base_url = "http://127.0.0.1:1".to_owned();
    })
    .await;
    let still = PausedTime::begin();
    // On a busy machine time may advance many times before the first call leaves.
    let task = soon(task(question("x")), 86_400);
    let mut judging = std::pin::pin!(court.judge(&task));
    let judged = loop {
        tokio::select! {
            biased;
            judged = &mut judging => break judged,
            () = court.rests() => advance(Duration::from_secs(2)).await,
        }
    };
    drop(still);
    let expected = (FailureCode::JudgeUnavailable, "the provider `fake`: no connection");
    assert_eq!(failure_of(&judged), expected);
    assert_eq!(judged.usage.calls, 3);
}

#[tokio::test]
async fn a_judge_that_never_answers_ends_with_the_deadline() {
    for kind in BOTH {
        let fake = FakeProvider::saying([ProviderReply::Hangs]).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        let still = PausedTime::begin();
        let task = soon(task(question("x")), 10);
        let (judged, ()) = tokio::join!(court.judge(&task), async {
            fake.was_asked(1).await;
            advance(Duration::from_secs(11)).await;
        });
        drop(still);
        tokio::time::resume();
        assert_eq!(failure_of(&judged).0, FailureCode::Timeout);
    }
}

#[tokio::test]
async fn a_request_times_out_with_its_provider() {
    let fake = FakeProvider::saying([ProviderReply::Hangs]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let still = PausedTime::begin();
    let task = task(question("x"));
    let (judged, ()) = tokio::join!(court.judge(&task), async {
        fake.was_asked(1).await;
        advance(Duration::from_secs(31)).await;
    });
    drop(still);
    let expected = (FailureCode::Timeout, "the provider `fake` did not answer within 30 s");
    assert_eq!(failure_of(&judged), expected);
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_are_busy_at_the_deadline() {
    let gate = Gate::new();
    let after = ProviderReply::After(gate.clone(), Box::new(ProviderReply::Answer(verdict("met"))));
    let fake = FakeProvider::saying([after]).await;
    let court = JudgeTestNode::with(BOTH[0], &fake, |judges| {
        judges.providers.get_mut("fake").unwrap().concurrency = 2;
    })
    .await;
    let still = PausedTime::begin();
    let (patient, hurried) = (soon(task(question("x")), 50), soon(task(question("y")), 5));
    let judging = async {
        let patient =
            join_all([court.judge(&patient), court.judge(&patient), court.judge(&patient)]);
        tokio::join!(patient, async {
            fake.was_asked(2).await;
            let (busy, ()) = tokio::join!(court.judge(&hurried), async {
                advance(Duration::from_secs(6)).await;
            });
            assert_eq!(fake.asked().len(), 2);
            gate.release();
            busy
        })
    };
    let (patient, busy) = judging.await;
    drop(still);
    for judged in &patient {
        assert_eq!(verdict_of(judged), JudgeVerdict::Met);
    }
    assert_eq!(failure_of(&busy).0, FailureCode::Busy);
    assert_eq!((fake.asked().len(), busy.usage.calls), (3, 0));
}

#[tokio::test]
async fn accounts_share_a_provider_fairly_however_many_requests_one_has() {
    let gate = Gate::new();
    let after = ProviderReply::After(gate.clone(), Box::new(ProviderReply::Answer(verdict("met"))));
    let fake = FakeProvider::saying([after]).await;
    let court = JudgeTestNode::with(BOTH[0], &fake, |judges| {
        let provider = judges.providers.get_mut("fake").unwrap();
        provider.concurrency = 1;
        // Without a price no history is read, so they arrive in this order.
        provider.prices.clear();
    })
    .await;
    let mut tasks: Vec<JudgeQuestion> =
        (1..5).map(|number| task(question(&format!("a{number}")))).collect();
    let other = AccountId::parse("acct_other").unwrap();
    let of_other = |response| JudgeQuestion { sharer: other.clone(), ..task(question(response)) };
    tasks.extend(["b1", "b2"].map(of_other));
    let (judged, ()) = tokio::join!(join_all(tasks.iter().map(|task| court.judge(task))), async {
        fake.was_asked(1).await;
        gate.release();
    });
    for judged in &judged {
        assert_eq!(verdict_of(judged), JudgeVerdict::Met);
    }
    let order: Vec<String> = fake.asked().iter().map(|it| it.field("response").unwrap()).collect();
    assert_eq!(order, ["a1", "b1", "a2", "b2", "a3", "a4"]);
}

#[tokio::test]
async fn refused_request_parts_are_left_out_and_not_sent_again() {
    let refuses = |parameter: &str, message: &str| {
        ProviderReply::Error(400, json!({"error": {"param": parameter, "message": message}}))
    };
    let chat = [
        refuses("max_tokens", "Unsupported parameter: 'max_tokens'."),
        refuses("temperature", "Unsupported value: 'temperature' does not support 0."),
        refuses("", "response_format is not supported by this server"),
        ProviderReply::Answer(verdict("met")),
    ];
    let messages = [
        refuses("", "`temperature` is deprecated for this model."),
        refuses("", "output_config: Extra inputs are not permitted"),
        ProviderReply::Answer(verdict("met")),
        ProviderReply::Answer(verdict("met")),
    ];
    for (kind, says) in BOTH.into_iter().zip([chat, messages]) {
        let fake = FakeProvider::saying(says).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        verdict_of(&court.judge(&task(question("x"))).await);
        verdict_of(&court.judge(&task(question("y"))).await);
        let asked = fake.asked();
        let last = asked.last().unwrap().body();
        for member in ["temperature", "response_format", "output_config"] {
            assert!(last.get(member).is_none(), "{member}");
        }
        let limits =
            (last.get("max_tokens").is_some(), last.get("max_completion_tokens").is_some());
        let is_chat = kind == BOTH[0];
        assert_eq!(limits, (!is_chat, is_chat));
        assert_eq!(asked.len(), if is_chat { 5 } else { 4 });
    }
}

#[tokio::test]
async fn a_provider_that_refuses_every_form_is_unavailable() {
    let refusal =
        json!({"error": {"message": "temperature response_format max_completion_tokens"}});
    let fake = FakeProvider::saying([ProviderReply::Error(400, refusal)]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let judged = court.judge(&task(question("x"))).await;
    assert_eq!(failure_of(&judged).0, FailureCode::JudgeUnavailable);
    assert_eq!(fake.asked().len(), 4);
}

#[tokio::test]
async fn effort_is_sent_in_the_words_of_each_protocol() {
    for kind in BOTH {
        let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        let mut task = task(question("x"));
        task.effort = Some(jurat_core::verifier::Effort::High);
        verdict_of(&court.judge(&task).await);
        let asked = &fake.asked()[0];
        let said = if kind == BOTH[0] { "/reasoning_effort" } else { "/output_config/effort" };
        assert_eq!(asked.body().pointer(said), Some(&json!("high")));
        assert!(asked.body().get("temperature").is_none());
    }
}
