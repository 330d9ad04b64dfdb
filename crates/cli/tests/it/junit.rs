//! `--junit`: the report of a round for CI systems.

use std::fs;

use crate::home::Home;

/// Runs a command that writes a report, and returns its exit code and the report.
fn reported(home: &Home, args: &[&str]) -> (i32, String) {
    let ran = home.run(&[args, &["--junit", "report.xml", "-q"]].concat());
    let text = fs::read_to_string(home.path().join("report.xml"));
    (ran.code, text.unwrap_or_else(|_| panic!("no report: {}", ran.err)))
}

#[test]
fn rounds_are_test_cases_that_pass_fail_or_have_an_error() {
    let home = Home::new();
    let _server = home.serve();
    let _executors = [("a", "honest"), ("b", "honest"), ("liar", "lie")]
        .map(|(name, mode)| home.register(name, mode));

    let (code, text) = reported(&home, &["validate", "--claim", "2 + 2 = 4", "--replicas", "3"]);
    assert_eq!(code, 0);
    let xml = quick_junit::Report::deserialize_from_str(&text).unwrap();
    assert_eq!((xml.tests, xml.failures, xml.errors), (1, 0, 0));
    assert!(text.contains("<testcase name=\"2 + 2 = 4\" classname=\"jurat.validate\""), "{text}");
    for property in
        ["round_id\" value=\"rnd_", "receipt_id\" value=\"sha256:", "agreement\" value=\"0.6667"]
    {
        assert!(text.contains(&format!("<property name=\"jurat.{property}")), "{text}");
    }

    let wrong = ["factcheck", "--claim", "7 * 8 = 54", "--replicas", "3", "--junit-name", "sums"];
    let (code, text) = reported(&home, &wrong);
    assert_eq!(code, 0, "the gate is another flag");
    assert!(text.contains("<testcase name=\"sums\" classname=\"jurat.factcheck\""), "{text}");
    assert!(text.contains("<failure message=\"FALSE  ·  2 of 3 agree"), "{text}");
    assert!(text.contains("type=\"FALSE\""), "{text}");

    let unclear = ["validate", "--claim", "the sky is blue", "--replicas", "3", "--gate"];
    let (code, text) = reported(&home, &unclear);
    assert_eq!(code, 12);
    assert!(text.contains("failures=\"0\" errors=\"1\""), "{text}");

    let split = ["--min-agreement", "1", "--disagreement-policy", "fail_hard"];
    let args = [&["validate", "--claim", "2 + 2 = 4", "--replicas", "3"], &split[..]].concat();
    let (code, text) = reported(&home, &args);
    assert_eq!(code, 1);
    assert!(text.contains("<error message=\"NO_CONSENSUS"), "{text}");
    assert!(text.contains("jurat.round_id"), "{text}");
}

#[test]
fn hostile_text_stays_text() {
    let home = Home::new();
    let _executor = home.register("a", "honest");
    let claim = "</testcase><x a=\"1\"> & ]]> \u{1b}[31m \u{1} \u{fffe}\u{ffff}";
    let (_, text) = reported(&home, &["validate", "--claim", claim]);
    let xml = quick_junit::Report::deserialize_from_str(&text).unwrap();
    let name = xml.test_suites[0].test_cases[0].name.as_str();
    assert!(name.starts_with("</testcase><x a=\"1\"> & ]]>"), "{name}");
    let is_allowed = |symbol: char| {
        matches!(symbol, '\n' | '\t')
            || !symbol.is_control() && !"\u{fffe}\u{ffff}".contains(symbol)
    };
    assert!(text.chars().all(is_allowed), "{text:?}");
}

#[test]
fn a_round_that_could_not_run_is_an_error_too() {
    let home = Home::new();
    let (code, text) = reported(&home, &["validate", "--claim", "1 = 1"]);
    assert_eq!(code, 1);
    assert!(text.contains("type=\"sessions_unavailable\""), "{text}");
    let args = ["validate", "--claim", "1 = 1", "--server", "http://127.0.0.1:1"];
    let (code, text) = reported(&home, &args);
    assert_eq!(code, 1);
    assert!(text.contains("<error message=\"cannot use the server at"), "{text}");
}

#[test]
fn a_report_without_a_folder_is_refused_before_anyone_is_asked() {
    let home = Home::bare();
    let ran = home.run(&["validate", "--claim", "1 = 1", "--junit", "none/report.xml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("name a file in an existing folder"), "{}", ran.err);
    assert!(!home.state().exists());
    let ran = home.run(&["validate", "--claim", "1 = 1", "--junit-name", "x"]);
    assert_eq!(ran.code, 2);
}
