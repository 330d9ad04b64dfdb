//! Agent runs: outputs become one result, and unresolved ones are asked for again.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    agent_run::{
        AgentOutput, AgentRunOutcome, AgentRunSpec, AgentSpec, AggregationSpec, Bucket, BucketName,
        BucketOutcome, ExploreProgress, MissingReputation, NullAction, ReexplorePermission,
        RetrySpec, StepRetryDecision, TieBreak, UnresolvedCause, after_agent_run, after_step,
        aggregate,
    },
    time::Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn said(agent: &str, output: Value) -> AgentOutput {
    AgentOutput { agent_id: agent.to_owned(), weight: 1.0, output }
}

fn answers(values: &[&str]) -> Vec<AgentOutput> {
    let one = |(index, value): (usize, &&str)| said(&format!("a{index}"), json!({"answer": value}));
    values.iter().enumerate().map(one).collect()
}

pub(crate) fn agent(id: &str) -> AgentSpec {
    AgentSpec {
        agent_id: id.to_owned(),
        executor: format!("executor-{id}"),
        profile: "default".to_owned(),
        prompt: "what is so?".to_owned(),
        weight: 1.0,
        priority: 0,
        contract: json!({}),
        verifiers: Vec::new(),
    }
}

fn spec(aggregation: AggregationSpec) -> AgentRunSpec {
    AgentRunSpec {
        run_id: "r1".to_owned(),
        task_type: "swarm".to_owned(),
        shared_inputs: json!({}),
        agents: vec![agent("a0"), agent("a1"), agent("a2")],
        contract: json!({}),
        verifiers: Vec::new(),
        per_executor: None,
        retry: RetrySpec::default(),
        aggregation,
    }
}

fn final_buckets(after: AgentRunOutcome) -> Vec<Bucket> {
    let ended = match after {
        AgentRunOutcome::Finalized { buckets } => Ok(buckets),
        after @ (AgentRunOutcome::Failed | AgentRunOutcome::Reexplore { .. }) => Err(after),
    };
    ended.unwrap()
}

fn value(buckets: &[Bucket], name: BucketName) -> Option<&Value> {
    buckets.iter().find(|bucket| bucket.name == name)?.outcome.value()
}

#[test]
fn the_answer_of_most_wins_and_keeps_its_case() {
    let said = answers(&["Paris", " paris ", "London"]);
    let after =
        after_agent_run(&spec(AggregationSpec::default()), &said, &ExploreProgress::default());
    let buckets = final_buckets(after);
    assert_eq!(value(&buckets, BucketName::Answer), Some(&json!("Paris")));
    assert_eq!(buckets[0].candidates[0].agents, ["a0", "a1"]);
}

#[test]
fn agents_that_say_only_an_answer_are_not_asked_again() {
    let said = answers(&["yes", "yes", "yes"]);
    let after =
        after_agent_run(&spec(AggregationSpec::default()), &said, &ExploreProgress::default());
    let buckets = final_buckets(after);
    assert_eq!(buckets.len(), 1, "nobody spoke of a decision");
}

#[test]
fn the_heavier_answer_beats_the_more_frequent_one() {
    let mut said = answers(&["no", "no", "yes"]);
    said[2].weight = 3.0;
    let buckets =
        aggregate("r1", &said, &AggregationSpec::default(), ReexplorePermission::default());
    assert_eq!(value(&buckets, BucketName::Answer), Some(&json!("yes")));
}

#[test]
fn a_quorum_counts_agents_and_not_their_weight() {
    let mut said = answers(&["yes", "no"]);
    said[0].weight = 100.0;
    let aggregation = AggregationSpec { quorum: Some(2), ..AggregationSpec::default() };
    let buckets = aggregate("r1", &said, &aggregation, ReexplorePermission::default());
    assert_eq!(buckets[0].outcome, BucketOutcome::None(UnresolvedCause::QuorumNull));
}

#[test]
fn among_equal_weights_the_value_with_the_quorum_wins() {
    let mut said = answers(&["yes", "no", "no"]);
    said[0].weight = 2.0;
    let aggregation = AggregationSpec { quorum: Some(2), ..AggregationSpec::default() };
    let buckets = aggregate("r1", &said, &aggregation, ReexplorePermission::default());
    let decided_by = None;
    assert_eq!(buckets[0].outcome, BucketOutcome::Value { value: json!("no"), decided_by });
}

#[test]
fn weights_that_add_up_to_the_same_tie() {
    let mut said = answers(&["yes", "yes", "no"]);
    (said[0].weight, said[1].weight, said[2].weight) = (0.1, 0.2, 0.3);
    let mut aggregation = AggregationSpec::default();
    aggregation.tie.chain.clear();
    let buckets = aggregate("r1", &said, &aggregation, ReexplorePermission::default());
    assert_eq!(buckets[0].outcome, BucketOutcome::None(UnresolvedCause::Tie));
}

