//! Whole decisions of rounds, from case files: the answers of the replicas, and the expected
//! consensus.

use std::thread;

use jurat_core::{
    executor::{Independence, session::Tier},
    id::{AccountId, NodeId, RoundId},
    policy::parse_equivalence,
    round::{
        OpenRound, RetainedRequest, RoundEnding,
        candidate::Evidence,
        consensus::{
            Basis, OutputOrigin, TallyInput, agree, is_settled, output_by, reliability_prior,
            spread, verdict_confidence,
        },
        decision::DecisionEntry,
        job::{
            AgreementTerms, Disagreement, Equivalence, JobKind, OutputMerge, ScoreAggregation,
            TimeoutPolicy, Toggle,
        },
        replica::{AnswerContent, FailureCode, Label, Replica, ReplicaAnswer, ReplicaVote},
    },
    time::Timestamp,
};
use serde_json::{Value, json};

use crate::cases;

pub(crate) fn terms() -> AgreementTerms {
    AgreementTerms {
        replicas: 3,
        pool: Vec::new(),
        spares: None,
        aggregation: ScoreAggregation::Majority,
        disagreement: Disagreement::ReturnAll,
        min_agreement: None,
        timeout_policy: TimeoutPolicy::Count,
        equivalence: None,
        merge: OutputMerge::Medoid,
        early_stop: Toggle::Off,
        traces: Toggle::Off,
    }
}

/// A replica that shares nothing with any other.
pub(crate) fn stranger(index: usize, answer: ReplicaAnswer) -> Replica {
    Replica {
        index,
        seat: index,
        replaced_by: None,
        session_id: format!("s{index}"),
        executor: format!("executor-{index}"),
        independence: Independence {
            provider_family: format!("provider-{index}"),
            model_id: format!("model-{index}"),
            host: format!("host-{index}"),
            executor: format!("executor-{index}"),
        },
        reliability: reliability_prior(None),
        answer,
        latency_ms: 1,
        cost_micros: 0,
        usage: None,
    }
}

pub(crate) fn vote(label: Label, output: Option<Value>) -> ReplicaAnswer {
    ReplicaAnswer::Vote(ReplicaVote {
        label,
        said: AnswerContent { output, ..AnswerContent::default() },
    })
}

/// The input of a case file.
struct Story {
    kind: JobKind,
    has_schema: bool,
    terms: AgreementTerms,
    replicas: Vec<Replica>,
}

impl Story {
    fn ballot(&self) -> TallyInput<'_> {
        TallyInput {
            kind: self.kind,
            has_schema: self.has_schema,
            terms: &self.terms,
            replicas: &self.replicas,
        }
    }
}

fn word<T: std::str::FromStr<Err = ()>>(table: &toml::Table, name: &str) -> Option<T> {
    table.get(name).map(|text| T::from_str(text.as_str().unwrap()).ok().unwrap())
}

fn json_of(table: &toml::Table, name: &str) -> Option<Value> {
    table.get(name).map(|text| serde_json::from_str(text.as_str().unwrap()).unwrap())
}

fn story(file: &toml::Table) -> Story {
    cases::refuse_others(file, &["kind", "has_schema", "terms", "replica", "expect"]);
    let replicas = file["replica"].as_array().unwrap();
    let mut terms = terms();
    terms.replicas = u8::try_from(replicas.len()).unwrap();
    if let Some(given) = file.get("terms") {
        read_terms(given.as_table().unwrap(), &mut terms);
    }
    let replicas = replicas
        .iter()
        .enumerate()
        .map(|(index, replica)| read_replica(index, replica.as_table().unwrap()));
    Story {
        kind: word(file, "kind").unwrap(),
        has_schema: file.get("has_schema").is_some_and(|flag| flag.as_bool().unwrap()),
        terms,
        replicas: replicas.collect(),
    }
}

