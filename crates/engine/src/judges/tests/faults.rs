//! Every fault of a provider has its own failure code, and none becomes a verdict.

use jurat_core::{judge::JudgeVerdict, round::replica::FailureCode};
use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, verdict};
use serde_json::{Value, json};

use super::{BOTH, JudgeTestNode, failure_of, question, task, verdict_of};

fn quoting(field: &str, quote: &str, says: &str, word: &str) -> Value {
    let finding = json!({ "field": field, "quote": quote, "says": says });
    json!({ "findings": [finding], "reasoning": "r", "verdict": word })
}

#[tokio::test]
async fn a_judge_gives_each_verdict_with_its_findings_and_its_cost() {
    for kind in BOTH {
        for word in JudgeVerdict::ALL {
            let says = quoting("response", "grass", "supports", word.as_str());
            let fake = FakeProvider::saying([ProviderReply::Answer(says)]).await;
            let court = JudgeTestNode::new(kind, &fake).await;
            let judged = court.judge(&task(question("The grass is green."))).await;
            assert_eq!(verdict_of(&judged), *word);
            assert_eq!(judged.outcome.as_ref().unwrap().findings[0].quote, "grass");
            let usage = judged.usage;
            assert_eq!((usage.input_tokens, usage.output_tokens, usage.calls), (100, 20, 1));
            assert_eq!(judged.cost_micros, 100 * 3 + 20 * 15);
        }
    }
}

#[tokio::test]
async fn an_answer_without_a_verdict_is_asked_for_again_and_then_unreadable() {
    let met = verdict("met");
    let twice = r#"{"findings":[],"reasoning":"r","verdict":"met","verdict":"not_met"}"#;
    let cases = [
        (ProviderReply::Text("It is met.".to_owned()), "not one JSON document"),
        (ProviderReply::Text(String::new()), "there was no answer"),
        (ProviderReply::Text("{\"verdict\":\"met\"".to_owned()), "not one JSON document"),
        (ProviderReply::Text(twice.to_owned()), "the same member twice"),
        (ProviderReply::Answer(json!({"verdict": "met"})), "did not have exactly the members"),
        (ProviderReply::Answer(json!({"passed": true})), "did not have exactly the members"),
        (ProviderReply::Answer(json!("met")), "did not have exactly the members"),
        (ProviderReply::Answer(verdict("yes")), "`verdict` was none of"),
        (
            ProviderReply::Answer(quoting("response", "cow", "supports", "met")),
            "word for word in the field `response`",
        ),
        (
            ProviderReply::Answer(quoting("source", "sky", "supports", "met")),
            "word for word in the field `source`",
        ),
        (
            ProviderReply::Answer(quoting("answer", "sky", "supports", "met")),
            "named a field that does not exist",
        ),
        (
            ProviderReply::Answer(quoting("response", "sky", "violates", "met")),
            "although a finding says `violates`",
        ),
        (
            ProviderReply::Calls(vec![met.clone(), verdict("not_met")]),
            "several answers, and they differ",
        ),
        (
            ProviderReply::Choices(vec![met, verdict("cannot_confirm")]),
            "several answers, and they differ",
        ),
        (ProviderReply::Body("{\"choices\":[],\"content\":[]}".to_owned()), "there was no answer"),
        (ProviderReply::Body("<html>busy</html>".to_owned()), "not one JSON document"),
    ];
    for kind in BOTH {
        for (says, problem) in &cases {
            let fake = FakeProvider::saying([says.clone()]).await;
            let court = JudgeTestNode::new(kind, &fake).await;
            let judged = court.judge(&task(question("The sky"))).await;
            let (code, detail) = failure_of(&judged);
            assert_eq!(code, FailureCode::JudgeUnreadable, "{says:?}");
            assert!(detail.contains(problem), "{says:?}: {detail}");
            assert_eq!(judged.usage.calls, 2, "{says:?}");
            let asked = fake.asked();
            assert!(!asked[0].system().contains("could not be used"));
            assert!(asked[1].system().contains(problem), "{}", asked[1].system());
            assert_eq!(asked[0].conversation().len(), asked[1].conversation().len());
        }
    }
}
