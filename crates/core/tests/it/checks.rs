//! Hostile checks and hostile outputs are refused without being tried.

use jurat_core::{
    policy::{BindError, Evaluation, Policy, PolicyBinding},
    round::candidate::{Candidate, Evidence, InlineEvidence},
    schema::Schema,
};
use serde_json::{Value, json};

pub(crate) fn bind(checks: &Value) -> Result<Policy, BindError> {
    Policy::bind(&PolicyBinding::new("vp.checks.v1", json!({ "checks": checks })))
}

pub(crate) fn candidate(output: Value) -> Candidate {
    Candidate {
        candidate_id: "cand-1".to_owned(),
        execution_id: "exec-1".to_owned(),
        output,
        evidence: Evidence::default(),
    }
}

fn judged(policy: &Policy, candidate: &Candidate) -> (Evaluation, bool) {
    let open = Schema::compile(&json!({})).unwrap();
    (policy.evaluate(candidate, &open), policy.estimate(candidate, &open).is_small())
}

/// Evaluates an expression, and tells whether its work is small enough to do inline.
#[track_caller]
fn cel(expression: &str, output: Value) -> (Evaluation, bool) {
    judged(&bind(&json!([{ "cel": expression }])).unwrap(), &candidate(output))
}

fn repeated(start: &str, part: &str, times: usize, end: &str) -> String {
    format!("{start}{}{end}", part.repeat(times))
}

#[test]
fn expressions_that_explode_are_not_run() {
    let nested = (0..8).fold("true".to_owned(), |inner, level| {
        format!("[1,2,3,4,5,6,7,8,9].all(v{level}, {inner})")
    });
    let texts: Vec<String> = (0..2_000).map(|n| format!("{n}{}", "a".repeat(500))).collect();
    let bombs = [
        (nested, json!(1)),
        // Texts and lists that double at every step.
        (repeated("['x']", ".map(a, a + a)", 26, " == []"), json!(1)),
        (repeated("[output]", ".map(a, [a, a])", 26, " == []"), json!(1)),
        (repeated("[output]", ".map(a, {'k': a, 'l': a})", 20, " == []"), json!(1)),
        (repeated("[[1]]", ".map(a, a + a)", 26, " == []"), json!(1)),
        (repeated("['x']", ".map(a, string(a + a))", 20, " == []"), json!(1)),
        (repeated("[output]", ".map(a, true ? [a, a] : a)", 20, " == []"), json!(1)),
        // Nested loops over the output.
        ("output.all(x, output.all(y, output.all(z, x == y)))".to_owned(), json!(vec![1; 200])),
        ("output.map(x, output).map(x, x.map(y, x)) == []".to_owned(), json!(vec![1; 200])),
        ("output.all(x, output == output)".to_owned(), json!(vec![1; 2_000])),
        ("output.all(x, x in output)".to_owned(), json!(vec![1; 2_000])),
        ("output.all(x, [output, output] != [])".to_owned(), json!(vec![1; 2_000])),
        // Errors that hold copies of the faulty value.
        ("output.exists(x, output[0.5] == x)".to_owned(), json!(vec![1; 2_000])),
        ("output.exists(x, output < x)".to_owned(), json!(vec![1; 2_000])),
        ("output.exists(x, sum(output) < x)".to_owned(), json!(vec!["a"; 2_000])),
        // A pattern on a lot of text.
        ("output.all(x, x.matches('(a?){50}b'))".to_owned(), json!(texts)),
    ];
    for (bomb, output) in bombs {
        let (said, is_small) = cel(&bomb, output);
        let short: String = bomb.chars().take(60).collect();
        assert_eq!(
            (said.status.as_str(), said.reason_codes),
            ("inconclusive", vec![1040]),
            "{short}"
        );
        assert_eq!(said.notes, ["Check `checks.0` would take too much work."], "{short}");
        assert!(!is_small, "{short}");
    }
}

