//! Missing judges, keys, rules, and commitments.

use std::sync::Arc;

use jurat_core::{judge::JudgeVerdict, round::replica::FailureCode, verifier::InputContract};
use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, commitment, verdict};

use super::{BOTH, JudgeTestNode, KEY, failure_of, question, task, verdict_of};

#[tokio::test]
async fn an_unconfigured_judge_is_named_and_not_asked() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::with(BOTH[0], &fake, |judges| {
        let mut keyless = judges.providers["fake"].clone();
        keyless.key_env = Some("NOT_SET".to_owned());
        let mut lost = judges.providers["fake"].clone();
        lost.base_url = "not an address".to_owned();
        judges.providers.get_mut("fake").unwrap().models = Some(["m".to_owned()].into());
        judges.providers.insert("keyless".to_owned(), keyless);
        judges.providers.insert("lost".to_owned(), lost);
    })
    .await;
    for (model, problem) in [
        (
            "other/m",
            "the provider `other` is not configured; configured: fake, keyless, lost, builtin",
        ),
        ("fake/n", "the provider `fake` is not configured for the model `n`; configured: m"),
        (
            "keyless/m",
            "the provider `keyless` needs its key in the environment variable `NOT_SET`, which is not set",
        ),
        ("lost/m", "the address of the provider `lost` cannot be used"),
        ("builtin/m", "the only built-in judge is `builtin/rules`"),
    ] {
        let mut task = task(question("x"));
        task.model = model.parse().unwrap();
        let judged = court.judge(&task).await;
        assert_eq!(failure_of(&judged), (FailureCode::JudgeUnavailable, problem));
        let unknown = court.engine.judge_available(&task.model).unwrap_err();
        assert_eq!(unknown.to_string(), problem);
    }
    assert!(fake.asked().is_empty());
    for model in ["fake/m", "builtin/rules"] {
        assert_eq!(court.engine.judge_available(&model.parse().unwrap()), Ok(()));
    }
}

#[tokio::test]
async fn each_protocol_gets_its_key_and_its_own_headers() {
    for kind in BOTH {
        let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        verdict_of(&court.judge(&task(question("x"))).await);
        let call = &fake.asked()[0].call;
        if kind == BOTH[0] {
            assert_eq!(call.path, "/chat/completions");
            assert_eq!(call.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        } else {
            assert_eq!(call.path, "/v1/messages");
            assert_eq!(call.header("x-api-key"), Some(KEY));
            assert_eq!(call.header("anthropic-version"), Some("2023-06-01"));
        }
    }
}

#[tokio::test]
async fn rules_are_judged_without_a_provider() {
    let fake = FakeProvider::saying([]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let mut asked = question("See Source: 7.");
    asked.criterion = r#"{"contains":{"field":"response","text":"Source:"}}"#.to_owned();
    let mut task = task(asked.clone());
    task.model = "builtin/rules".parse().unwrap();
    let judged = court.judge(&task).await;
    assert_eq!(verdict_of(&judged), JudgeVerdict::Met);
    assert_eq!((judged.cost_micros, judged.usage.calls), (0, 0));
    let mut image = asked.clone();
    image.contract = InputContract::TextImage;
    task.question = Arc::new(image);
    assert_eq!(failure_of(&court.judge(&task).await).0, FailureCode::JudgeUnavailable);
    asked.criterion = "Is it kind?".to_owned();
    task.question = Arc::new(asked);
    assert_eq!(failure_of(&court.judge(&task).await).0, FailureCode::JudgeUnavailable);
}

#[tokio::test]
async fn a_judge_commits_before_it_sees_the_candidate() {
    for kind in BOTH {
        let fake = FakeProvider::start(|asked| {
            ProviderReply::Answer(if asked.is_commit() { commitment() } else { verdict("not_met") })
        })
        .await;
        let court = JudgeTestNode::new(kind, &fake).await;
        let mut task = task(question("THE-CANDIDATE"));
        task.commit_first = true;
        let judged = court.judge(&task).await;
        assert_eq!(verdict_of(&judged), JudgeVerdict::NotMet);
        assert_eq!(judged.usage.calls, 2);
        let asked = fake.asked();
        assert!(!String::from_utf8_lossy(&asked[0].call.raw).contains("THE-CANDIDATE"));
        assert!(asked[0].system().contains("every claim is in the source"));
        let locks = asked[1].conversation();
        let (role, text) = &locks[locks.len() - 2];
        assert_eq!((role.as_str(), text), ("assistant", &commitment().to_string()));
        assert_eq!(asked[1].field("response").unwrap(), "THE-CANDIDATE");
        let digest = judged.outcome.unwrap().commitment.unwrap();
        let canonical = jurat_core::canonical::canonical(&commitment());
        assert_eq!(digest, jurat_core::canonical::sha256_hex(&canonical));
    }
}

#[tokio::test]
async fn an_unreadable_commitment_is_not_a_verdict() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let mut task = task(question("x"));
    task.commit_first = true;
    let judged = court.judge(&task).await;
    assert_eq!(failure_of(&judged).0, FailureCode::JudgeUnreadable);
    assert_eq!(judged.usage.calls, 2);
}

#[tokio::test]
async fn a_judgment_has_exactly_one_correction() {
    let says = [
        ProviderReply::Text("hm".to_owned()),
        ProviderReply::Answer(commitment()),
        ProviderReply::Text("hm".to_owned()),
        ProviderReply::Answer(verdict("met")),
    ];
    let fake = FakeProvider::saying(says).await;
    let court = JudgeTestNode::new(BOTH[1], &fake).await;
    let mut task = task(question("x"));
    task.commit_first = true;
    let judged = court.judge(&task).await;
    assert_eq!(failure_of(&judged).0, FailureCode::JudgeUnreadable);
    assert_eq!(judged.usage.calls, 3);
}

#[tokio::test]
async fn inputs_that_are_too_long_are_not_sent() {
    let fake = FakeProvider::saying([]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let judged = court.judge(&task(question(&"x".repeat(200_001)))).await;
    assert_eq!(failure_of(&judged).0, FailureCode::Internal);
    assert!(fake.asked().is_empty());
}
