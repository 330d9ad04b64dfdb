//! `jurat doctor`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// Nothing listens on this port.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A home with three rounds in its store, and no server.
fn used() -> (Home, Vec<String>) {
    let home = Home::new();
    let _executor = home.register("a", "honest");
    let rounds = ["1 = 1", "2 = 2", "3 = 3"].map(|claim| {
        let body = home.run(&["validate", "--claim", claim, "--json"]).ok().json();
        body["round_id"].as_str().unwrap().to_owned()
    });
    (home, rounds.to_vec())
}

/// The details of one check.
fn found<'a>(body: &'a Value, check: &str, status: &str) -> Vec<&'a str> {
    let checks = body["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|it| it["check"] == check && it["status"] == status);
    checks.filter_map(|it| it["detail"].as_str()).collect()
}

fn doctor(home: &Home, args: &[&str]) -> (i32, Value) {
    let ran = home.run(&[&["doctor", "--json"], args].concat());
    (ran.code, ran.json())
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn doctor_creates_nothing_in_a_new_folder() {
    let home = Home::bare();
    let (code, body) = doctor(&home, &[]);
    assert_eq!((code, &body["status"]), (0, &json!("warning")), "{body}");
    assert_eq!(found(&body, "store", "warning"), ["there is no store yet, so nothing to check"]);
    assert!(!home.state().exists());
}

#[test]
fn a_sound_installation_is_reported_with_and_without_a_server() {
    let (home, _) = used();
    let expected = "3 decisions recomputed, and all match their records";
    let (code, alone) = doctor(&home, &["--all-entries"]);
    assert_eq!(code, 0, "{alone}");
    assert_eq!(found(&alone, "entries", "ok"), [expected]);
    assert_eq!(alone["entries"], json!({"checked": 3, "problems": [], "problem_count": 0}));
    assert_eq!(found(&alone, "keys", "ok").len(), 2, "{alone}");
    let server = home.serve();
    let (code, served) = doctor(&home, &[]);
    assert_eq!(code, 0, "{served}");
    assert_eq!(found(&served, "entries", "ok"), [expected]);
    assert_eq!(
        found(&served, "clock", "ok")[0],
        "the clock of the server agrees with this machine's clock"
    );
    for check in ["store", "sessions", "state"] {
        assert_eq!(found(&served, check, "ok"), found(&alone, check, "ok"), "{check}");
    }
    // Over HTTP the state folder is not checked, because it may be on another machine.
    let (code, named) = doctor(&home, &["--server", &server.url]);
    assert_eq!((code, found(&named, "state", "ok")), (0, Vec::new()), "{named}");
    let ran = home.run(&["doctor"]).ok();
    assert!(ran.out.contains(" ok ") && ran.out.contains(" 0 problems"), "{}", ran.out);
}

#[test]
fn one_changed_byte_of_a_decision_is_found_and_its_round_named() {
    let (home, rounds) = used();
    let path = home.state().join("jurat.db");
    let mut bytes = fs::read(&path).unwrap();
    let id = format!("\"round_id\":\"{}\"", rounds[1]);
    let at = |part: &[u8], whole: &[u8]| whole.windows(part.len()).position(|it| it == part);
    // The strategy follows the round in the entry, whose members are sorted.
    let entry = at(id.as_bytes(), &bytes).unwrap();
    let word = entry + at(b"majority", &bytes[entry..]).unwrap();
    bytes[word] ^= 0x20;
    fs::write(&path, bytes).unwrap();

    let (code, body) = doctor(&home, &[]);
    assert_eq!((code, &body["status"]), (1, &json!("problem")), "{body}");
    let problems = found(&body, "entries", "problem");
    assert!(problems[0].starts_with(&format!("round `{}`: the digest of its entry is", rounds[1])));
    assert!(
        problems[1].contains("`strategy` is \"Majority\", but the store says \"majority\""),
        "{body}"
    );
    assert_eq!(body["entries"]["checked"], 3);
    assert_eq!(body["entries"]["problems"][0]["round_id"], rounds[1]);
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains(&rounds[1]) && ran.out.contains("→ Find out what"), "{}", ran.out);
    assert!(!ran.out.contains(&rounds[0]), "{}", ran.out);
}

