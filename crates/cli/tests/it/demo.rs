//! `jurat demo`.

use serde_json::json;

use crate::home::Home;

#[test]
fn the_demo_shows_who_said_what_and_leaves_nothing_behind() {
    let home = Home::bare();
    let ran = home.run(&["demo"]).ok();
    for text in [
        "VALID  ·  3 of 5 agree",
        "OK  ·  2 of 3 agree",
        "TIMEOUT",
        "INVALID",
        "confidence",
        "independent ones",
        "receipt  sha256:",
        "says the city archive.”\nPASS verifier_run_id=",
        "Everybody knows when it opened.”\nFAIL verifier_run_id=",
        "jurat executors add one http://127.0.0.1:8787",
    ] {
        assert!(ran.out.contains(text), "`{text}` is not in\n{}", ran.out);
    }
    // As it was started, because it may not be on the path.
    let program = env!("CARGO_BIN_EXE_jurat");
    assert!(ran.out.contains(&format!("\n  {program} serve\n")), "{}", ran.out);
    assert!(ran.err.contains("sleeper: TIMEOUT after"), "{}", ran.err);
    assert!(!ran.out.contains('\u{1b}'), "colours although it is no terminal");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn the_demo_prints_all_bodies_as_json_and_nothing_else() {
    let home = Home::new();
    let ran = home.run(&["demo", "--json", "--quiet"]).ok();
    let body = ran.json();
    assert_eq!(body["validate"]["verdict"], "VALID");
    assert_eq!(body["validate"]["consensus"]["agreement"], json!(0.6));
    let mut verdicts: Vec<&str> = body["validate"]["consensus"]["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|verdict| verdict.as_str())
        .collect();
    verdicts.sort_unstable();
    assert_eq!(verdicts, ["INVALID", "TIMEOUT", "VALID", "VALID", "VALID"]);
    assert_eq!(body["delegate"]["output"]["answer"], "Say what a jurat is");
    assert_eq!(body["delegate"]["consensus"]["groups"], json!([0, 0, 1]));
    let runs = body["verifier"]["runs"].as_array().unwrap();
    let passed: Vec<Option<bool>> = runs.iter().map(|run| run["passed"].as_bool()).collect();
    assert_eq!(passed, [Some(true), Some(false)]);
    assert_eq!(ran.err, "");
}
