//! A plain HTTP client, for tests that send more requests than they could start processes.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(25);

pub(crate) struct Http {
    address: String,
    key: String,
}

impl Http {
    /// The server at `url`, with the key of its state folder.
    pub(crate) fn new(url: &str, state: &Path) -> Self {
        let key = std::fs::read_to_string(state.join("admin.key")).unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Self { address, key: key.trim().to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("POST", path, &body.to_string())
    }

    fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.ask(method, path, body).unwrap()
    }

    /// Sends a request to a server that may die before it has answered.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        let reply = self.ask_with(method, path, body, &[])?;
        Ok((reply.status, reply.body))
    }

    /// The same with further headers.
    pub(crate) fn ask_with(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> io::Result<Reply> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (address, key, length) = (&self.address, &self.key, body.len());
        let headers: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let Some((head, body)) = reply.split_once("\r\n\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        Ok(Reply { status, head: head.to_owned(), body })
    }
}

/// A reply with its head.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Reply {
    /// Whether it has a header, in lower case.
    pub(crate) fn has_header(&self, line: &str) -> bool {
        self.head.lines().any(|it| it.eq_ignore_ascii_case(line))
    }
}