#[test]
fn a_damaged_file_is_a_problem_of_the_store() {
    let (home, _) = used();
    let path = home.state().join("jurat.db");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let (code, body) = doctor(&home, &[]);
    assert_eq!(code, 1, "{body}");
    assert!(!found(&body, "store", "problem").is_empty(), "{body}");
}

#[test]
fn keys_that_others_can_read_are_found_with_advice() {
    let (home, _) = used();
    chmod(&home.state().join("admin.key"), 0o644);
    chmod(&home.state(), 0o755);
    fs::write(home.state().join("jurat.toml"), "[client]\nkey = \"jrt_live_x\"\n").unwrap();
    chmod(&home.state().join("jurat.toml"), 0o640);
    let ran = Ran::from(home.command(&["doctor", "--json"]).output().unwrap());
    let body = ran.json();
    assert_eq!(ran.code, 1, "{body}");
    assert!(found(&body, "keys", "problem")[0].contains("admin.key` has mode 0644"), "{body}");
    assert!(found(&body, "state", "warning")[0].contains("state` has mode 0755"), "{body}");
    assert!(found(&body, "settings", "problem")[0].contains("jurat.toml` has mode 0640"), "{body}");
    assert!(body.to_string().contains("Run `chmod 600 "), "{body}");
    // The file contains no secret any more, so everybody may read it.
    fs::write(home.state().join("jurat.toml"), "[log]\nformat = \"text\"\n").unwrap();
    let (_, body) = doctor(&home, &[]);
    assert_eq!(found(&body, "settings", "problem"), [] as [&str; 0]);
}

#[test]
fn doctor_does_not_recreate_a_missing_key() {
    let (home, _) = used();
    fs::remove_file(home.state().join("node.key")).unwrap();
    let (code, body) = doctor(&home, &[]);
    assert_eq!(code, 1);
    assert!(found(&body, "keys", "problem")[0].contains("node.key` is missing"), "{body}");
    assert!(
        found(&body, "store", "warning")[0].contains("would create a new `node.key`"),
        "{body}"
    );
    assert!(!home.state().join("node.key").exists());
}

#[test]
fn executors_that_are_down_are_warnings() {
    let home = Home::new();
    home.run(&["executors", "add", "down", NOWHERE, "--no-check"]).ok();
    let (code, body) = doctor(&home, &[]);
    assert_eq!(code, 0, "{body}");
    assert!(found(&body, "executors", "warning")[0].starts_with("`down` is down: "), "{body}");
    let few = "0 sessions can answer now, but a round with three replicas needs 3";
    assert_eq!(found(&body, "sessions", "warning"), [few]);
}

#[test]
fn a_server_that_does_not_answer_is_a_problem() {
    let home = Home::new();
    let mut command = home.command(&["doctor", "--json", "--server", NOWHERE]);
    let ran = Ran::from(command.env("JURAT_KEY", "jrt_live_x").output().unwrap());
    assert_eq!(ran.code, 1);
    assert!(
        found(&ran.json(), "store", "problem")[0].contains("cannot use the server"),
        "{}",
        ran.out
    );
    assert_eq!(ran.json()["entries"], Value::Null);
}

#[test]
fn more_connections_than_files_are_a_warning() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let mut command = home.command(&["doctor", "--json"]);
    command.env("JURAT_INBOUND_MAX_CONNECTIONS", "1000000");
    let body = Ran::from(command.output().unwrap()).ok().json();
    let warned = found(&body, "files", "warning");
    // A machine with a limit of a million open files has nothing to warn about.
    let enough = found(&body, "files", "ok");
    assert_eq!(warned.len() + enough.len(), 1, "{body}");
    assert!(warned.iter().chain(&enough).all(|it| it.contains("1000000 connections")), "{body}");
}