#[test]
fn expressions_of_reasonable_size_are_run() {
    let rows: Vec<Value> = (0..2_000)
        .map(|n| json!({"id": format!("row-{n}"), "price": 2, "tags": ["a", "b"]}))
        .collect();
    let output = json!({ "rows": rows, "total": 4_000 });
    for expression in [
        "output.rows.all(r, r.price > 0 && r.id.matches('^row-[0-9]+$') && size(r.tags) == 2)",
        "output.rows.map(r, r.price).sum() == output.total",
        "output.rows.all(r, r.tags.all(t, t in ['a', 'b', 'c']))",
        "output.rows.filter(r, r.id.startsWith('row-19')).size() > 100",
        "!output.rows.exists(r, r.id == '')",
    ] {
        let (said, is_small) = cel(expression, output.clone());
        assert_eq!(said.status.as_str(), "passed", "{expression}: {said:?}");
        assert!(!is_small, "{expression}");
    }
    let pairs = json!((0..100).collect::<Vec<_>>());
    let (said, _) = cel("output.all(x, output.exists_one(y, x == y))", pairs);
    assert_eq!(said.status.as_str(), "passed", "{said:?}");
}

#[test]
fn small_expressions_on_small_outputs_run_inline() {
    let output = json!({"items": [{"price": 2, "n": 3}, {"price": 5, "n": 1}], "total": 11});
    let (said, is_small) =
        cel("output.items.map(i, i.price * i.n).sum() == output.total", output.clone());
    assert_eq!((said.status.as_str(), is_small), ("passed", true), "{said:?}");
    let all = bind(&json!([
        {"schema": {"type": "object"}},
        {"required": ["items", "total"]},
        {"path": "/items", "count": {"min": 1}},
        {"path": "/total", "bounds": {"value": 11}},
        {"path": "/items", "set": {"superset_of": [{"n": 1, "price": 5}]}},
    ]));
    let (said, is_small) = judged(&all.unwrap(), &candidate(output));
    assert_eq!((said.status.as_str(), is_small), ("passed", true), "{said:?}");
}

#[test]
fn a_large_output_is_read_only_up_to_the_limit() {
    let large = json!(vec![json!({"a": 1}); 400_000]);
    // The schema accepts any output up to its own limit, so the checks decide here.
    for checks in [json!([{"cel": "size(output) > 0"}]), json!([{"set": {"subset_of": [1]}}])] {
        let (said, is_small) = judged(&bind(&checks).unwrap(), &candidate(large.clone()));
        assert_eq!((said.status.as_str(), said.reason_codes), ("inconclusive", vec![1040]));
        assert!(!is_small);
    }
    // A check that does not read the output still runs.
    let (said, _) = judged(&bind(&json!([{"count": {"max": 10}}])).unwrap(), &candidate(large));
    assert_eq!((said.status.as_str(), said.reason_codes), ("failed", vec![1052]));
}

#[test]
fn a_failure_decides_beside_a_check_that_is_too_much_work() {
    let policy = bind(&json!([
        {"name": "pairs", "cel": "output.all(x, output.all(y, output.all(z, x == y)))"},
        {"name": "few", "count": {"max": 10}},
    ]));
    let (said, _) = judged(&policy.unwrap(), &candidate(json!(vec![1; 200])));
    assert_eq!((said.status.as_str(), said.reason_codes), ("failed", vec![1052]));
    let notes = [
        "Check `few` failed: the output has 200 items; it must have at most 10.",
        "Check `pairs` would take too much work.",
    ];
    assert_eq!(said.notes, notes);
}

#[test]
fn many_checks_share_one_limit() {
    let numbers: Vec<u32> = (0..20_000).collect();
    let one = json!({"cel": "output.all(x, x >= 0)"});
    let (said, _) = judged(&bind(&json!([one])).unwrap(), &candidate(json!(numbers)));
    assert_eq!(said.status.as_str(), "passed", "{said:?}");
    let (said, _) = judged(&bind(&json!(vec![one; 64])).unwrap(), &candidate(json!(numbers)));
    assert_eq!((said.status.as_str(), said.reason_codes), ("inconclusive", vec![1040]));
}

#[test]
fn patterns_and_schemas_of_all_checks_are_limited_together() {
    let refused = |checks: Vec<Value>| bind(&json!(checks)).unwrap_err().to_string();
    let regular = (0..51).map(|n| json!({"regex": format!("a{n}")})).collect();
    let error = refused(regular);
    assert!(error.starts_with("`policy_params.checks.50` makes the patterns of all"), "{error}");
    let large = (0..64).map(|n| json!({"cel": format!("output.matches('(a{{90}}){{40}}{n}')")}));
    let error = refused(large.collect());
    assert!(error.contains("makes the patterns of all checks exceed 50"), "{error}");
    let words: Vec<String> = (0..900).map(|n| format!("a-rather-long-word-{n}")).collect();
    let error = refused(vec![json!({"schema": {"enum": words}}); 4]);
    assert!(error.starts_with("`policy_params.checks.2` makes the schemas of all"), "{error}");
}

