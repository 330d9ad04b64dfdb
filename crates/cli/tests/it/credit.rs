//! Credit: the cost of a run, who pays, and what the operator can do.

use std::fs;

use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, verdict};
use serde_json::{Value, json};

use crate::home::{Home, Process, Ran};

/// A server whose provider answers `met`, at one dollar per million tokens of either kind.
async fn metered() -> (Home, Process, FakeProvider) {
    let provider = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let file = format!(
        "[providers.fake]\nbase_url = \"{}\"\n[providers.fake.prices.\"*\"]\n\
         input_usd_per_million = \"1\"\noutput_usd_per_million = \"1\"\n",
        provider.url()
    );
    fs::write(home.state().join("jurat.toml"), file).unwrap();
    let server = home.serve();
    (home, server, provider)
}

fn deploy(home: &Home, key: &str) {
    let body = json!({
        "name": "kind", "description": "It is kind.", "criterion": "Pass what is kind.",
        "input_contract": "text", "input_fields": ["response"],
        "model_settings": {"model": "fake/model"},
    });
    fs::write(home.path().join("v.json"), body.to_string()).unwrap();
    run_with(home, key, &["verifiers", "deploy", "v.json"]).ok();
}

fn run_with(home: &Home, key: &str, args: &[&str]) -> Ran {
    Ran::from(home.command(args).env("JURAT_KEY", key).output().unwrap())
}

const RUN: [&str; 6] = ["verifiers", "run", "kind", "--input", "response=Hello, dear.", "--fresh"];

#[tokio::test(flavor = "multi_thread")]
async fn an_account_pays_for_its_runs_from_what_it_was_granted() {
    let (home, _server, _provider) = metered().await;
    let key = home.run(&["keys", "create", "team", "--account", "acct_team", "--quiet"]).ok().out;
    let key = key.trim();
    deploy(&home, key);
    let ran = run_with(&home, key, &RUN);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.err.contains("hint: ") && ran.err.contains("jurat admin grant"), "{}", ran.err);

    let ran = home.run(&["admin", "grant", "acct_team", "5", "--note", "to begin"]).ok();
    assert_eq!(ran.out, "granted $5 to acct_team; $5.00 available\n");
    let ran = run_with(&home, key, &RUN).ok();
    assert!(ran.out.starts_with("PASS verifier_run_id="), "{}", ran.out);
    assert!(ran.out.ends_with("It is met.\n"), "{}", ran.out);
    // A hundred tokens in, twenty out.
    let usage = run_with(&home, key, &["usage", "--json"]).ok().json();
    assert_eq!(
        (&usage["available_usd"], &usage["used_usd"]),
        (&json!("4.99988"), &json!("0.00012"))
    );
    let usage = run_with(&home, key, &["usage"]).ok().out;
    assert!(usage.contains("available  $4.99988\n"), "{usage}");
    assert!(usage.contains("used       $0.00012 in 1 round since "), "{usage}");
    let lines = run_with(&home, key, &["admin", "transfers", "--json"]).ok().json();
    let movements: Vec<&Value> =
        lines["items"].as_array().unwrap().iter().map(|it| &it["movement"]).collect();
    assert_eq!(movements.last().unwrap(), &&json!("grant"), "{lines}");
    assert!(movements.contains(&&json!("capture")), "{lines}");
    assert!(run_with(&home, key, &["admin", "transfers"]).ok().out.contains("to begin"));

    let runs = run_with(&home, key, &["verifiers", "runs", "kind", "--json"]).ok().json();
    assert_eq!(runs["items"][0]["cost_usd"], "0.00012", "{runs}");
    // Only the operator sees all accounts, and grants credit.
    let accounts = home.run(&["admin", "accounts"]).ok().out;
    assert!(accounts.contains("acct_team") && accounts.contains("4.99988"), "{accounts}");
    for args in [&["admin", "accounts"][..], &["admin", "grant", "acct_team", "1"]] {
        let ran = run_with(&home, key, args);
        assert_eq!(ran.code, 1, "{}", ran.out);
        assert!(ran.err.contains("lacks the scope `admin`"), "{}", ran.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_account_is_refused_paid_work() {
    let (home, _server, provider) = metered().await;
    let key = home.run(&["keys", "create", "team", "--account", "acct_team", "--quiet"]).ok().out;
    let key = key.trim();
    home.run(&["admin", "grant", "acct_team", "5"]).ok();
    deploy(&home, key);
    assert_eq!(home.run(&["admin", "suspend", "acct_team"]).ok().out, "suspended acct_team\n");
    let ran = run_with(&home, key, &[&RUN[..], &["--json"]].concat());
    assert_eq!((ran.code, &ran.json()["error"]), (1, &json!("account_suspended")));
    assert!(provider.asked().is_empty());
    let who = run_with(&home, key, &["whoami"]).ok().out;
    assert!(who.contains("account  acct_team\n") && who.contains("suspended"), "{who}");
    assert!(home.run(&["admin", "accounts"]).ok().out.contains("suspended"));
    assert_eq!(home.run(&["admin", "resume", "acct_team"]).ok().out, "resumed acct_team\n");
    run_with(&home, key, &RUN).ok();
    let who = home.run(&["whoami"]).ok().out;
    assert!(who.starts_with("account  acct_admin\nemail    "), "{who}");
    assert!(who.contains("\nkey      admin ("), "{who}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_judges_are_shown_with_their_verdicts() {
    let (home, _server, _provider) = metered().await;
    let key = fs::read_to_string(home.state().join("admin.key")).unwrap();
    deploy(&home, key.trim());
    let judges = ["--judge", "fake/a", "--judge", "fake/b", "--judge", "fake/c"];
    let ran = home.run(&[&RUN[..], &judges].concat()).ok();
    assert!(ran.out.starts_with("PASS verifier_run_id="), "{}", ran.out);
    for text in ["fake/a", "fake/b", "fake/c", "100.0 % agree"] {
        assert!(ran.out.contains(text), "{text}: {}", ran.out);
    }
}
