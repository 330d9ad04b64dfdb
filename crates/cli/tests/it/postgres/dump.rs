//! Runs the commands of the guide for a backup of PostgreSQL, exactly as written.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use jurat_testkit::postgres::TestSchema;

use crate::home::Home;

/// The lines of the guide with this prefix.
fn documented(program: &str) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/backup.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let found = text.lines().find(|line| line.starts_with(&format!("{program} ")));
    found.unwrap_or_else(|| panic!("the guide does not show `{program}`")).to_owned()
}

/// The folder with the programs of the newest PostgreSQL, as Debian has it; elsewhere the path.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let folders = versions.map(|version| version.unwrap().path().join("bin"));
    let newest = folders.filter(|folder| folder.join("pg_dump").exists()).max();
    newest.unwrap_or_default()
}

fn run(home: &Home, line: &str, name: &str, url: &str) {
    let path = format!("{}:/usr/bin:/bin", programs().display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).current_dir(home.path()).env("PATH", path).env(name, url);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_documented_dump_restores_elsewhere() {
    let schema = TestSchema::new().await;
    let [old, new] = ["old", "new"].map(|word| format!("{}_{word}", schema.name));
    for database in [&old, &new] {
        schema.execute(&format!("create database {database}")).await.unwrap();
    }
    let home = Home::new();
    let url = |database: &str| schema.url_of_database(database);
    let served = schema.serve_database(&old).await;
    let executor = home.start(&["runtime", "--listen", "127.0.0.1:0"]).listening();
    home.run(&["executors", "add", "echo", &executor.url, "--store", &served]).ok();
    let ask = ["validate", "--claim", "2 + 2 = 4", "--json", "--store"];
    let asked = home.run(&[&ask[..], &[&served]].concat()).ok().json();

    run(&home, &documented("pg_dump"), "OWNER_URL", &url(&old));
    run(&home, &documented("pg_restore"), "NEW_URL", &url(&new));
    let served = schema.serve_database(&new).await;
    let round = asked["round_id"].as_str().unwrap();
    let shown = home.run(&["rounds", "show", round, "--json", "--store", &served]).ok().json();
    assert_eq!(shown["receipt_id"], asked["receipt_id"]);
    // It is served like any other.
    home.run(&[&ask[..], &[&served]].concat()).ok();
    for database in [&old, &new] {
        schema.execute(&format!("drop database {database} with (force)")).await.unwrap();
    }
    schema.drop().await;
}
