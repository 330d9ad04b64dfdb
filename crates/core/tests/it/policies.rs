//! Whole decisions of policies, from case files, and the hashes that bind them.

use jurat_core::{
    policy::{
        Evaluation, HashCheck, Policy, PolicyBinding, ResultFields, check_result_hash, policy_hash,
        result_hash,
    },
    round::candidate::{Candidate, Evidence, InlineEvidence},
    schema::Schema,
};
use serde_json::{Value, json};

fn candidate(output: Value, evidence: &[&str]) -> Candidate {
    let inline = evidence.iter().map(|content| InlineEvidence {
        mime: "application/json; charset=utf-8".to_owned(),
        content: (*content).to_owned(),
    });
    Candidate {
        candidate_id: "cand-1".to_owned(),
        execution_id: "exec-1".to_owned(),
        output,
        evidence: Evidence { inline: inline.collect(), refs: Vec::new() },
    }
}

/// A JSON text in a case, or the default if it is absent.
fn json_of(case: &toml::Table, name: &str, default: Value) -> Value {
    case.get(name).map_or(default, |text| serde_json::from_str(text.as_str().unwrap()).unwrap())
}

fn binding(case: &toml::Table) -> PolicyBinding {
    let policy_id = case["policy"].as_str().unwrap();
    let mut binding = PolicyBinding::new(policy_id, json_of(case, "params", json!({})));
    if let Some(hash) = case.get("hash") {
        hash.as_str().unwrap().clone_into(&mut binding.policy_hash);
    }
    if let Some(version) = case.get("version") {
        version.as_str().unwrap().clone_into(&mut binding.policy_version);
    }
    binding
}

#[track_caller]
fn check(case: &toml::Table) {
    const KNOWN: &[&str] = &[
        "story",
        "policy",
        "params",
        "hash",
        "version",
        "schema",
        "output",
        "evidence",
        "status",
        "codes",
        "score",
        "note",
        "bind_error",
    ];
    let story = case["story"].as_str().unwrap();
    assert!(case.keys().all(|key| KNOWN.contains(&key.as_str())), "{story}: unknown key");
    let policy = Policy::bind(&binding(case));
    if let Some(expect) = case.get("bind_error") {
        let error = policy.unwrap_err().to_string();
        assert!(error.contains(expect.as_str().unwrap()), "{story}: {error}");
        if case["policy"].as_str() == Some("vp.checks.v1") {
            assert!(!error.contains(['[', ']']), "{story}: {error}");
        }
        return;
    }
    let schema = Schema::compile(&json_of(case, "schema", json!({}))).unwrap();
    let evidence = case.get("evidence").map(|list| list.as_array().unwrap().as_slice());
    let evidence: Vec<&str> =
        evidence.unwrap_or_default().iter().map(|item| item.as_str().unwrap()).collect();
    let said = policy
        .unwrap()
        .evaluate(&candidate(json_of(case, "output", Value::Null), &evidence), &schema);
    assert_same(case, &said);
}

#[track_caller]
fn assert_same(case: &toml::Table, said: &Evaluation) {
    let story = case["story"].as_str().unwrap();
    let status = case["status"].as_str().unwrap();
    assert_eq!(said.status.as_str(), status, "{story}: {said:?}");
    let codes = case.get("codes").map(|list| list.as_array().unwrap().as_slice());
    let codes: Vec<i64> =
        codes.unwrap_or_default().iter().map(|code| code.as_integer().unwrap()).collect();
    let said_codes: Vec<i64> = said.reason_codes.iter().copied().map(i64::from).collect();
    assert_eq!(said_codes, codes, "{story}: {said:?}");
    let usual = if status == "inconclusive" { 0.0 } else { 1.0 };
    let score = case.get("score").map_or(usual, |score| score.as_float().unwrap());
    assert!((said.score - score).abs() < f64::EPSILON, "{story}: {said:?}");
    if let Some(note) = case.get("note") {
        let note = note.as_str().unwrap();
        assert!(said.notes.iter().any(|given| given.contains(note)), "{story}: {said:?}");
    }
    assert!(said.notes.iter().all(|note| note.chars().count() <= 201), "{story}: {said:?}");
}

#[test]
fn the_case_files_are_decided_as_written() {
    let files = [
        include_str!("cases/policies/schema_only.toml"),
        include_str!("cases/policies/schema_thresholds.toml"),
        include_str!("cases/policies/crosscheck.toml"),
        include_str!("cases/policies/checks.toml"),
    ];
    for file in files {
        let file: toml::Table = file.parse().unwrap();
        for case in file["case"].as_array().unwrap() {
            check(case.as_table().unwrap());
        }
    }
}

/// A list of this many numbers.
fn numbers(count: usize) -> Value {
    Value::Array(vec![json!(7); count])
}

