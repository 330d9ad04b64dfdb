//! A newcomer's first contact: a tour in one terminal, a narrow one, the wrong folder, and a
//! missing executor.

use std::{fs, process::Command};

use jurat_testkit::fake_executor::{FakeExecutor, answers, says_valid, status};
use serde_json::json;

use crate::{
    home::{Home, Process, Ran},
    http::Http,
    terminal::on_terminal,
};

const JURAT: &str = env!("CARGO_BIN_EXE_jurat");

/// A shell without the environment of the tests.
fn shell(home: &Home) -> Command {
    let mut command = Command::new("/bin/sh");
    command.env_clear().current_dir(home.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.env("JURAT_STATE_DIR", home.state()).env("TMPDIR", home.path());
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    command
}

/// Stops the server of a home, which need not be a child of the test.
fn stop(home: &Home) {
    let text = fs::read_to_string(home.state().join("server.json")).unwrap();
    let server: serde_json::Value = serde_json::from_str(&text).unwrap();
    let killed = Command::new("kill").args(["-TERM", &server["pid"].to_string()]).status();
    assert!(killed.unwrap().success());
}

/// Everything that the server prints on its terminal during a round.
fn said_by(home: &Home, server: Process) -> String {
    let server = server.listening();
    let _executor = home.register("a", "honest");
    home.run(&["validate", "--claim", "2 + 2 = 4"]).ok();
    stop(home);
    server.ended()
}

#[test]
fn a_server_in_the_background_leaves_the_terminal_to_others() {
    let home = Home::new();
    let line = format!("{JURAT} serve --listen 127.0.0.1:0 & wait");
    let said = said_by(&home, on_terminal(shell(&home), 80, &line));
    assert!(!said.contains(" INFO "), "{said}");
    // More output on request.
    let home = Home::new();
    let mut asked = shell(&home);
    asked.env("JURAT_LOG", "info");
    let said = said_by(&home, on_terminal(asked, 80, &line));
    assert!(said.contains(" INFO "), "{said}");
}

#[test]
fn a_server_in_the_foreground_logs_what_it_does() {
    let home = Home::new();
    let line = format!("{JURAT} serve --listen 127.0.0.1:0");
    let said = said_by(&home, on_terminal(shell(&home), 80, &line));
    assert!(said.contains(" INFO "), "{said}");
}

#[test]
fn a_command_creates_nothing_in_another_folder() {
    let home = Home::bare();
    for args in [
        &["executors", "list"][..],
        &["executors", "add", "a", "http://127.0.0.1:1", "--no-check"],
        &["validate", "--claim", "x"],
        &["rounds", "list"],
    ] {
        let ran = Ran::from(home.command(args).env_remove("JURAT_STATE_DIR").output().unwrap());
        let folder = home.path().canonicalize().unwrap().join(".jurat");
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.out);
        let told = format!("there is no state folder `{}`", folder.display());
        assert!(ran.err.contains(&told), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("`--state-dir`"), "{args:?}: {}", ran.err);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "{args:?}");
    }
    // A server creates it, and says where.
    let server = home.start(&["serve", "--listen", "127.0.0.1:0"]);
    let line = server.wait_for("created the state folder");
    assert!(line.contains(&home.state().display().to_string()), "{line}");
    let server = server.listening();
    home.run(&["executors", "list"]).ok();
    drop(server.everything());
    // The next start has nothing to report.
    let again = home.serve();
    assert!(!again.everything().contains("created the state folder"));
}

#[test]
fn two_of_three_are_explained() {
    let home = Home::new();
    let _server = home.serve();
    let _executors = [("a", "honest"), ("b", "honest"), ("liar", "lie")]
        .map(|(name, mode)| home.register(name, mode));
    let judged = home.run(&["validate", "--claim", "2 + 2 = 4", "--replicas", "3"]).ok().out;
    assert!(judged.contains("VALID  ·  2 of 3 agree"), "{judged}");
    assert!(judged.contains("2 for, 1 against; only two answers are possible"), "{judged}");
    let done = home.run(&["delegate", "--objective", "Say so", "--replicas", "3"]).ok().out;
    assert!(done.contains("OK  ·  2 of 3 agree"), "{done}");
    assert!(done.contains("2 for, 1 against; any answer is possible"), "{done}");
    let id = done.lines().find_map(|line| line.strip_prefix("round    ")).unwrap();
    let shown = home.run(&["rounds", "show", id]).ok().out;
    assert!(shown.contains("2 for, 1 against; any answer is possible"), "{shown}");
}

