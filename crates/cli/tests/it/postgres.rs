//! The binary with a store in PostgreSQL.

mod agent_run_workers;
mod dump;
mod joins;

use jurat_testkit::postgres::TestSchema;

use crate::home::Home;

/// Nothing listens on this port.
const NOWHERE: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn a_command_without_a_store_uses_the_running_server() {
    let schema = TestSchema::served().await;
    let home = Home::new();
    let url = schema.serving_url();
    let server = home.start(&["serve", "--listen", "127.0.0.1:0", "--store", &url]).listening();
    home.run(&["executors", "add", "here", NOWHERE, "--no-check"]).ok();
    let listed = "select 1 / count(*) from executors where name = 'here'";
    schema.execute(listed).await.unwrap();
    assert!(!home.state().join("jurat.db").exists());
    // Another named store is used as named.
    let ran = home.run(&["executors", "list", "--store", "jurat.db"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("keeps its data in `postgresql`"), "{}", ran.err);
    home.run(&["executors", "list", "--store", &url]).ok();

    // PostgreSQL has tools of its own for its backups.
    for args in [&["backup", "monday"][..], &["backup", "monday", "--store", &url]] {
        let ran = home.run(args);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("use pg_dump as docs/guide/backup.md shows"), "{}", ran.err);
    }
    let ran = home.run(&["restore", "monday", "--store", &url]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("use pg_restore"), "{}", ran.err);

    // A crashed server is not asked, and its leftovers are ignored.
    server.kill();
    assert!(home.state().join("server.json").exists());
    let ran = home.run(&["executors", "list", "--store", &url, "--json"]).ok();
    assert_eq!(ran.json()["items"][0]["name"], "here");
    schema.drop().await;
}

#[tokio::test]
async fn a_role_without_rights_is_told_which_role_is_needed() {
    let schema = TestSchema::new().await;
    let role = format!("{}_app", schema.name);
    let home = Home::new();
    let made = format!("drop role if exists {role}; create role {role} login");
    schema.execute(&made).await.unwrap();
    let url = schema.url_of(&role);
    for grant in ["select 1".to_owned(), format!("grant usage on schema {} to {role}", schema.name)]
    {
        schema.execute(&grant).await.unwrap();
        let ran = home.run(&["serve", "--listen", "127.0.0.1:0", "--store", &url]);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("start `jurat serve` with `--migrate-url`"), "{}", ran.err);
    }
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &url, "--migrate-url"];
    let server = home.start(&[&args[..], &[&schema.url()]].concat()).listening();
    server.kill();
    let dropped = format!("drop owned by {role}; drop role {role}");
    schema.execute(&dropped).await.unwrap();
    schema.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_reveal_its_database_password() {
    crate::log_canary::on_postgres().await;
}

#[tokio::test]
async fn the_doctor_looks_at_the_database_and_its_clock() {
    let schema = TestSchema::served().await;
    let home = Home::new();
    let url = schema.serving_url();
    home.run(&["executors", "add", "down", NOWHERE, "--no-check", "--store", &url]).ok();
    let body = home.run(&["doctor", "--json", "--store", &url]).ok().json();
    let details: Vec<&str> =
        body["checks"].as_array().unwrap().iter().filter_map(|it| it["detail"].as_str()).collect();
    for text in [
        "the database reports no damage",
        "the clock of the database agrees with this machine's clock",
        "0 decisions recomputed, and all match their records",
    ] {
        assert!(details.contains(&text), "{text} is not in {details:?}");
    }
    let orphan = "insert into entries (account_id, round_id, receipt_id, entry, recorded_at) \
                  values ('acct_x', 'rnd_x', 'sha256:00', '{}', 1)";
    schema.execute(orphan).await.unwrap();
    let ran = home.run(&["doctor", "--store", &url]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("round `rnd_x` has a decision entry but has not ended"),
        "{}",
        ran.out
    );
    schema.drop().await;
}