fn read_terms(given: &toml::Table, terms: &mut AgreementTerms) {
    let known = [
        "aggregation",
        "disagreement_policy",
        "timeout_policy",
        "merge",
        "min_agreement",
        "equivalence",
    ];
    cases::refuse_others(given, &known);
    terms.aggregation = word(given, "aggregation").unwrap_or(terms.aggregation);
    terms.disagreement = word(given, "disagreement_policy").unwrap_or(terms.disagreement);
    terms.timeout_policy = word(given, "timeout_policy").unwrap_or(terms.timeout_policy);
    terms.merge = word(given, "merge").unwrap_or(terms.merge);
    terms.min_agreement = given.get("min_agreement").map(|number| number.as_float().unwrap());
    terms.equivalence =
        json_of(given, "equivalence").map(|value| parse_equivalence(&value).unwrap());
}

fn read_replica(index: usize, given: &toml::Table) -> Replica {
    let known = ["says", "output", "score", "failure", "tier", "provider", "model", "executor"];
    cases::refuse_others(given, &known);
    let said = AnswerContent {
        output: json_of(given, "output"),
        score: given.get("score").map(|score| score.as_float().unwrap()),
        evidence: Evidence::default(),
        ..AnswerContent::default()
    };
    let label: Label = word(given, "says").unwrap();
    let answer = match label {
        Label::Retry | Label::NeedsSpec => ReplicaAnswer::Abstained { label, said },
        Label::Valid | Label::Invalid | Label::True | Label::False | Label::Unsure | Label::Ok => {
            ReplicaAnswer::Vote(ReplicaVote { label, said })
        }
        Label::Timeout => without_verdict(given, FailureCode::Timeout, said),
        Label::Error => without_verdict(given, FailureCode::HttpStatus, said),
        Label::Cancelled => without_verdict(given, FailureCode::Cancelled, said),
        Label::InvalidOutput => without_verdict(given, FailureCode::InvalidOutput, said),
    };
    assert_eq!(answer.label(), label, "the failure gives another label");
    let mut replica = stranger(index, answer);
    let tier = given.get("tier").map(|tier| tier.as_str().unwrap().parse::<Tier>().unwrap());
    replica.reliability = reliability_prior(tier);
    let set = |name: &str, place: &mut String| {
        if let Some(text) = given.get(name) {
            text.as_str().unwrap().clone_into(place);
        }
    };
    set("provider", &mut replica.independence.provider_family);
    set("model", &mut replica.independence.model_id);
    set("executor", &mut replica.independence.executor);
    replica.executor.clone_from(&replica.independence.executor);
    replica
}

fn without_verdict(given: &toml::Table, usual: FailureCode, said: AnswerContent) -> ReplicaAnswer {
    let code = word(given, "failure").unwrap_or(usual);
    let ReplicaAnswer::Nothing { label, failure, .. } =
        ReplicaAnswer::nothing(code, "as the story says")
    else {
        return vote(Label::Ok, None);
    };
    ReplicaAnswer::Nothing { label, failure, said: Some(said) }
}

/// The result of a story, in the words of the file.
fn outcome(story: &Story) -> toml::Table {
    let consensus = &agree(&story.ballot());
    let mut found = toml::Table::new();
    let mut put = |name: &str, value: toml::Value| found.insert(name.to_owned(), value);
    let group = |group: &Option<usize>| group.map_or("-".to_owned(), |number| number.to_string());
    let groups: Vec<String> = consensus.groups.iter().map(group).collect();
    put("outcome", consensus.outcome.as_str().into());
    put("groups", groups.join(" ").into());
    put("agreement", consensus.agreement.into());
    put("agreement_answered", consensus.agreement_answered.into());
    put("confidence", consensus.confidence.into());
    put("effective_votes", consensus.effective_votes.into());
    put("equivalence", consensus.equivalence.as_str().into());
    put("disagreement", consensus.disagreed.into());
    put("tie_broken", consensus.tie_broken.into());
    if consensus.is_unlikely() {
        put("low_confidence", true.into());
    }
    let count = |number: usize| toml::Value::Integer(i64::try_from(number).unwrap());
    put("answered", count(consensus.answered));
    if consensus.started != consensus.asked {
        put("started", count(consensus.started));
    }
    put("cancelled", count(consensus.cancelled));
    if let Some(verdict) = consensus.verdict {
        put("verdict", verdict.as_str().into());
    }
    if let Some(output) = &consensus.output {
        put("output", output.to_string().into());
    }
    if let Some(by) = output_by(&story.replicas, consensus) {
        let whose = match by {
            OutputOrigin::Replica => "replica",
            OutputOrigin::Merge => "merge",
        };
        put("output_by", whose.into());
    }
    let spread = spread(&story.replicas, consensus);
    if !spread.is_empty() {
        let lines = spread.iter().map(|(at, spread)| {
            format!("`{at}` {} {} {}", spread.min, spread.max, spread.deviation)
        });
        put("spread", lines.collect::<Vec<_>>().join("; ").into());
    }
    if let Some(winner) = consensus.winner {
        put("winner", count(winner));
    }
    if let Some(score) = &consensus.score {
        let numbers = [score.value, score.min, score.max, score.deviation]
            .map(|number| format!("{number:.4}"));
        put("score", format!("{} {}", score.method, numbers.join(" ")).into());
    }
    found
}

