//! `jurat templates`, from publishing to unpublishing, in processes of their own.

use std::fs;

use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, verdict};
use serde_json::Value;

use crate::home::{Home, Process, Ran};

const BODY: &str = "---\nname: Report\ndescription: Makes a report.\noutcome: A report.\n---\n# Do\n\nAsk the harbour master, see [the list](list.md).\n";

/// A server with a judge that finds nothing wrong, and an author with a handle and a workflow.
async fn author() -> (Home, Process, FakeProvider) {
    let provider = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let settings = format!(
        "[judges]\ndefault_model = \"p1/m\"\n[providers.p1]\nkind = \"openai\"\nbase_url = \"{}\"\n",
        provider.url()
    );
    fs::write(home.state().join("jurat.toml"), settings).unwrap();
    let server = home.serve();
    home.run(&["me", "claim-handle", "ann"]).ok();
    let folder = home.path().join("report");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("WORKFLOW.md"), BODY).unwrap();
    fs::write(folder.join("list.md"), "one\ntwo\n").unwrap();
    home.run(&["workflows", "publish", "report"]).ok();
    (home, server, provider)
}

fn templates(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["templates"], args].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_published_read_found_and_forked() {
    let (home, _server, _provider) = author().await;
    let published = templates(&home, &["publish", "report", "--release-notes", "first"]).ok();
    assert!(published.out.contains("@ann/report@v1"), "{}", published.out);
    assert!(published.out.contains("clean"), "{}", published.out);
    // Notes are shown in full, and not cut like cells of a table.
    assert!(published.err.contains("Nothing is checked: bind a verifier"), "{}", published.err);
    assert!(!published.err.contains('…'), "{}", published.err);

    let listed = templates(&home, &["list"]).ok().json();
    assert_eq!(listed["items"][0]["slug"], "report", "a pipe gets JSON");
    assert!(templates(&home, &["list", "--table"]).ok().out.contains("@ann/report"));
    let found = templates(&home, &["search", "harbour", "--json"]).ok().json();
    assert_eq!(found["items"][0]["match_reason"], "body: harbour");
    assert!(templates(&home, &["search", "harbour"]).ok().out.contains("body: harbour"));

    let read = templates(&home, &["get", "@ann/report"]).ok();
    assert!(read.out.contains("Ask the harbour master"), "{}", read.out);
    templates(&home, &["get", "@ann/report@v1", "--output", "copy.md"]).ok();
    let copy = fs::read_to_string(home.path().join("copy.md")).unwrap();
    assert!(copy.contains("harbour"), "{copy}");
    let file = templates(&home, &["get-file", "@ann/report", "list.md"]).ok();
    assert_eq!(file.out, "one\ntwo\n");
    for (args, text) in [
        (&["get", "@ann/poem"][..], "there is no template `@ann/poem`"),
        (&["get", "@ann/report@v9"][..], "there is no template `@ann/report@v9`"),
        (&["get-file", "@ann/report", "../x"][..], "there is no file `../x`"),
        (&["fork", "report"][..], "there is no template `report`"),
    ] {
        let missing = templates(&home, args);
        assert_eq!(missing.code, 1, "{}", missing.err);
        assert!(missing.err.contains(text), "{}", missing.err);
    }
    let fork = templates(&home, &["fork", "@ann/report", "--name", "My report"]).ok();
    assert!(fork.out.contains("Forked to my-report (workflow_id="), "{}", fork.out);
    let lineage = templates(&home, &["lineage", "my-report"]).ok();
    assert!(lineage.out.contains("published"), "{}", lineage.out);
    let none = templates(&home, &["lineage", "report"]).ok();
    assert!(none.out.contains("not forked"), "{}", none.out);
    let safe = templates(&home, &["check-safety", "@ann/report"]).ok();
    assert!(safe.out.contains("clean"), "{}", safe.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_unpublished_and_transferred() {
    let (home, _server, _provider) = author().await;
    templates(&home, &["publish", "report"]).ok();
    let own = templates(&home, &["transfer-ownership", "@ann/report", "@ann"]).ok();
    assert!(own.out.contains("@ann/report is already yours"), "{}", own.out);
    let offered = templates(&home, &["transfer-ownership", "@ann/report", "eve@example.com"]).ok();
    assert!(offered.out.contains("Offered @ann/report to eve@example.com"), "{}", offered.out);

    let version = &["@ann/report", "1"];
    let message = ["--message", "use another"];
    templates(&home, &[&["deprecate-version"], &version[..], &message].concat()).ok();
    let warned = templates(&home, &["fork", "@ann/report"]).ok();
    assert!(warned.err.contains("use another"), "{}", warned.err);
    templates(&home, &["archive", "@ann/report", "--reason", "replaced"]).ok();
    let hidden = templates(&home, &["list"]).ok().json();
    assert_eq!(hidden["items"], Value::Array(Vec::new()));
    let all = templates(&home, &["list", "--filter", "mine", "--include-archived"]).ok().json();
    assert_eq!(all["items"][0]["slug"], "report");
    templates(&home, &["unarchive", "@ann/report"]).ok();

    let erase = [&["delete-version"], &version[..], &["--yes"]].concat();
    let live = templates(&home, &erase);
    assert!(live.code == 1 && live.err.contains("unpublish it first"), "{}", live.err);
    let live = templates(&home, &["delete", "@ann/report", "--yes"]);
    assert!(live.code == 1 && live.err.contains("unpublish all versions"), "{}", live.err);
    templates(&home, &[&["unpublish"], &version[..]].concat()).ok();
    templates(&home, &erase).ok();
    templates(&home, &["delete", "@ann/report", "--yes"]).ok();
    assert_eq!(templates(&home, &["get", "@ann/report"]).code, 1);
}
