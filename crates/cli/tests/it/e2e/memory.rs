//! The memory of the real server when an executor's answer never ends.

use std::{fs, sync::Arc};

use jurat_testkit::fake_executor::{FakeExecutor, gated, huge, says_valid};
use serde_json::json;

use crate::{home::Home, http::Http};

const STREAMS: usize = 100;
const MOST_KIB: u64 = 48 * 1024;

fn memory_kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_endless_answers_take_less_than_48_mib() {
    let home = Home::new();
    let server = home.serve();
    let fake = FakeExecutor::start(says_valid()).await;
    home.run(&["executors", "add", "evil", &fake.url()]).ok();
    let http = Arc::new(Http::new(&server.url, &home.state()));
    let body = json!({ "objective": "x", "execution": { "timeout_ms": 20_000 } });
    let ask = |count: usize| {
        let asking: Vec<_> = (0..count)
            .map(|_| {
                let (http, body) = (Arc::clone(&http), body.clone());
                std::thread::spawn(move || http.post("/api/v3/delegate", &body).1)
            })
            .collect();
        move || asking.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
    };
    // As much load as later, so that only the answers make the difference.
    let warm = ask(STREAMS);
    assert!(warm().iter().all(|reply| reply["status"] == "OK"));

    // All requests have arrived before the first is answered, so a hundred streams start together.
    fake.set(gated(huge(10_000_000_000)));
    let pid = server.child.id();
    let before = memory_kib(pid, "VmRSS:");
    let replies = ask(STREAMS);
    fake.wait_for_calls(2 * STREAMS).await;
    fake.release();
    for reply in replies() {
        assert_eq!(reply["replicas"][0]["error"]["code"], "too_large", "{reply}");
    }
    let grown = memory_kib(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < MOST_KIB, "grew by {grown} KiB");
}