#[test]
fn the_rounds_are_decided_as_written() {
    cases::check("consensus", 50, |file| outcome(&story(file)));
}

/// A round of unrelated replicas on the plain terms, unless they are changed.
fn plain(kind: JobKind, answers: Vec<ReplicaAnswer>) -> Story {
    let replicas = answers.into_iter().enumerate();
    Story {
        kind,
        has_schema: false,
        terms: terms(),
        replicas: replicas.map(|(index, answer)| stranger(index, answer)).collect(),
    }
}

#[test]
fn combined_numbers_wait_for_every_answer() {
    let numbers = |count: usize| {
        let answers = vec![vote(Label::Ok, Some(json!(7))); count];
        let mut story = plain(JobKind::Delegate, answers);
        story.terms.aggregation = ScoreAggregation::Mean;
        story
    };
    assert!(!is_settled(&numbers(2).ballot(), 3));
    assert!(is_settled(&numbers(3).ballot(), 3));
    // A relation of the caller decides the groups, and further numbers do not change them.
    let mut named = numbers(2);
    named.terms.equivalence = Some(Equivalence::Canonical);
    assert!(is_settled(&named.ballot(), 3));
}

#[test]
fn combined_scores_do_not_delay_a_verdict() {
    let mut story = plain(JobKind::Validate, vec![vote(Label::Valid, None); 2]);
    story.terms.aggregation = ScoreAggregation::Mean;
    assert!(is_settled(&story.ballot(), 3));
}

#[test]
fn half_of_the_replicas_do_not_settle_a_round() {
    let labels = [Label::Valid, Label::Valid, Label::Invalid];
    let story = plain(JobKind::Validate, labels.map(|label| vote(label, None)).to_vec());
    assert!(!is_settled(&story.ballot(), 4));
    assert!(is_settled(&story.ballot(), 3));
    let mut strict = story;
    strict.terms.min_agreement = Some(0.7);
    assert!(!is_settled(&strict.ballot(), 3));
}

#[test]
fn the_last_bit_of_a_sum_does_not_break_a_tie() {
    const RELIABLE: [f64; 3] = [0.7, 0.85, 0.9];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (valid, invalid) in orders.iter().flat_map(|left| orders.map(|right| (left, right))) {
        let labels = [[Label::Valid; 3], [Label::Invalid; 3]].concat();
        let answers = labels.into_iter().map(|label| vote(label, None)).collect();
        let mut story = plain(JobKind::Validate, answers);
        story.terms.disagreement = Disagreement::BestEffort;
        for (replica, place) in story.replicas.iter_mut().zip(valid.iter().chain(&invalid)) {
            replica.reliability = RELIABLE[*place];
        }
        let found = agree(&story.ballot());
        assert_eq!(found.verdict, Some(Label::Invalid), "{valid:?} {invalid:?}");
        assert!(found.tie_broken);
    }
}

