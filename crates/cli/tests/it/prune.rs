//! `jurat prune`, in processes of their own.

use jurat_store::StoreLocation;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::{Value, json};

use crate::home::{Home, Ran};

const DAY_MS: i64 = 86_400_000;

/// Leaves a ten-year-old round in the store of the folder, and returns its id.
async fn old_round(home: &Home) -> String {
    let app = TestApp::with_store(&StoreLocation::File(home.state().join("jurat.db"))).await;
    app.clock.advance_ms(-3_650 * DAY_MS);
    let _fakes = app.executors([says_valid()]).await;
    let key = [("idempotency-key", "once")];
    let body = json!({ "claim": "old" });
    let round = app.admin().post_with("/api/v3/validate", &body, &key).await.json();
    app.admin().delete("/v1/executors/s1").await;
    app.engine.shutdown().await;
    round["round_id"].as_str().unwrap().to_owned()
}

fn shown(home: &Home, round: &str) -> Value {
    home.run(&["rounds", "show", round, "--json"]).ok().json()
}

#[tokio::test]
async fn old_data_is_pruned_and_decisions_stay() {
    let home = Home::new();
    let old = old_round(&home).await;
    let _executor = home.register("a", "honest");
    let young = home.run(&["validate", "--claim", "1 = 1", "--json"]).ok().json();
    let young = young["round_id"].as_str().unwrap();

    let dry = home.run(&["prune", "--dry-run"]).ok();
    assert!(dry.out.contains("rounds (texts)"), "{}", dry.out);
    assert_eq!(dry.err, "dry run: nothing was deleted\n");
    assert_eq!(shown(&home, &old)["asked"], "old");

    let pruned = home.run(&["prune", "--json"]).ok().json();
    let counts = [&pruned["accounts"], &pruned["rounds"], &pruned["idempotency_answers"]];
    assert_eq!(counts, [&json!(1), &json!(1), &json!(1)], "{pruned}");
    assert_eq!(pruned["dry_run"], false);
    let gone = shown(&home, &old);
    assert_eq!((&gone["asked"], &gone["verdict"]), (&Value::Null, &json!("VALID")), "{gone}");
    assert_eq!(shown(&home, young)["asked"], "1 = 1");

    // A running server is asked, and there is nothing left.
    let _server = home.serve();
    let again = home.run(&["prune", "--json"]).ok().json();
    assert_eq!((&again["accounts"], &again["rounds"]), (&json!(0), &json!(0)), "{again}");
    let (code, report) = {
        let ran = home.run(&["doctor", "--all-entries", "--json"]);
        (ran.code, ran.json())
    };
    assert_eq!((code, &report["entries"]["problem_count"]), (0, &json!(0)), "{report}");
}

#[test]
fn only_the_operator_prunes() {
    let home = Home::new();
    let made = home.run(&["keys", "create", "ci", "--quiet"]).ok();
    let mut command = home.command(&["prune"]);
    let ran: Ran = command.env("JURAT_KEY", made.out.trim()).output().unwrap().into();
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("the key lacks the scope `admin`"), "{}", ran.err);
}