#[test]
fn a_number_is_not_the_text_that_looks_like_it() {
    let said = [said("a", json!({"answer": 1})), said("b", json!({"answer": "1"}))];
    let buckets =
        aggregate("r", &said, &AggregationSpec::default(), ReexplorePermission::default());
    assert_eq!(buckets[0].candidates.len(), 2);
}

#[test]
fn a_random_tie_break_is_reproducible() {
    let said = answers(&["Yes", "No"]);
    let drawn = |run: &str| {
        let buckets =
            aggregate(run, &said, &AggregationSpec::default(), ReexplorePermission::default());
        buckets[0].outcome.clone()
    };
    assert_eq!(drawn("r1"), drawn("r1"));
    // The first eight bytes of SHA-256("r1:answer:no|yes"), as a number, are even or odd.
    let digest = jurat_core::canonical::digest(b"r1:answer:no|yes");
    let head = u64::from_str_radix(&digest.trim_start_matches("sha256:")[..16], 16).unwrap();
    let expected = if head.is_multiple_of(2) { "No" } else { "Yes" };
    let decided_by = Some("STOCHASTIC");
    assert_eq!(drawn("r1"), BucketOutcome::Value { value: json!(expected), decided_by });
    let all: BTreeSet<String> =
        (0..32).map(|run| drawn(&format!("r{run}")).value().unwrap().to_string()).collect();
    assert_eq!(all.len(), 2, "runs differ in what they draw");
}

#[test]
fn a_tie_is_broken_by_confidence() {
    let mut aggregation = AggregationSpec::default();
    aggregation.tie.chain = vec![TieBreak::ConfidenceWeighted, TieBreak::Stochastic];
    let sure = [
        said("a", json!({"answer": "yes", "confidence": 0.4})),
        said("b", json!({"answer": "no", "answer_confidence": 0.9, "confidence": 0.1})),
    ];
    let buckets = aggregate("r", &sure, &aggregation, ReexplorePermission::default());
    let decided_by = Some("CONFIDENCE_WEIGHTED");
    assert_eq!(buckets[0].outcome, BucketOutcome::Value { value: json!("no"), decided_by });
}

#[test]
fn a_tie_is_broken_by_reputation() {
    let mut aggregation = AggregationSpec::default();
    aggregation.tie.chain = vec![TieBreak::ReputationWeighted];
    aggregation.tie.reputation.units = BTreeMap::from([("a1".to_owned(), 5)]);
    let said = answers(&["yes", "no"]);
    let decided = |aggregation: &AggregationSpec| {
        aggregate("r", &said, aggregation, ReexplorePermission::default())[0].outcome.clone()
    };
    let decided_by = Some("REPUTATION_WEIGHTED");
    assert_eq!(decided(&aggregation), BucketOutcome::Value { value: json!("no"), decided_by });
    aggregation.tie.reputation.units.clear();
    assert_eq!(decided(&aggregation), BucketOutcome::None(UnresolvedCause::Tie));
    aggregation.tie.reputation.missing = MissingReputation::Uniform;
    assert_eq!(
        decided(&aggregation),
        BucketOutcome::None(UnresolvedCause::Tie),
        "both have one unit"
    );
}

#[test]
fn a_tie_is_explored_again_and_then_broken_at_random() {
    let mut aggregation = AggregationSpec::default();
    aggregation.tie.chain = vec![TieBreak::Reexplore, TieBreak::Stochastic];
    let (spec, said) = (spec(aggregation), answers(&["yes", "no"]));
    let first = after_agent_run(&spec, &said, &ExploreProgress::default());
    let AgentRunOutcome::Reexplore { signal, .. } = first else { panic!("{first:?}") };
    assert_eq!((signal.iteration, signal.kind()), (1, "NEED_MORE_EVIDENCE"));
    assert_eq!(signal.unresolved, [(BucketName::Answer, UnresolvedCause::Tie)]);
    let explored = ExploreProgress::default().after(&BTreeSet::new());
    let buckets = final_buckets(after_agent_run(&spec, &said, &explored));
    assert!(value(&buckets, BucketName::Answer).is_some());
}

#[test]
fn iterations_end_when_they_bring_no_new_evidence() {
    let mut aggregation = AggregationSpec::default();
    aggregation.tie.chain = vec![TieBreak::Reexplore];
    aggregation.tie.reexplore.max_iterations = 8;
    aggregation.null.chain = vec![NullAction::FinalizeNull];
    let (mut spec, said) = (spec(aggregation), answers(&["yes", "no"]));
    let evidence = |digest: &str| BTreeSet::from([digest.to_owned()]);
    // The spec allows so many iterations in a row without new evidence, and the next one is the
    // last.
    for rounds in [0, 1, 2] {
        spec.aggregation.tie.reexplore.no_new_evidence_rounds = rounds;
        let mut explored = ExploreProgress::default();
        let stale = ["d1", "d2", "d1"].iter().take(usize::try_from(rounds + 1).unwrap());
        for digest in ["d1", "d2"].iter().chain(stale) {
            let after = after_agent_run(&spec, &said, &explored);
            assert!(matches!(after, AgentRunOutcome::Reexplore { .. }), "{digest}: {after:?}");
            explored = explored.after(&evidence(digest));
        }
        assert_eq!(explored.without_new_evidence, rounds + 1);
        let buckets = final_buckets(after_agent_run(&spec, &said, &explored));
        assert_eq!(buckets[0].outcome, BucketOutcome::None(UnresolvedCause::Tie));
    }
}

