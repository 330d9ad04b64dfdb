//! The log contains neither keys nor questions and answers of judges.

use jurat_testkit::{
    fake_provider::{FakeProvider, ProviderReply, verdict},
    log::LogCapture,
};
use serde_json::json;

use super::{BOTH, JudgeTestNode, KEY, question, task};

#[tokio::test]
async fn keys_candidates_and_answers_stay_out_of_the_log() {
    let (log, _guard) = LogCapture::start();
    let leak = json!({"error": {"code": "invalid_api_key", "message": format!("bad key {KEY}")}});
    let refuses = json!({"error": {"message": format!("no `temperature` with {KEY}")}});
    let mut failures = Vec::new();
    for kind in BOTH {
        let says = [
            ProviderReply::Wait(429, "0".to_owned()),
            ProviderReply::Error(400, refuses.clone()),
            ProviderReply::Text("THE-ANSWER".to_owned()),
            ProviderReply::Error(401, leak.clone()),
            ProviderReply::Answer(verdict("met")),
        ];
        let fake = FakeProvider::saying(says).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        for _ in 0..2 {
            let judged = court.judge(&task(question("THE-CANDIDATE"))).await;
            failures.extend(judged.outcome.err().map(|failure| failure.detail));
        }
    }
    let text = log.text();
    assert!(text.contains("calling a judge again"), "{text}");
    assert!(text.contains("model rejects some request options; leaving them out"), "{text}");
    assert_eq!(failures.len(), 2);
    assert!(failures[0].ends_with("answered 401 Unauthorized (invalid_api_key)"), "{failures:?}");
    for secret in [KEY, "THE-CANDIDATE", "THE-ANSWER"] {
        assert!(!text.contains(secret), "{secret} in {text}");
        assert!(failures.iter().all(|failure| !failure.contains(secret)));
    }
}
