//! `jurat webhooks`, against a real server and a receiver on this machine.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use serde_json::Value;

use crate::home::{Home, Process};

/// Answers every request with 200, until the process ends.
fn receiver() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // One read has the head; the answer does not depend on the body.
            let _read = stream.read(&mut [0; 8_192]);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
            let _written = stream.write_all(answer);
        }
    });
    url
}

fn delivered(home: &Home, id: &str) -> Value {
    for _ in 0..500 {
        let found = home.run(&["webhooks", "deliveries", id, "--json"]).ok().json();
        if found["state"] == "delivered" {
            return found;
        }
    }
    panic!("it is not delivered");
}

#[test]
fn a_webhook_is_added_tested_replayed_rotated_and_removed() {
    let home = Home::new();
    let refused = home.run(&["webhooks", "add", "https://10.0.0.1/hook"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("must name a public host"), "{}", refused.err);
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("JURAT_LIMITS_LAG_MS", "0").env("JURAT_WEBHOOKS_ALLOW", "127.0.0.0/8");
    let _server = Process::new(command).listening();
    let added = home.run(&["webhooks", "add", &receiver(), "--event", "task.failed", "--json"]);
    let added = added.ok().json();
    let id = added["id"].as_str().unwrap().to_owned();
    assert!(added["secret"].as_str().unwrap().starts_with("whsec_"), "{added}");
    let sent = home.run(&["webhooks", "test", &id, "--json"]).ok().json();
    let delivery = sent["id"].as_str().unwrap();
    assert_eq!(delivered(&home, delivery)["reply"], "ok");
    let text = home.run(&["webhooks", "deliveries", &id]).ok().out;
    assert!(text.contains("webhook.test") && text.contains("delivered"), "{text}");
    home.run(&["webhooks", "replay", delivery]).ok();
    let rotated = home.run(&["webhooks", "rotate", &id]).ok().out;
    assert!(rotated.contains("whsec_") && rotated.contains("previous secret until"), "{rotated}");
    let disabled = home.run(&["webhooks", "disable", &id]).ok().out;
    assert!(disabled.contains("its owner disabled it"), "{disabled}");
    home.run(&["webhooks", "enable", &id]).ok();
    let listed = home.run(&["webhooks", "list"]).ok().out;
    assert!(listed.contains("enabled") && listed.contains("task.failed"), "{listed}");
    let shown = home.run(&["webhooks", "show", &id]).ok().out;
    assert!(!shown.contains("whsec_"), "{shown}");
    home.run(&["webhooks", "remove", &id]).ok();
    let gone = home.run(&["webhooks", "show", &id]);
    assert_ne!(gone.code, 0);
    assert!(gone.err.contains("there is no webhook"), "{}", gone.err);
}