#[test]
fn a_missing_or_empty_store_next_to_its_keys_is_a_problem() {
    let (home, _) = used();
    let path = home.state().join("jurat.db");
    let expected = "is missing or empty, but there are keys";
    // A file that SQLite created without any content.
    let mut blank = fs::read(&path).unwrap();
    blank.truncate(4096);
    blank[100..].fill(0);
    blank[100] = 13;
    blank[105..107].copy_from_slice(&4096_u16.to_be_bytes());
    blank[28..32].copy_from_slice(&1_u32.to_be_bytes());
    for content in [Some(Vec::new()), Some(blank), None] {
        match &content {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let (code, body) = doctor(&home, &[]);
        assert_eq!((code, &body["status"]), (1, &json!("problem")), "{body}");
        assert!(found(&body, "store", "problem")[0].contains(expected), "{body}");
        assert!(
            body.to_string().contains("starting the server now would create an empty one"),
            "{body}"
        );
        assert_eq!(fs::read(&path).ok(), content);
    }
}

#[test]
fn an_empty_store_without_keys_is_a_new_installation() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    fs::write(home.state().join("jurat.db"), "").unwrap();
    let (_, body) = doctor(&home, &[]);
    assert_eq!(found(&body, "store", "problem"), [] as [&str; 0], "{body}");
    assert_eq!(found(&body, "keys", "problem"), [] as [&str; 0], "{body}");
    assert_eq!(found(&body, "store", "warning"), ["there is no store yet, so nothing to check"]);
}

#[test]
fn a_server_whose_file_was_removed_or_replaced_is_a_problem() {
    let (home, _) = used();
    let path = home.state().join("jurat.db");
    let moved = home.state().join("moved.db");
    let _server = home.serve();
    fs::rename(&path, &moved).unwrap();
    let (code, body) = doctor(&home, &[]);
    assert_eq!(code, 1, "{body}");
    assert!(found(&body, "store", "problem")[0].contains("jurat.db` is missing"), "{body}");
    fs::copy(&moved, &path).unwrap();
    let (code, body) = doctor(&home, &[]);
    assert_eq!(code, 1, "{body}");
    assert!(
        found(&body, "store", "problem")[0].contains("is not the file that the server"),
        "{body}"
    );
    fs::rename(&moved, &path).unwrap();
    assert_eq!(doctor(&home, &[]).0, 0);
}

#[test]
fn empty_key_files_are_named_with_advice() {
    let (home, _) = used();
    for (name, content, advice) in [
        ("admin.key", "", "Restore it from a backup, or remove it"),
        ("admin.key", "nonsense\n", "Restore it from a backup, or remove it"),
        (
            "node.key",
            "",
            "restore it from a backup; if you remove it, the node gets a new identity",
        ),
    ] {
        let path = home.state().join(name);
        let kept = fs::read(&path).unwrap();
        fs::write(&path, content).unwrap();
        let (code, body) = doctor(&home, &[]);
        assert_eq!(code, 1, "{body}");
        let problems = found(&body, "keys", "problem");
        assert!(problems[0].ends_with(&format!("{name}` does not contain a key")), "{body}");
        assert!(body.to_string().contains(advice), "{body}");
        assert!(found(&body, "store", "warning")[0].contains("was not checked"), "{body}");
        fs::write(&path, kept).unwrap();
    }
    assert_eq!(doctor(&home, &[]).0, 0);
}

#[test]
fn a_misspelt_variable_is_a_warning() {
    let home = Home::new();
    let mut command = home.command(&["doctor", "--json"]);
    let body = Ran::from(command.env("JURAT_LISTN", "x").output().unwrap()).ok().json();
    let warned = found(&body, "settings", "warning");
    assert_eq!(warned, ["the variable JURAT_LISTN is not a setting; did you mean JURAT_LISTEN?"]);
}

#[test]
fn providers_of_judges_need_their_keys_and_prices() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let file = "[providers.openai]\n[providers.local]\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    fs::write(home.state().join("jurat.toml"), file).unwrap();
    home.run(&["keys", "create", "ci"]).ok();
    let (code, body) = doctor(&home, &[]);
    assert_eq!(code, 1, "{body}");
    let detail = "the provider `openai` needs the environment variable `OPENAI_API_KEY`, which is not set on this node";
    assert_eq!(found(&body, "judges", "problem"), [detail]);
    assert_eq!(found(&body, "judges", "ok"), ["the provider `local` is called without a key"]);
    // No account pays yet, so nothing is given away.
    assert_eq!(found(&body, "judges", "warning"), Vec::<&str>::new());
    home.run(&["keys", "create", "team", "--account", "acct_team"]).ok();
    let mut command = home.command(&["doctor", "--json"]);
    let ran = Ran::from(command.env("OPENAI_API_KEY", "k3y-s3cret").output().unwrap());
    let body = ran.json();
    assert_eq!(found(&body, "judges", "problem"), Vec::<&str>::new());
    assert_eq!(found(&body, "judges", "warning").len(), 2, "{body}");
    assert!(!ran.out.contains("s3cret"), "{}", ran.out);
}