/// Evaluates the output, and tells whether the work is small enough to do inline.
fn judged(policy_id: &str, params: Value, output: Value) -> (Evaluation, bool) {
    let policy = Policy::bind(&PolicyBinding::new(policy_id, params)).unwrap();
    let schema = Schema::compile(&json!({})).unwrap();
    let candidate = candidate(output, &[]);
    let is_small = policy.estimate(&candidate, &schema).is_small();
    (policy.evaluate(&candidate, &schema), is_small)
}

fn thresholds(op: &str, value: &Value) -> Value {
    json!({ "thresholds": vec![json!({"path": "", "op": op, "value": value}); 1_000] })
}

#[test]
fn a_thousand_thresholds_do_not_read_a_large_output_a_thousand_times() {
    let policy = "vp.schema_thresholds.v1";
    let large = json!([["x".repeat(2 * 1024 * 1024)], numbers(100_000)]);
    let short = json!([["x"], numbers(10)]);
    let (said, is_small) = judged(policy, thresholds("!=", &short), large.clone());
    assert_eq!((said.status.as_str(), said.reason_codes), ("passed", vec![]));
    assert!(!is_small, "a large output is not read on the thread of the caller");

    // The cost of a comparison is known in advance: the smaller of the two sides.
    let strict = Policy::bind(&PolicyBinding::new(policy, thresholds("!=", &short))).unwrap();
    let open = Schema::compile(&json!({})).unwrap();
    let candidate = candidate(large.clone(), &[]);
    let more = strict.estimate(&candidate, &open).applications
        - open.estimate(&candidate.output).applications;
    assert_eq!(more, 14_000, "fourteen values each");

    let (said, is_small) = judged(policy, thresholds("!=", &numbers(1_000)), large);
    assert_eq!((said.status.as_str(), said.reason_codes), ("inconclusive", vec![1040]));
    assert!(!is_small && said.notes[0].contains("too much work"), "{:?}", said.notes);
}

#[test]
fn many_thresholds_on_a_small_output_are_small_work() {
    let (said, is_small) =
        judged("vp.schema_thresholds.v1", thresholds("!=", &numbers(2_000)), json!({"a": 1}));
    assert_eq!(said.status.as_str(), "passed");
    assert!(is_small, "a comparison ends where the smaller side does");
}

#[test]
fn measuring_the_length_of_a_long_output_is_not_small_work() {
    let long = json!("x".repeat(2 * 1024 * 1024));
    let (said, is_small) = judged("vp.schema_thresholds.v1", json!({"max_len": 10}), long);
    assert_eq!((said.status.as_str(), said.reason_codes), ("failed", vec![103]));
    assert!(!is_small);
}

#[test]
fn references_that_take_too_long_to_compare_are_refused() {
    let names = |count: usize| -> Value {
        (0..count).map(|n| (format!("{n}{}", "x".repeat(6_400)), json!(1))).collect()
    };
    for (reference, output) in
        [(numbers(500), numbers(700_000)), (numbers(600), numbers(1)), (names(6), names(6))]
    {
        for equivalence in ["canonical", "unordered", "text"] {
            let params = json!({"references": vec![&reference; 100], "equivalence": equivalence});
            let (said, is_small) = judged("vp.crosscheck.v1", params, output.clone());
            assert_eq!((said.status.as_str(), said.reason_codes), ("inconclusive", vec![1040]));
            assert!(!is_small);
        }
    }
}

#[test]
fn a_hundred_unordered_references_are_sorted_once_each() {
    let nested = |shift: usize| {
        (0..20).fold(json!([]), |inner, _| {
            let mut items = vec![json!(1), json!("a"), inner];
            items.rotate_left(shift % 3);
            Value::Array(items)
        })
    };
    let references: Vec<Value> = (0..100).map(nested).collect();
    let params = json!({"references": references, "equivalence": "unordered"});
    let (said, _) = judged("vp.crosscheck.v1", params, nested(1));
    assert_eq!(said.status.as_str(), "passed");
    assert!(said.notes[0].contains("101 of 101"), "{:?}", said.notes);
}

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap()
}