#[test]
fn empty_answers_are_asked_for_again_once_and_then_accepted() {
    let spec = spec(AggregationSpec::default());
    let said = [said("a0", json!({"note": "I do not know"}))];
    let first = after_agent_run(&spec, &said, &ExploreProgress::default());
    let AgentRunOutcome::Reexplore { signal, .. } = first else { panic!("{first:?}") };
    assert_eq!(signal.kind(), "NEED_DECISION");
    let explored = ExploreProgress::default().after(&BTreeSet::new());
    let buckets = final_buckets(after_agent_run(&spec, &said, &explored));
    assert_eq!(buckets.len(), 2);
    assert!(buckets.iter().all(|it| it.outcome == BucketOutcome::None(UnresolvedCause::Empty)));
}

#[test]
fn a_run_in_which_nobody_succeeds_fails() {
    let after =
        after_agent_run(&spec(AggregationSpec::default()), &[], &ExploreProgress::default());
    assert_eq!(after, AgentRunOutcome::Failed);
}

#[test]
fn the_wait_before_a_retry_doubles() {
    let now = Timestamp::from_millis(1_000);
    let retry = RetrySpec { max_attempts: 3, backoff_ms: 500 };
    let at = |millis| StepRetryDecision::Retry { at: Timestamp::from_millis(millis) };
    assert_eq!(after_step(retry, 1, false, now), at(1_500));
    assert_eq!(after_step(retry, 2, false, now), at(2_000));
    assert_eq!(after_step(retry, 3, false, now), StepRetryDecision::Failed);
    assert_eq!(after_step(retry, 1, true, now), StepRetryDecision::Failed, "it would fail again");
    let hasty = RetrySpec { max_attempts: 2, backoff_ms: 0 };
    assert_eq!(after_step(hasty, 1, false, now), at(1_200));
}

#[test]
fn the_faults_of_a_spec_are_named() {
    let mut wrong = spec(AggregationSpec { quorum: Some(4), ..AggregationSpec::default() });
    wrong.run_id = "a/b".to_owned();
    wrong.agents[1].agent_id = "a0".to_owned();
    wrong.agents[1].prompt = " ".to_owned();
    wrong.agents[2].weight = f64::NAN;
    wrong.agents[2].contract = json!({ "inputs": {} });
    wrong.agents[2].verifiers = vec!["v".to_owned(), "v".to_owned()];
    wrong.per_executor = Some(0);
    wrong.retry.max_attempts = 0;
    let fields: Vec<String> = wrong.check().into_iter().map(|error| error.field).collect();
    assert_eq!(
        fields,
        [
            "run_id",
            "per_executor",
            "agents.1.agent_id",
            "agents.1.prompt",
            "agents.2.weight",
            "agents.2.contract.inputs",
            "agents.2.verifiers",
            "retry.max_attempts",
            "aggregation.quorum"
        ]
    );
    assert_eq!(spec(AggregationSpec::default()).check(), []);
    let mut empty = spec(AggregationSpec::default());
    empty.agents.clear();
    assert_eq!(empty.check()[0].field, "agents");
}

proptest! {
    /// The order of the agents does not change the winner.
    #[test]
    fn the_order_of_the_agents_does_not_decide(
        values in proptest::collection::vec((0_u8..4, 0_u8..5), 1..9),
        shift in 0_usize..8,
    ) {
        let said: Vec<AgentOutput> = values
            .iter()
            .enumerate()
            .map(|(index, (value, weight))| AgentOutput {
                agent_id: format!("a{index}"),
                weight: f64::from(*weight),
                output: json!({"answer": format!("v{value}")}),
            })
            .collect();
        let mut turned = said.clone();
        let len = turned.len();
        turned.rotate_left(shift % len);
        let spec = AggregationSpec::default();
        let one = aggregate("r", &said, &spec, ReexplorePermission::default());
        let other = aggregate("r", &turned, &spec, ReexplorePermission::default());
        prop_assert_eq!(&one[0].outcome, &other[0].outcome);
        let counted: usize = one[0].candidates.iter().map(|it| it.agents.len()).sum();
        prop_assert_eq!(counted, said.len(), "everybody is counted once");
    }
}
