//! The log contains neither keys nor questions and answers of judges.

use std::{io, sync::Arc};

use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, verdict};
use parking_lot::Mutex;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::{BOTH, JudgeTestNode, KEY, question, task};

#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogCapture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogCapture {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn keys_candidates_and_answers_stay_out_of_the_log() {
    let log = LogCapture::default();
    let lines = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(lines);
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
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(text.contains("calling a judge again"), "{text}");
    assert!(text.contains("model rejects some request options; leaving them out"), "{text}");
    assert_eq!(failures.len(), 2);
    assert!(failures[0].ends_with("answered 401 Unauthorized (invalid_api_key)"), "{failures:?}");
    for secret in [KEY, "THE-CANDIDATE", "THE-ANSWER"] {
        assert!(!text.contains(secret), "{secret} in {text}");
        assert!(failures.iter().all(|failure| !failure.contains(secret)));
    }
}
