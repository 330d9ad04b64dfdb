//! A backup taken while rounds run, and restored elsewhere.

use std::{
    fs,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{home::Home, http::Http};

const CALLERS: usize = 4;

/// The reply to a caller: the round and its receipt.
type Told = (String, String);

/// Starts rounds until it is told to stop, and records each reply.
fn keep_asking(http: &Http, stop: &AtomicBool, told: &Mutex<Vec<Told>>, count: &mpsc::Sender<()>) {
    let body = json!({
        "claim": "12 * 12 = 144",
        "consensus": { "replicas": 3, "session_pool": ["a", "b", "c"] },
    });
    while !stop.load(Ordering::Relaxed) {
        let (status, reply) = http.post("/api/v3/validate", &body);
        assert_eq!(status, 200, "{reply}");
        let text = |name: &str| reply[name].as_str().unwrap().to_owned();
        told.lock().push((text("round_id"), text("receipt_id")));
        count.send(()).ok();
    }
}

#[test]
fn a_backup_under_load_has_every_round_that_was_answered_before() {
    let home = Home::new();
    let server = home.serve();
    let _executors = ["a", "b", "c"].map(|name| home.register(name, "honest"));
    let _sleeper = home.register("sleeper", "hang");
    let asking = home.start(&["validate", "--claim", "1 = 1", "--session", "sleeper"]);
    let line = asking.wait_for(" in round ");
    let under_way = line.split("in round ").nth(1).unwrap().to_owned();

    let http = Http::new(&server.url, &home.state());
    let (stop, told) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let monday = home.path().join("monday");
    let (before, manifest) = thread::scope(|scope| {
        let (count, answers) = mpsc::channel();
        for _ in 0..CALLERS {
            let (http, stop, told, count) = (&http, &stop, &told, count.clone());
            scope.spawn(move || keep_asking(http, stop, told, &count));
        }
        let wait = |rounds: usize| (0..rounds).for_each(|_| answers.recv().unwrap());
        wait(40);
        let before = told.lock().clone();
        let ran = home.run(&["backup", monday.to_str().unwrap(), "--json"]);
        // The server continued meanwhile, and still does.
        wait(told.lock().len() - before.len());
        wait(CALLERS);
        stop.store(true, Ordering::Relaxed);
        (before, ran.ok().json()["manifest"].clone())
    });
    assert!(before.len() as u64 <= manifest["entries"].as_u64().unwrap());
    assert!(0 < manifest["open_rounds"].as_u64().unwrap());
    home.run(&["backup", "verify", monday.to_str().unwrap()]).ok();
    // Neither where a server runs, nor where a store exists.
    let ran = home.run(&["restore", monday.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("in use by the server with pid"), "{}", ran.err);

    let there = Home::new();
    let ran = there.run(&["restore", monday.to_str().unwrap()]).ok();
    assert!(ran.err.contains("whose Idempotency-Key was first used after"), "{}", ran.err);
    let again = there.run(&["restore", monday.to_str().unwrap()]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("jurat.db` already exists"), "{}", again.err);
    let server = there.serve();
    let http = Http::new(&server.url, &there.state());
    for (round, receipt) in &before {
        let (status, shown) = http.get(&format!("/v1/rounds/{round}"));
        assert_eq!((status, &shown["state"]), (200, &json!("closed")), "{shown}");
        assert_eq!(shown["receipt_id"], json!(receipt));
    }
    let (_, shown) = http.get(&format!("/v1/rounds/{under_way}"));
    assert_eq!(shown["state"], "expired");
    let (_, open) = http.get("/v1/rounds?limit=200");
    let is_open = |item: &&Value| item["state"] == "open";
    assert_eq!(open["items"].as_array().unwrap().iter().filter(is_open).count(), 0);
    // For its executors the node is the same one.
    let key = |home: &Home| fs::read_to_string(home.state().join("node.key")).unwrap();
    assert_eq!(key(&home), key(&there));
}

#[test]
fn a_backup_needs_no_server() {
    let home = Home::new();
    let monday = home.path().join("monday");
    let monday = monday.to_str().unwrap();
    let ran = home.run(&["backup", monday]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("contains no store"), "{}", ran.err);
    home.run(&["executors", "add", "here", "http://127.0.0.1:1", "--no-check"]).ok();
    let ran = home.run(&["backup", monday]).ok();
    assert!(ran.out.contains("rounds"), "{}", ran.out);
    assert!(ran.err.contains("protect it as you protect them"), "{}", ran.err);
    assert_eq!(home.run(&["backup", monday]).code, 1);
    let ran = home.run(&["backup", "other", "--server", "http://127.0.0.1:1"]);
    assert_eq!(ran.code, 2);

    // A flipped byte is found before anything is restored.
    let database = home.path().join("monday/jurat.db");
    let mut bytes = fs::read(&database).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&database, bytes).unwrap();
    let there = Home::new();
    let ran = there.run(&["restore", monday]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("`jurat.db` of the backup is damaged"), "{}", ran.err);
    assert_eq!(fs::read_dir(there.state()).unwrap().count(), 0);
}
