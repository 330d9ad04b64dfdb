//! The example that checks facts by their sources, as three executors of a server.

use std::process::Stdio;

use jurat_testkit::app::TestApp;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// Starts a copy of the example on a free port, and registers it.
async fn started(app: &TestApp, name: &str) -> Child {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/factchecker.py");
    let mut command = Command::new("python3");
    // `-B`: no files beside the example, which it imports from its folder.
    command.args(["-B", path, "0", name]).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = lines.next_line().await.unwrap().unwrap();
    app.register(name, ready.strip_prefix("listening on ").unwrap()).await;
    process
}

async fn checked(app: &TestApp, claim: &str, sources: Value) -> Value {
    let body = json!({
        "claim": claim, "context": { "sources": sources }, "consensus": { "replicas": 3 },
    });
    let reply = app.admin().post("/api/v3/factcheck", &body).await;
    assert!(reply.status.is_success(), "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn a_claim_is_judged_by_its_sources_and_by_nothing_else() {
    let app = TestApp::new().await;
    let mut processes = Vec::new();
    for name in ["quotes-a", "quotes-b", "quotes-c"] {
        processes.push(started(&app, name).await);
    }
    let tower = json!([
        { "url": "https://example.com/tower", "text": "The Eiffel Tower is 330 metres tall, and it \
          stands in Paris. It was not opened in 1900. Is it made of wood? If it rains, it is closed. \
          The Eiffel Tower is reportedly painted green. Its model is the former symbol of the fair." },
        "The tower cost 7,800,000 francs.",
    ]);
    for (claim, verdict) in [
        ("The Eiffel Tower is 330 metres tall.", "TRUE"),
        ("the EIFFEL tower is 330.0 metres tall", "TRUE"),
        ("It stands in Paris", "TRUE"),
        ("The tower cost 7800000 francs", "TRUE"),
        ("The Eiffel Tower is 300 metres tall.", "FALSE"),
        ("It was opened in 1900", "FALSE"),
        ("The Eiffel Tower is painted green", "UNSURE"),
        ("It is made of wood", "UNSURE"),
        ("It is closed", "UNSURE"),
        ("Its model is the symbol of the fair", "UNSURE"),
        ("The moon is far away", "UNSURE"),
    ] {
        let reply = checked(&app, claim, tower.clone()).await;
        assert_eq!(reply["verdict"], verdict, "{claim}: {reply}");
        assert_eq!(reply["consensus"]["verdicts"], json!([verdict, verdict, verdict]), "{claim}");
    }
    let reply = checked(&app, "The Eiffel Tower is 300 metres tall", tower.clone()).await;
    let quoted = &reply["replicas"][0]["output"]["sources"][0];
    assert_eq!(quoted["source"], "https://example.com/tower");
    assert!(quoted["quote"].as_str().unwrap().starts_with("The Eiffel Tower is 330 metres tall"));

    let nothing = checked(&app, "It stands in Paris", json!([])).await;
    assert_eq!(nothing["verdict"], "UNSURE");
    let both = checked(&app, "It is open", json!(["It is open.", "It is not open."])).await;
    assert_eq!(both["verdict"], "UNSURE");
    assert_eq!(both["replicas"][0]["output"]["reasons"][0], "the sources contradict each other");

    let body = json!({ "claim": "It rains", "mode": "realtime", "consensus": { "replicas": 3 } });
    let realtime = app.admin().post("/api/v3/factcheck", &body).await.json();
    assert_eq!(
        realtime["consensus"]["verdicts"],
        json!(["NEEDS_SPEC", "NEEDS_SPEC", "NEEDS_SPEC"])
    );
}
