//! Replies of a newer server, with words that this version does not know.

use serde_json::{Value, json};

use crate::{home::Home, scripted::Scripted};

const ID: &str = "rnd_01M7FK9E95X98Q9WNDGQCN8XAR";

/// A round whose state is a word of a later version. The spaces show that the bytes are kept.
fn round() -> String {
    format!(
        r#"{{ "round_id": "{ID}",  "kind": "validate", "state": "postponed",
            "created_at": "2026-11-18T08:00:00Z", "replicas": 1, "labels": [] }}"#
    )
}

#[test]
fn json_prints_a_reply_with_an_unknown_word_as_it_came() {
    let home = Home::new();
    let server = Scripted::new().on(&format!("GET /v1/rounds/{ID}"), 200, round());
    let shown = server.run(&home, &["rounds", "show", ID, "--json"]).ok();
    assert_eq!(shown.out, round() + "\n");
    assert!(
        shown.err.contains("the server may be newer: `postponed` is not a known"),
        "{}",
        shown.err
    );
}

#[test]
fn text_names_the_unknown_word_and_the_way_to_see_the_reply() {
    let home = Home::new();
    let server = Scripted::new().on(&format!("GET /v1/rounds/{ID}"), 200, round());
    let shown = server.run(&home, &["rounds", "show", ID]);
    assert_eq!((shown.code, shown.out.as_str()), (1, ""), "{}", shown.err);
    for part in ["the server may be newer", "`postponed` is not a known RoundState", "`--json`"] {
        assert!(shown.err.contains(part), "{part}: {}", shown.err);
    }
}

#[test]
fn a_whole_list_with_an_unknown_word_is_printed() {
    let home = Home::new();
    let item: Value = serde_json::from_str(&round()).unwrap();
    let page = json!({ "items": [item], "next_cursor": null });
    let server = Scripted::new().on("GET /v1/rounds?limit=200", 200, &page);
    let listed = server.run(&home, &["rounds", "list", "--all", "--json"]).ok();
    assert_eq!(listed.json()["items"], page["items"]);
}

/// An exit code of 0 would claim an answer that the program has not understood.
#[test]
fn a_command_that_decides_by_the_reply_prints_it_and_fails() {
    let home = Home::new();
    let reply = json!({ "task_id": "t1", "state": "postponed" });
    let server = Scripted::new().on("GET /v1/tasks/t1/decision", 200, &reply).on(
        "DELETE /v1/sessions/s1",
        200,
        json!({ "removed": 7 }),
    );
    let decision = server.run(&home, &["task", "decision", "t1", "--gate", "--json"]);
    assert_eq!((decision.code, decision.json()), (1, reply), "{}", decision.err);
    let removed = server.run(&home, &["sessions", "remove", "s1", "--json"]);
    assert_eq!((removed.code, &removed.json()["removed"]), (1, &json!(7)), "{}", removed.err);
}
