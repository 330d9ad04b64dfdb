//! `jurat keys`, in processes of their own.

use std::fs;

use serde_json::json;

use crate::home::{Home, Ran};

fn run_with(home: &Home, key: &str, args: &[&str]) -> Ran {
    home.command(args).env("JURAT_KEY", key).output().unwrap().into()
}

/// Creates a key as a script does, and returns its text.
fn create(home: &Home, args: &[&str]) -> String {
    let ran = home.run(&[&["keys", "create"], args].concat()).ok();
    let key = ran.out.strip_suffix('\n').unwrap();
    assert!(key.starts_with("jrt_live_") && !key.contains(char::is_whitespace), "{}", ran.out);
    key.to_owned()
}

#[test]
fn a_script_can_keep_a_key_and_use_it() {
    let home = Home::new();
    let ran = home.run(&["keys", "create", "ci"]).ok();
    assert_eq!(
        ran.err,
        "created key ci of acct_admin with scopes rounds:create, rounds:read, verifiers:read, verifiers:write, verifiers:run, usage:read, keys:write, workflows:read, workflows:write, account:write, tasks:read, tasks:write; it is not shown again\n"
    );
    let key = ran.out.trim();
    run_with(&home, key, &["rounds", "list"]).ok();
    let ran = run_with(&home, key, &["executors", "list"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the key lacks the scope `admin`"), "{}", ran.err);
    let ran = home.run(&["keys", "create", "other", "--quiet"]).ok();
    assert_eq!(ran.err, "");
    // No file of the folder contains it in clear text.
    let secret = key.rsplit('_').next().unwrap().as_bytes();
    for file in fs::read_dir(home.state()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
}

#[test]
fn keys_are_listed_without_their_secrets() {
    let home = Home::new();
    create(&home, &["ci", "--rate-per-minute", "60", "--concurrent-rounds", "4"]);
    create(&home, &["old", "--account", "acct_team", "--expires-at", "2099-01-31T12:00:00Z"]);
    let ran = home.run(&["keys", "list"]).ok();
    for text in ["admin", "60 per minute, 4 rounds", "2099-01-31 12:00:00", "acct_team", "live"] {
        assert!(ran.out.contains(text), "{text}: {}", ran.out);
    }
    home.run(&["keys", "revoke", "ci"]).ok();
    let ran = home.run(&["keys", "list"]).ok();
    assert!(ran.out.contains("revoked") && !ran.out.contains("jrt_live_"), "{}", ran.out);
    let listed = home.run(&["keys", "list", "--account", "acct_team", "--json"]).ok().json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["name"], "old");
}

#[test]
fn a_revoked_key_opens_nothing_and_may_be_revoked_again() {
    let home = Home::new();
    let key = create(&home, &["ci"]);
    let ran = home.run(&["keys", "revoke", "ci"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("revoked ci\n", ""));
    let ran = run_with(&home, &key, &["rounds", "list"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the key is not valid"), "{}", ran.err);
    // Repeating it changes nothing.
    home.run(&["keys", "revoke", "ci"]).ok();
    let ran = home.run(&["keys", "revoke", "nothing"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("`nothing`"), "{}", ran.err);
    create(&home, &["two words"]);
    let revoked = home.run(&["keys", "revoke", "two words", "--json"]).ok().json();
    assert_eq!(revoked, json!({"status": "revoked", "key": "two words"}));
    let ran = home.run(&["keys", "revoke", "admin"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("this is the key of the request itself"), "{}", ran.err);
}

#[test]
fn a_rotated_key_is_replaced_and_so_is_that_of_the_folder() {
    let home = Home::new();
    let old = create(&home, &["ci"]);
    let ran = home.run(&["keys", "rotate", "ci", "--grace-seconds", "0"]).ok();
    assert!(ran.err.contains("which replaces"), "{}", ran.err);
    run_with(&home, ran.out.trim(), &["rounds", "list"]).ok();
    assert_eq!(run_with(&home, &old, &["rounds", "list"]).code, 1);

    let file = home.state().join("admin.key");
    let before = fs::read_to_string(&file).unwrap();
    let ran = home.run(&["keys", "rotate", "admin", "--grace-seconds", "0"]).ok();
    assert!(
        ran.err.contains("the new key is stored in `admin.key` in the state folder"),
        "{}",
        ran.err
    );
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(after, ran.out);
    assert_ne!(after, before);
    home.run(&["executors", "list"]).ok();
    let ran = run_with(&home, before.trim(), &["executors", "list"]);
    assert!(ran.err.contains("the key is not valid"), "{}", ran.err);
}

#[test]
fn a_malformed_key_is_a_usage_error() {
    let home = Home::new();
    for (args, text) in [
        (&["keys", "create", "a/b"][..], "`name` must have at most 64 characters"),
        (&["keys", "create", "a", "--scope", "all"], "invalid value 'all'"),
        (&["keys", "create", "a", "--account", "team"], "`account` must be `acct_`"),
        (&["keys", "create", "a", "--expires-at", "soon"], "such as 2030-01-31T12:00:00Z"),
        (&["keys", "rotate", "admin", "--grace-seconds", "99999999"], "from 0 to 2592000"),
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(text), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_key_that_could_not_be_shown_is_named_for_revocation() {
    let home = Home::new();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    home.run(&["keys", "create", "ci"]).ok();
    for args in [["keys", "create", "lost"], ["keys", "rotate", "ci"]] {
        let ran = Ran::from(home.command(&args).stdout(full()).output().unwrap());
        assert_eq!(ran.code, 1, "{}", ran.err);
        let id = ran.err.split("jurat keys revoke ").nth(1).unwrap().split('`').next().unwrap();
        assert!(
            ran.err.starts_with(&format!("error: the key {id} was created but")),
            "{}",
            ran.err
        );
        let revoked = home.run(&["keys", "revoke", id, "--json"]).ok().json();
        assert_eq!(revoked["status"], "revoked", "{revoked}");
    }
    // The operator's key is in its file, so nobody is locked out.
    let ran =
        Ran::from(home.command(&["keys", "rotate", "admin"]).stdout(full()).output().unwrap());
    assert!(ran.code == 1 && ran.err.contains("`admin.key` in the state folder"), "{}", ran.err);
    home.run(&["keys", "list"]).ok();
}

#[test]
fn an_empty_key_file_is_not_sent() {
    let home = Home::new();
    let _server = home.serve();
    let path = home.state().join("admin.key");
    let key = fs::read_to_string(&path).unwrap();
    fs::write(&path, "\n").unwrap();
    let ran = home.run(&["rounds", "list"]);
    assert_eq!(ran.code, 1);
    let expected =
        "admin.key` does not contain a key; restore it from a backup, or set JURAT_KEY\n";
    assert!(ran.err.ends_with(expected), "{}", ran.err);
    run_with(&home, key.trim(), &["rounds", "list"]).ok();
}
