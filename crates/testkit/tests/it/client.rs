//! A raw client: it sends a request and returns the received bytes.

use jurat_testkit::fake_executor::{Behaviour, FakeExecutor};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const WORK: [&str; 2] = ["/execute", "/verify"];

pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn connect(fake: &FakeExecutor) -> Self {
        let address = fake.url().trim_start_matches("http://").to_owned();
        Self(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) async fn get(&mut self, path: &str) {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: fake\r\n\r\n")).await;
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: fake\r\ncontent-type: application/json\r\n\
             X-Jurat-Round: rnd_1\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// At least `n` received bytes; fewer only if the connection ends first.
    pub(crate) async fn read(&mut self, n: usize) -> String {
        let mut got = Vec::new();
        while got.len() < n && self.0.read_buf(&mut got).await.unwrap() != 0 {}
        String::from_utf8_lossy(&got).into_owned()
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> String {
        self.read(usize::MAX).await
    }

    /// One answer with a declared length, as its head and its body.
    pub(crate) async fn reply(&mut self) -> (String, Vec<u8>) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).await.unwrap();
        (head, body)
    }

    pub(crate) async fn reply_json(&mut self) -> (u16, Value) {
        let (head, body) = self.reply().await;
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
        (status(&head), serde_json::from_slice(&body).unwrap())
    }
}

/// Posts to a new fake and returns its JSON answer.
pub(crate) async fn ask(behaviour: Behaviour, path: &str) -> (u16, Value) {
    let fake = FakeExecutor::start(behaviour).await;
    let mut client = Client::connect(&fake).await;
    client.post(path, &verify_request()).await;
    client.reply_json().await
}

/// Posts to a new fake; returns both for what happens next.
pub(crate) async fn posted(behaviour: Behaviour, path: &str) -> (FakeExecutor, Client) {
    let fake = FakeExecutor::start(behaviour).await;
    let mut client = Client::connect(&fake).await;
    client.post(path, &verify_request()).await;
    (fake, client)
}

pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

pub(crate) fn verify_request() -> Value {
    json!({
        "candidate": {
            "candidate_id": "cand-1",
            "execution_id": "exec-1",
            "output": { "answer": "yes" },
            "evidence_inline": [],
            "evidence_refs": [],
        },
        "output_schema": {},
        "policy": {
            "policy_id": "vp.schema_only.v1",
            "policy_version": "1",
            "policy_hash": "sha256:abc",
            "policy_params": {},
        },
    })
}