#[test]
fn a_pattern_that_backtracks_elsewhere_takes_linear_time() {
    let text = "a".repeat(100_000);
    let policy = bind(&json!([{"regex": "^(a+)+$", "matches": false}])).unwrap();
    let (said, _) = judged(&policy, &candidate(json!(format!("{text}!"))));
    assert_eq!(said.status.as_str(), "passed");
    // The limit on steps holds for any pattern.
    let policy = bind(&json!([{"regex": "(a?){60}(a*)*b"}])).unwrap();
    let (said, _) = judged(&policy, &candidate(json!("a".repeat(4_000_000))));
    assert_eq!((said.status.as_str(), said.reason_codes), ("inconclusive", vec![1040]));
}

#[test]
fn evidence_that_is_too_deep_or_not_json_is_only_text() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let item = |mime: &str, content: &str| InlineEvidence {
        mime: mime.to_owned(),
        content: content.to_owned(),
    };
    let mut candidate = candidate(json!(1));
    candidate.evidence.inline = vec![
        item("application/json", &deep),
        item("Application/JSON; charset=utf-8", "{\"a\": 1}"),
        item("text/plain", "{\"a\": 1}"),
        item("application/json", "{"),
    ];
    let policy = bind(&json!([{
        "cel": "evidence.map(e, has(e.json)) == [false, true, false, false] && evidence[1].json.a == 1 && evidence[2].content.size() == 8"
    }]));
    let (said, is_small) = judged(&policy.unwrap(), &candidate);
    assert_eq!(said.status.as_str(), "passed", "{said:?}");
    assert!(!is_small, "evidence is not read on the thread of the caller");
}

#[test]
fn deep_expressions_are_run_on_large_stacks_only() {
    let loops = |depth: usize| {
        (0..depth).fold(format!("x{depth} > 0"), |inner, level| {
            format!("[1].all(x{}, {inner})", depth - level)
        })
    };
    let sum = |terms: usize| repeated("1", " + 1", terms - 1, &format!(" == {terms}"));
    // The minimum stack of a server thread, and a part of the stack of the sandbox threads.
    let (small, large) = (1536 * 1024, 16 * 1024 * 1024);
    for (expression, fits, stack) in [
        (sum(15), true, small),
        (loops(4), true, small),
        (sum(62), false, large),
        (loops(18), false, large),
    ] {
        let text = expression.clone();
        let run = move || cel(&text, json!(1));
        let thread = std::thread::Builder::new().stack_size(stack).spawn(run).unwrap();
        let (said, is_small) = thread.join().unwrap();
        assert_eq!((said.status.as_str(), is_small), ("passed", fits), "{expression}: {said:?}");
        // Parsing an expression takes less stack.
        let read = move || bind(&json!([{ "cel": expression }])).is_ok();
        let thread = std::thread::Builder::new().stack_size(small).spawn(read).unwrap();
        assert!(thread.join().unwrap());
    }
}

/// The examples of the guide: a check in a block, followed by rows of outputs and verdicts.
#[test]
fn the_examples_of_the_guide_are_decided_as_written() {
    let guide = include_str!("../../../../docs/guide/policies.md");
    let section = guide.split("### `vp.checks.v1`").nth(1).unwrap();
    let section = section.split("#### Bounds on checks").next().unwrap();
    let (mut kinds, mut rows) = (0, 0);
    for part in section.split("```json\n").skip(1) {
        let (block, rest) = part.split_once("```").unwrap();
        let check: Value = serde_json::from_str(block).unwrap();
        let policy = bind(&json!([check])).unwrap();
        kinds += 1;
        for row in rest.lines().take_while(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, output, verdict @ ("passed" | "failed"), codes, _] = cells[..] else {
                continue;
            };
            let output: Value = serde_json::from_str(output.trim_matches('`')).unwrap();
            let (said, _) = judged(&policy, &candidate(output));
            let said_codes: Vec<String> = said.reason_codes.iter().map(u16::to_string).collect();
            assert_eq!(
                (said.status.as_str(), said_codes.join(", ").as_str()),
                (verdict, codes),
                "{row}"
            );
            rows += 1;
        }
    }
    assert_eq!((kinds, rows), (8, 22));
}
