//! The cost of a judgment never exceeds the credit held for it.

use jurat_core::{judge::Price, verifier::ModelRef};
use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, commitment, verdict};

use super::{BOTH, JudgeQuestion, JudgeTestNode, failure_of, question, task, verdict_of};
use crate::judges::CostBasis;

impl JudgeTestNode {
    /// The maximum cost of the question.
    fn cost_ceiling(&self, task: &JudgeQuestion) -> i64 {
        self.engine.cost_ceiling_micros(&CostBasis {
            question: &task.question,
            model: &task.model,
            has_image: false,
            commit_first: task.commit_first,
        })
    }
}

#[tokio::test]
async fn a_margin_is_added_and_the_sum_is_rounded_up_once() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    fake.set_usage(Some((1, 1)));
    let court = JudgeTestNode::with(BOTH[0], &fake, |judges| judges.margin_percent = 10).await;
    let judged = court.judge(&task(question("x"))).await;
    // 18 micro-credits plus a margin of a tenth.
    assert_eq!(judged.cost_micros, 20);
}

#[tokio::test]
async fn a_model_without_a_price_is_free_and_a_star_prices_all_others() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::with(BOTH[1], &fake, |judges| {
        let provider = judges.providers.get_mut("fake").unwrap();
        provider.prices.clear();
    })
    .await;
    assert_eq!(court.judge(&task(question("x"))).await.cost_micros, 0);
    let court = JudgeTestNode::with(BOTH[1], &fake, |judges| {
        let provider = judges.providers.get_mut("fake").unwrap();
        let price =
            Price { input_micros_per_million: 1_000_000, output_micros_per_million: 1_000_000 };
        provider.prices = [("*".to_owned(), price)].into();
    })
    .await;
    assert_eq!(court.judge(&task(question("x"))).await.cost_micros, 120);
}

#[tokio::test]
async fn an_unusable_answer_costs_what_the_provider_counted() {
    let fake = FakeProvider::saying([ProviderReply::Text("no".to_owned())]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let judged = court.judge(&task(question("x"))).await;
    failure_of(&judged);
    assert_eq!((judged.usage.input_tokens, judged.usage.output_tokens), (200, 40));
    assert_eq!(judged.cost_micros, 1_200);
}

#[tokio::test]
async fn the_usage_is_estimated_if_the_provider_counts_no_tokens() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    fake.set_usage(None);
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let judged = court.judge(&task(question("x"))).await;
    let asked = &fake.asked()[0];
    let bytes: usize = asked.conversation().iter().map(|(_, text)| text.len()).sum();
    let expected = (bytes + asked.system().len()).div_ceil(4);
    assert_eq!(judged.usage.input_tokens, u64::try_from(expected).unwrap());
    assert!(0 < judged.usage.output_tokens);
}

#[tokio::test]
async fn the_usage_is_estimated_if_the_count_is_impossible() {
    // More input than was sent, or more output than is allowed.
    for absurd in [(900_000_000, 20), (100, 2_049), (1 << 52, 1 << 52)] {
        for kind in BOTH {
            let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
            fake.set_usage(Some(absurd));
            let court = JudgeTestNode::new(kind, &fake).await;
            let task = task(question("x"));
            let judged = court.judge(&task).await;
            verdict_of(&judged);
            assert!(judged.usage.input_tokens < 10_000, "{absurd:?}: {:?}", judged.usage);
            assert!(judged.usage.output_tokens < 2_048, "{absurd:?}: {:?}", judged.usage);
            let bound = court.cost_ceiling(&task);
            assert!(i64::try_from(judged.cost_micros).unwrap() <= bound);
        }
    }
}

#[tokio::test]
async fn no_judgment_costs_more_than_its_hold() {
    // Every byte of the request is a token, every answer has the full length, and the first is
    // unreadable.
    for kind in BOTH {
        for commits in [false, true] {
            let fake = FakeProvider::start(move |asked| {
                let is_first = !asked.system().contains("could not be used");
                match (asked.is_commit(), is_first) {
                    (true, _) => ProviderReply::Answer(commitment()),
                    (false, true) => ProviderReply::Text("hm".to_owned()),
                    (false, false) => ProviderReply::Answer(verdict("met")),
                }
            })
            .await;
            let court = JudgeTestNode::with(kind, &fake, |judges| judges.margin_percent = 7).await;
            let mut task = task(question("\u{e9}\"\\\n\u{1f600} and more"));
            task.commit_first = commits;
            let bound = court.cost_ceiling(&task);
            let mut spent = 0;
            verdict_of(&court.judge(&task).await);
            for asked in fake.asked() {
                let bytes = u64::try_from(asked.call.raw.len()).unwrap();
                spent += (bytes * 3 + 2_048 * 15) * 107;
            }
            let spent = i64::try_from(spent.div_ceil(100)).unwrap();
            assert!(spent <= bound, "{kind:?} {commits}: {spent} of {bound}");
            assert!(bound < 6 * spent, "{kind:?} {commits}: {spent} of {bound}");
        }
    }
}

#[tokio::test]
async fn the_rules_judge_and_missing_judges_hold_no_credit() {
    let fake = FakeProvider::saying([]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    for model in ["builtin/rules", "nobody/m"] {
        let model: ModelRef = model.parse().unwrap();
        let commits = JudgeQuestion { model, commit_first: true, ..task(question("x")) };
        assert_eq!(court.cost_ceiling(&commits), 0);
    }
}