#[test]
fn rounds_show_their_request_until_it_is_erased() {
    let home = Home::new();
    let _server = home.serve();
    let _executor = home.register("a", "honest");
    let judged = home.run(&["validate", "--claim", "2 + 2 = 4"]).ok().out;
    let id = judged.lines().find_map(|line| line.strip_prefix("round    ")).unwrap();
    let listed = home.run(&["rounds", "list"]).ok().out;
    assert!(listed.contains("2 + 2 = 4"), "{listed}");
    let asked = || {
        let shown = home.run(&["rounds", "show", id]).ok().out;
        let line = shown.lines().find(|line| line.starts_with("asked ")).map(str::to_owned);
        line.unwrap_or(shown)
    };
    assert!(asked().contains("2 + 2 = 4"), "{}", asked());
    home.run(&["rounds", "erase", id]).ok();
    assert!(asked().contains("erased at "), "{}", asked());
    let listed = home.run(&["rounds", "list"]).ok().out;
    assert!(!listed.contains("2 + 2 = 4"), "{listed}");
}

const LONG: &str = "Extraordinarily comprehensive explanations notwithstanding, neighbouring \
                    municipalities characteristically underestimate infrastructural responsibilities";

#[tokio::test(flavor = "multi_thread")]
async fn output_is_not_cut_in_a_pipe_and_words_are_not_broken_on_a_terminal() {
    let home = Home::new();
    let fake = FakeExecutor::start(answers(json!({ "answer": LONG }))).await;
    tokio::task::block_in_place(|| {
        home.run(&["executors", "add", "wordy", &fake.url()]).ok();
        let args = ["delegate", "--objective", "Explain"];
        let piped = home.run(&args).ok().out;
        let row = piped.lines().find(|line| line.contains("wordy")).unwrap();
        assert!(row.contains(LONG) && !piped.contains('…'), "{piped}");
        for columns in [80, 48] {
            let line = format!("{JURAT} delegate --objective Explain --quiet");
            let shown = on_terminal(shell(&home), columns, &line).ended();
            for word in LONG.split([' ', ',']) {
                assert!(shown.contains(word), "`{word}` is broken at {columns}:\n{shown}");
            }
            // The receipt is one word, to be copied as a whole.
            let lines = shown.lines().filter(|line| !line.contains("sha256:"));
            for line in lines {
                let width = line.trim_end().chars().count();
                assert!(width <= usize::from(columns), "{width} columns: {line}\n{shown}");
            }
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_answer_counts_as_the_flag_says() {
    let home = Home::new();
    let fakes = [
        FakeExecutor::start(says_valid()).await,
        FakeExecutor::start(says_valid()).await,
        FakeExecutor::start(status(500)).await,
    ];
    tokio::task::block_in_place(|| {
        for (name, fake) in ["a", "b", "broken"].iter().zip(&fakes) {
            home.run(&["executors", "add", name, &fake.url()]).ok();
        }
        let sure = |policy: &str| {
            let claim = ["validate", "--claim", "2 + 2 = 4", "--replicas", "3", "--json"];
            let reply = home.run(&[&claim[..], &["--timeout-policy", policy]].concat()).ok().json();
            reply["confidence"].as_f64().unwrap()
        };
        assert!(sure("negative") < sure("count"));
    });
}

#[test]
fn the_terms_of_a_round_are_flags() {
    let home = Home::new();
    let _server = home.serve();
    let _executor = home.register("a", "honest");
    let delegate = ["delegate", "--objective", "41", "--session", "a", "--json"];
    let reply = home.run(&[&delegate[..], &["--aggregation", "median"]].concat()).ok().json();
    assert_eq!(reply["consensus"]["strategy"], "median", "{reply}");
    let fields = ["--equivalence", "{\"fields\": [\"/answer\"]}"];
    let reply = home.run(&[&delegate[..], &fields].concat()).ok().json();
    assert_eq!(reply["consensus"]["equivalence"], "fields", "{reply}");
    let reply = home.run(&[&delegate[..], &["--equivalence", "unordered"]].concat()).ok().json();
    assert_eq!(reply["consensus"]["equivalence"], "unordered", "{reply}");
    for flag in ["--aggregation", "--equivalence", "--timeout-policy"] {
        let word = if flag == "--timeout-policy" { "count" } else { "median" };
        let ran = home.run(&["validate", "--claim", "x", "--api", "v2", flag, word]);
        assert_eq!(ran.code, 2, "{flag}");
        assert!(ran.err.contains("use `--api v3`"), "{}", ran.err);
    }
}

#[test]
fn a_gate_requires_the_confidence_of_its_flag() {
    let home = Home::new();
    let _server = home.serve();
    let _executors = [("a", "honest"), ("b", "honest"), ("liar", "lie")]
        .map(|(name, mode)| home.register(name, mode));
    let claim = ["validate", "--claim", "2 + 2 = 4", "--replicas", "3"];
    let gate = |more: &[&str]| home.run(&[&claim[..], &["--gate"], more].concat());
    // Two against one are 64.4 % sure.
    assert_eq!(gate(&[]).code, 0);
    assert_eq!(gate(&["--min-confidence", "0.6"]).code, 0);
    let ran = gate(&["--min-confidence", "0.9"]);
    assert_eq!(ran.code, 12, "{}", ran.out);
    assert!(ran.err.contains("below `--min-confidence` (90 %)"), "{}", ran.err);
    let ran = home.run(&[&claim[..], &["--min-confidence", "0.9"]].concat());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`--gate`"), "{}", ran.err);
    for share in ["1.1", "-1", "NaN", "much"] {
        let share = format!("--min-confidence={share}");
        assert_eq!(gate(&[&share]).code, 2, "{share}");
    }
    let report = ["--min-confidence", "0.9", "--junit", "report.xml"];
    assert_eq!(home.run(&[&claim[..], &report].concat()).ok().code, 0);
    let report = fs::read_to_string(home.path().join("report.xml")).unwrap();
    assert!(report.contains("errors=\"1\""), "{report}");
}

#[test]
fn a_list_says_if_there_is_more_and_can_be_read_to_its_end() {
    let home = Home::new();
    let server = home.serve();
    home.run(&["executors", "add", "a", "http://127.0.0.1:1", "--no-check", "--no-session"]).ok();
    let http = Http::new(&server.url, &home.state());
    for number in 0..205 {
        let body = json!({ "id": format!("s{number:03}"), "executor": "a" });
        assert_eq!(http.post("/v1/sessions", &body).0, 201);
    }
    let count = |args: &[&str]| {
        let ran = home.run(&[&["sessions", "list", "--json"], args].concat()).ok();
        (ran.json()["items"].as_array().unwrap().len(), ran.err)
    };
    let (shown, told) = count(&[]);
    assert_eq!(shown, 50);
    assert!(told.contains("there are more than these 50: list everything with `--all`"), "{told}");
    let (_, cursor) = told.split_once("`--cursor ").unwrap();
    let (cursor, _) = cursor.split_once('`').unwrap();
    assert_eq!(count(&["--all"]), (205, String::new()));
    assert_eq!(count(&["--limit", "203"]).0, 203);
    assert_eq!(count(&["--limit", "205"]), (205, String::new()));
    assert_eq!(count(&["--cursor", cursor, "--all"]).0, 155);
    let table = home.run(&["sessions", "list", "--all"]).ok().out;
    assert!(table.contains("s000") && table.contains("s204"), "{table}");
}

#[test]
fn hints_say_what_to_type() {
    let home = Home::new();
    let ran = home.run(&["validate", "--claim", "x", "--replicas", "4"]);
    assert!(ran.err.contains("field: consensus.replicas, set by `--replicas`"), "{}", ran.err);
    assert!(ran.err.contains("run the command again"), "{}", ran.err);
    assert!(!ran.err.contains("send the request"), "{}", ran.err);
    let ran = home.run(&["executors", "show", "nobody"]);
    assert!(ran.err.contains("the matching `list` command"), "{}", ran.err);
    // A program gets the reply of the API.
    let ran = home.run(&["executors", "show", "nobody", "--json"]);
    assert_eq!(ran.json()["hint"], "Check the address and the identifier.");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_under_two_names_causes_a_warning() {
    let home = Home::new();
    let fake = FakeExecutor::start(says_valid()).await;
    tokio::task::block_in_place(|| {
        let first = home.run(&["executors", "add", "one", &fake.url()]).ok();
        assert_eq!(first.err, "");
        let second = home.run(&["executors", "add", "two", &fake.url()]).ok();
        assert!(second.err.starts_with("warning: one has the same URL as two"), "{}", second.err);
    });
}

/// Reverses the direction of the text, and clears the screen.
const HOSTILE: &str = "it is \u{202e}eurt\u{202c} \u{2066}x\u{2069}\u{1b}[2J\u{200b}\u{9b}31m";

#[tokio::test(flavor = "multi_thread")]
async fn foreign_text_is_shown_as_such() {
    let home = Home::new();
    let fake = FakeExecutor::start(answers(json!({ "answer": HOSTILE }))).await;
    tokio::task::block_in_place(|| {
        home.run(&["executors", "add", "sly", &fake.url()]).ok();
        let args = ["delegate", "--objective", "Say so"];
        let ran = home.run(&args).ok();
        assert!(ran.out.contains(r"\u{202e}eurt\u{202c}"), "{}", ran.out);
        for text in [&ran.out, &ran.err] {
            let hidden = text.chars().find(|it| HOSTILE.contains(*it) && !(' '..='~').contains(it));
            assert_eq!(hidden, None, "{text}");
        }
        // A program gets the exact text.
        let exact = home.run(&[&args[..], &["--json"]].concat()).ok().json();
        assert_eq!(exact["output"]["answer"], HOSTILE);
        // An error quotes the user's input.
        let ran = home.run(&["executors", "show", HOSTILE]);
        assert!(!ran.err.contains('\u{202e}') && !ran.err.contains('\u{1b}'), "{}", ran.err);
    });
}