#[test]
fn verdicts_are_worth_the_same_in_a_task_and_in_a_round() {
    for labels in [
        vec![Label::Valid],
        vec![Label::Valid, Label::Valid, Label::Invalid],
        vec![Label::Invalid, Label::Valid, Label::Valid, Label::Valid],
    ] {
        let answers = labels.iter().map(|label| vote(*label, None)).collect();
        let story = plain(JobKind::Validate, answers);
        let verdicts = story.replicas.iter().map(|replica| {
            let is_for = replica.answer.label() == Label::Valid;
            (is_for, replica.reliability, &replica.independence)
        });
        let found = verdict_confidence(verdicts);
        let expected = agree(&story.ballot()).confidence;
        assert!((found - expected).abs() < f64::EPSILON, "{labels:?}: {found}, {expected}");
    }
}

#[test]
fn the_basis_is_form_only_if_the_node_alone_answered() {
    let of = |names: &[&str]| Basis::of(names.iter().copied());
    assert_eq!(of(&[]), None);
    assert_eq!(of(&["builtin:policies"]), Some(Basis::Form));
    assert_eq!(of(&["builtin:policies", "judge:acme/a"]), Some(Basis::Judges));
    assert_eq!(of(&["judge:acme/a", "s1", "builtin:policies"]), Some(Basis::Executors));
    let mut story = plain(JobKind::Validate, vec![vote(Label::Valid, None); 3]);
    assert_eq!(agree(&story.ballot()).basis, Some(Basis::Executors));
    for replica in &mut story.replicas {
        replica.session_id = format!("judge:acme/{}", replica.index);
    }
    assert_eq!(agree(&story.ballot()).basis, Some(Basis::Judges));
}

#[test]
fn every_replica_is_named_in_the_order_of_choice() {
    for (name, file) in cases::read("consensus") {
        let story = story(&file);
        let consensus = agree(&story.ballot());
        let said: Vec<Label> = story.replicas.iter().map(|r| r.answer.label()).collect();
        assert_eq!(consensus.verdicts, said, "{name}");
        assert_eq!(consensus.asked, said.len(), "{name}");
        assert_eq!(consensus.strategy, story.terms.aggregation.as_str(), "{name}");
    }
}

/// The bytes of the decision if the answers arrive in an order shuffled by the seed.
fn decided(mut story: Story, seed: usize) -> String {
    let count = story.replicas.len();
    story.replicas.rotate_left(seed % count);
    story.replicas.swap(0, seed / 2 % count);
    // The engine puts the answers back into the order of choice.
    story.replicas.sort_by_key(|replica| replica.index);
    let consensus = agree(&story.ballot());
    let at = Timestamp::from_millis(1_000);
    let open = OpenRound {
        id: RoundId::new(at, 1),
        account: AccountId::admin(),
        kind: story.kind,
        node: NodeId::new(at, 2),
        lease_token: 3,
        lease_until: at,
        request_digest: "sha256:00".to_owned(),
        policy_id: "vp.schema_only.v1".to_owned(),
        policy_hash: "sha256:00".to_owned(),
        disagreement: story.terms.disagreement,
        traces: Toggle::Off,
        seats: Vec::new(),
        opened_at: at,
        deadline_at: at,
        run: None,
        verifier: None,
        step: None,
        hold: None,
        kept: RetainedRequest::default(),
    };
    let entry = DecisionEntry::new(&open, RoundEnding::Closed, &story.replicas, &consensus, at)
        .canonical_entry();
    format!("{consensus:?}\n{}\n{}\n", entry.text, entry.digest)
}

#[test]
fn two_threads_decide_the_same_bytes_whatever_arrives_first() {
    let all = |first: usize| -> Vec<String> {
        let files = cases::read("consensus");
        files.iter().enumerate().map(|(n, (_, file))| decided(story(file), first + n)).collect()
    };
    let (left, right) = thread::scope(|scope| {
        let left = scope.spawn(|| all(0));
        let right = scope.spawn(|| all(7));
        (left.join().unwrap(), right.join().unwrap())
    });
    assert_eq!(left, right);
    assert!(left.iter().all(|bytes| bytes.contains("\"format\":\"jurat.decision.v1\"")));
}
