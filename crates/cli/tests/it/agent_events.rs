//! `jurat agent-events`, with a real runtime that listens.

use serde_json::Value;

use crate::home::Home;

/// Reads the events until all of them are delivered; each read is a process of its own.
fn taken(home: &Home, count: usize) -> Vec<Value> {
    let mut listed = Value::Null;
    for _ in 0..500 {
        listed = home.run(&["agent-events", "list", "--state", "acked", "--json"]).ok().json();
        let items = listed["items"].as_array().unwrap();
        if items.len() == count {
            return items.clone();
        }
    }
    panic!("{listed}");
}

#[test]
fn a_runtime_receives_events_of_its_task_and_sent_ones() {
    let home = Home::new();
    let _server = home.serve();
    let runtime = home.start(&["runtime", "--listen", "127.0.0.1:0"]).listening();
    let url = runtime.url.as_str();
    home.run(&["executors", "add", "alpha", url, "--agent-events-url", url]).ok();
    home.run(&["task", "run", "--executor", "alpha", "--task-id", "task-1"]).ok();
    // Its lease, the result of its candidate, and the end.
    let events = taken(&home, 3);
    assert!(events.iter().all(|it| it["target_executor"] == "alpha"), "{events:?}");
    let send = ["agent-events", "send", "--executor", "alpha", "--type", "dm_received"];
    let sent = home.run(&[&send[..], &["--payload", "{\"content\": \"hello\"}"]].concat()).ok();
    let id = sent.out.trim().strip_prefix("sent ").unwrap().to_owned();
    taken(&home, 4);
    let shown = home.run(&["agent-events", "show", &id]).ok().out;
    assert!(shown.contains("acked") && shown.contains("hello"), "{shown}");
    let listed = home.run(&["agent-events", "list", "--executor", "alpha"]).ok().out;
    assert!(listed.contains("dm_received") && listed.contains("task_claim_received"), "{listed}");
    let wrong = home.run(&[&send[..], &["--payload", "{"]].concat());
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    let nobody = home.run(&["agent-events", "show", "nobody"]);
    assert!(nobody.err.contains("there is no agent event `nobody`"), "{}", nobody.err);
}