#[test]
fn our_answers_match_those_of_wattswarm_under_its_rules() {
    let samples = fixture(include_str!("fixtures/wattswarm-verify.json"));
    for sample in samples.as_array().unwrap() {
        let request = &sample["request"];
        let binding = PolicyBinding {
            policy_id: text(request, "/policy/policy_id").to_owned(),
            policy_version: text(request, "/policy/policy_version").to_owned(),
            policy_hash: text(request, "/policy/policy_hash").to_owned(),
            policy_params: request["policy"]["policy_params"].clone(),
        };
        let schema = Schema::compile(&request["output_schema"]).unwrap();
        let mut candidate = candidate(request["candidate"]["output"].clone(), &[]);
        text(request, "/candidate/candidate_id").clone_into(&mut candidate.candidate_id);
        text(request, "/candidate/execution_id").clone_into(&mut candidate.execution_id);
        let said = Policy::bind(&binding).unwrap().evaluate(&candidate, &schema);

        let fields = ResultFields {
            candidate_id: &candidate.candidate_id,
            execution_id: &candidate.execution_id,
            passed: said.status.as_str() == "passed",
            score: said.score,
            reason_codes: &said.reason_codes,
            provider_family: "swarm-runtime",
            model_id: "swarm-model-v1",
            policy_hash: &binding.policy_hash,
        };
        let hash = result_hash(&fields);
        let ours = json!({
            "verification_status": said.status.as_str(),
            "passed": fields.passed,
            "score": said.score,
            "reason_codes": said.reason_codes,
            "verifier_result_hash": hash.strip_prefix("sha256:").unwrap(),
            "provider_family": "swarm-runtime",
            "model_id": "swarm-model-v1",
        });
        assert_eq!(ours.to_string(), sample["response"].to_string(), "{}", sample["name"]);
        let claimed = text(sample, "/response/verifier_result_hash");
        assert_eq!(check_result_hash(claimed, &fields), HashCheck::Right);
    }
}

#[test]
fn the_golden_hashes_follow_from_their_fields() {
    let golden = fixture(include_str!("fixtures/wattswarm-hashes.json"));
    for vector in golden["verifier_result_hash"].as_array().unwrap() {
        let under: Value = serde_json::from_str(text(vector, "/preimage")).unwrap();
        let codes = under["reason_codes"].as_array().unwrap();
        let codes: Vec<u16> =
            codes.iter().map(|code| u16::try_from(code.as_u64().unwrap()).unwrap()).collect();
        let hash = result_hash(&ResultFields {
            candidate_id: text(&under, "/candidate_id"),
            execution_id: text(&under, "/execution_id"),
            passed: under["passed"].as_bool().unwrap(),
            score: under["score"].as_f64().unwrap(),
            reason_codes: &codes,
            provider_family: text(&under, "/provider_family"),
            model_id: text(&under, "/model_id"),
            policy_hash: text(&under, "/policy_hash"),
        });
        assert_eq!(hash, format!("sha256:{}", text(vector, "/sha256")));
    }
    for vector in golden["policy_hash"].as_array().unwrap() {
        let spec: Value = serde_json::from_str(text(vector, "/preimage")).unwrap();
        let mut binding = PolicyBinding::new(text(&spec, "/policy_id"), json!({}));
        assert!(Policy::bind(&binding).is_ok());
        text(vector, "/sha256").clone_into(&mut binding.policy_hash);
        assert!(Policy::bind(&binding).is_ok(), "the fixed hash is accepted");
    }
}

#[test]
fn a_policy_hash_is_over_the_name_and_the_canonical_parameters() {
    // The digest of `vp.schema_only.v1{}`, computed with sha256sum.
    assert_eq!(
        policy_hash("vp.schema_only.v1", &json!({})),
        "sha256:02bc5d4afd9f63f48473bd7b5136fd4537b364dfdb054015477bdd8901f75394"
    );
    let one = json!({"min_confidence": 1.0, "max_len": 5});
    let same = json!({"max_len": 5, "min_confidence": 1});
    assert_eq!(policy_hash("vp.x", &one), policy_hash("vp.x", &same));
    assert_ne!(policy_hash("vp.x", &one), policy_hash("vp.y", &one));
}

#[test]
fn a_claimed_hash_is_right_missing_or_wrong() {
    let fields = ResultFields {
        candidate_id: "c",
        execution_id: "e",
        passed: true,
        score: 1.0,
        reason_codes: &[],
        provider_family: "p",
        model_id: "m",
        policy_hash: "sha256:x",
    };
    let hash = result_hash(&fields);
    let bare = hash.strip_prefix("sha256:").unwrap();
    for right in [hash.as_str(), bare, &bare.to_uppercase(), &format!(" {hash} ")] {
        assert_eq!(check_result_hash(right, &fields), HashCheck::Right, "{right}");
    }
    // The same fields with the score written as `1`.
    let whole = "sha256:73436090fe6cf62669b1455415be65d20cf9240cfc85d17347c2f72697265ea6";
    assert_eq!(check_result_hash(whole, &fields), HashCheck::Right);
    for missing in ["", "  ", "sha256:", "sha256:placeholder", "md5:0", &bare[1..]] {
        assert_eq!(check_result_hash(missing, &fields), HashCheck::Missing, "{missing}");
    }
    let wrong = "0".repeat(64);
    assert_eq!(check_result_hash(&wrong, &fields), HashCheck::Wrong);
    let failed = ResultFields { passed: false, ..fields };
    assert_eq!(check_result_hash(&hash, &failed), HashCheck::Wrong);
}
