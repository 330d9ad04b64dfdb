//! No candidate escapes its string: the instructions of a judge are the same whatever the data
//! contains.

use std::sync::Arc;

use jurat_core::{
    judge::{JudgeVerdict, Question},
    verifier::attack::{attacks, inputs},
};
use jurat_testkit::fake_provider::{
    FakeProvider, FakeProviderRequest, ProviderReply, commitment, verdict,
};
use serde_json::Value;

use super::{
    BOTH, JudgeQuestion, JudgeTestNode, ProviderKind,
    hostile::{TRIGGER, texts},
    question, task, verdict_of,
};

fn with_text(field: &str, text: &str) -> Question {
    let mut question = question("A benign answer.");
    question.inputs.insert(field.to_owned(), text.to_owned());
    question
}

/// A request without the candidate itself.
fn frame(asked: &FakeProviderRequest) -> (String, Value, Vec<(String, String)>) {
    let mut body = asked.body().clone();
    body.as_object_mut().unwrap().remove("messages");
    let mut conversation = asked.conversation();
    let last = conversation.last_mut().unwrap();
    last.1.clear();
    (asked.system(), body, conversation)
}

#[track_caller]
fn check_data(asked: &FakeProviderRequest, field: &str) {
    let data = asked.data();
    let members: Vec<&String> = data.as_object().unwrap().keys().collect();
    assert_eq!(members, ["fields", "mark"]);
    let fields: Vec<&String> = data["fields"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["response", "source"]);
    assert!(asked.field(field).unwrap().contains(TRIGGER));
    assert!(!asked.outside_of_marks().contains(TRIGGER));
}

/// Puts every hostile text into a field, and checks the requests to the judge.
async fn no_text_gets_out(kind: ProviderKind, field: &str) {
    let texts = texts();
    assert!(200 <= texts.len());
    let fake = FakeProvider::obeying(TRIGGER).await;
    let court = JudgeTestNode::new(kind, &fake).await;
    verdict_of(&court.judge(&task(question("A benign answer."))).await);
    let benign = frame(&fake.asked()[0]);
    for text in &texts {
        let judged = court.judge(&task(with_text(field, text))).await;
        assert_eq!(verdict_of(&judged), JudgeVerdict::NotMet, "{text:?}");
        let asked = fake.last().unwrap();
        check_data(&asked, field);
        assert_eq!(frame(&asked), benign, "{text:?}");
    }
    assert_eq!(fake.asked().len(), 1 + texts.len());
}

#[tokio::test]
async fn no_first_field_reaches_the_instructions_of_a_chat() {
    no_text_gets_out(ProviderKind::OpenAi, "response").await;
}

#[tokio::test]
async fn no_second_field_reaches_the_instructions_of_a_chat() {
    no_text_gets_out(ProviderKind::OpenAi, "source").await;
}

#[tokio::test]
async fn no_first_field_reaches_the_instructions_of_a_message() {
    no_text_gets_out(ProviderKind::Anthropic, "response").await;
}

#[tokio::test]
async fn no_second_field_reaches_the_instructions_of_a_message() {
    no_text_gets_out(ProviderKind::Anthropic, "source").await;
}

#[tokio::test]
async fn no_known_injection_changes_anything_but_the_data() {
    for kind in BOTH {
        let fake = FakeProvider::saying([ProviderReply::Answer(verdict("not_met"))]).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        let base = question("A benign answer.");
        court.judge(&task(base.clone())).await;
        let benign = frame(&fake.asked()[0]);
        for attack in attacks() {
            for inputs in inputs(attack, &base.fields, &base.inputs) {
                let question = Question { inputs, ..base.clone() };
                court.judge(&task(question)).await;
                let asked = fake.last().unwrap();
                assert_eq!(frame(&asked), benign, "{}", attack.id);
                assert!(asked.field("response").is_some() && asked.field("source").is_some());
            }
        }
        assert!(100 < fake.asked().len());
    }
}

#[tokio::test]
async fn the_test_judge_obeys_text_outside_of_the_data() {
    for kind in BOTH {
        let fake = FakeProvider::obeying(TRIGGER).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        let mut led = question("A benign answer.");
        led.criterion.push_str(TRIGGER);
        assert_eq!(verdict_of(&court.judge(&task(led)).await), JudgeVerdict::Met);
    }
}

#[tokio::test]
async fn examples_are_data_as_well() {
    for kind in BOTH {
        let fake = FakeProvider::obeying(TRIGGER).await;
        let court = JudgeTestNode::new(kind, &fake).await;
        for text in texts().iter().step_by(12) {
            let mut question = question("A benign answer.");
            question.examples[0].inputs.insert("response".to_owned(), text.clone());
            let judged = court.judge(&task(question)).await;
            assert_eq!(verdict_of(&judged), JudgeVerdict::NotMet, "{text:?}");
        }
    }
}

#[tokio::test]
async fn corrections_and_commitments_resist_injection_too() {
    for kind in BOTH {
        // It repeats the order, which is unreadable as an answer, and must not come back as an
        // instruction.
        let fake = FakeProvider::start(|asked| {
            if asked.is_commit() {
                return ProviderReply::Answer(commitment());
            }
            let is_again = asked.system().contains("could not be used");
            match (is_again, asked.outside_of_marks().contains(TRIGGER)) {
                (false, _) => ProviderReply::Text(asked.field("response").unwrap_or_default()),
                (true, is_led) => {
                    ProviderReply::Answer(verdict(if is_led { "met" } else { "not_met" }))
                }
            }
        })
        .await;
        let court = JudgeTestNode::new(kind, &fake).await;
        for text in texts().iter().step_by(11) {
            for commit_first in [false, true] {
                let question = Arc::new(with_text("response", text));
                let task = JudgeQuestion { question, commit_first, ..task(self::question("")) };
                let judged = court.judge(&task).await;
                assert_eq!(verdict_of(&judged), JudgeVerdict::NotMet, "{text:?}");
            }
        }
    }
}

#[tokio::test]
async fn invisible_characters_are_removed_and_reported() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let judged = court.judge(&task(question("pa\u{200b}ss\u{202e}ed\u{e000}"))).await;
    assert_eq!(fake.asked()[0].field("response").unwrap(), "passed");
    let document = judged.outcome.unwrap().document();
    let kinds: Vec<&str> = document["stripped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["zero_width", "bidi", "private_use"]);
}

#[tokio::test]
async fn each_call_has_a_mark_of_its_own() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    for _ in 0..2 {
        verdict_of(&court.judge(&task(question("x"))).await);
    }
    let marks: Vec<Value> = fake.asked().iter().map(|asked| asked.data()["mark"].clone()).collect();
    assert_ne!(marks[0], marks[1]);
}
