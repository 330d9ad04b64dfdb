//! The real server without free descriptors, and when it is told to stop.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    thread,
};

use jurat_testkit::fake_executor::{FakeExecutor, gated, says_valid};

use crate::home::{Home, Process};

/// Sends a request on a connection of its own and returns everything that comes back.
fn ask(url: &str, method: &str, path: &str, key: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    // Bytes before a reset count.
    drop(stream.read_to_string(&mut answer));
    answer
}

fn key(home: &Home) -> String {
    fs::read_to_string(home.state().join("admin.key")).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn rounds_in_progress_finish_when_the_server_is_told_to_stop() {
    let home = Home::new();
    let server = home.serve();
    let fake = FakeExecutor::start(gated(says_valid())).await;
    home.run(&["executors", "add", "slow", &fake.url()]).ok();
    let (url, key) = (server.url.clone(), key(&home));
    let claim = r#"{"claim":"x"}"#;
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let (url, key) = (url.clone(), key.clone());
            thread::spawn(move || ask(&url, "POST", "/api/v3/validate", &key, claim))
        })
        .collect();
    fake.wait_for_calls(20).await;

    server.terminate();
    server.wait_for("stopping after the rounds in progress");
    let refused = ask(&url, "POST", "/api/v3/validate", &key, claim);
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains(r#""code":"shutting_down""#), "{refused}");
    assert!(refused.contains("\r\nretry-after: "), "{refused}");
    let ready = ask(&url, "GET", "/ready", &key, "");
    assert!(ready.contains(r#""code":"shutting_down""#), "{ready}");
    assert!(ask(&url, "GET", "/health", &key, "").starts_with("HTTP/1.1 200 "));
    assert!(ask(&url, "GET", "/v1/rounds", &key, "").starts_with("HTTP/1.1 200 "));

    fake.release();
    for asked in asking {
        let answer = asked.join().unwrap();
        assert!(answer.contains(r#""verdict":"VALID""#), "{answer}");
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_server_without_free_descriptors_recovers() {
    let home = Home::new();
    let serve = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -n 96 && exec "$0" "$@""#]).arg(serve.get_program());
    limited.args(serve.get_args()).current_dir(home.path()).env_clear();
    limited.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let server = Process::new(limited).listening();
    let address = server.url.strip_prefix("http://").unwrap();
    let many: Vec<_> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    server.wait_for("could not accept a connection");
    drop(many);
    let answer = ask(&server.url, "GET", "/health", "none", "");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
