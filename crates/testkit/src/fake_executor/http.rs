//! The part of HTTP/1.1 that a fake needs: reads a request by its length, writes a plain answer.

use std::io;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::ReceivedCall;

/// More than any of our clients sends before a body.
const MAX_HEAD: usize = 256 * 1024;

/// A client's connection, with the bytes that arrived early.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    pub(crate) stream: TcpStream,
    buffer: BytesMut,
}

impl ClientConnection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// The next request; `None` if the client closed the connection between requests.
    pub(crate) async fn request(&mut self) -> io::Result<Option<ReceivedCall>> {
        let Some(head) = self.head().await? else { return Ok(None) };
        let (method, path, headers) = parse_head(&head).ok_or_else(bad_request)?;
        if headers.contains_key(header::TRANSFER_ENCODING) {
            return Err(bad_request());
        }
        let raw = self.take(content_length(&headers)?).await?;
        Ok(Some(ReceivedCall { method, path, headers, body: parse_body(&raw), raw }))
    }

    async fn head(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                return Ok(Some(self.buffer.split_to(end + 4).freeze()));
            }
            if MAX_HEAD < self.buffer.len() {
                return Err(bad_request());
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(bad_request()) };
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Bytes> {
        while self.buffer.len() < length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    /// Writes a complete answer with its length.
    pub(crate) async fn reply(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut text = head(status, headers);
        text.push_str("content-length: ");
        text.push_str(&body.len().to_string());
        text.push_str("\r\n\r\n");
        let mut message = text.into_bytes();
        message.extend_from_slice(body);
        self.stream.write_all(&message).await
    }

    pub(crate) async fn reply_json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        self.reply(status, &[JSON], body.to_string().as_bytes()).await
    }

    /// Returns when the client has closed its side.
    pub(crate) async fn closed(&mut self) {
        let mut rest = [0; 1024];
        while let Ok(1..) = self.stream.read(&mut rest).await {}
    }
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// The status line and headers, without the empty line that ends them.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason.unwrap_or("Unknown"));
    for (name, value) in headers {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    }
    text
}

fn parse_head(head: &[u8]) -> Option<(String, String, HeaderMap)> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = str::from_utf8(lines.next()?).ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HeaderMap::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    Some((method, path, headers))
}

fn content_length(headers: &HeaderMap) -> io::Result<usize> {
    let Some(value) = headers.get(header::CONTENT_LENGTH) else { return Ok(0) };
    value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(bad_request)
}

fn parse_body(raw: &[u8]) -> Value {
    if raw.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(raw)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(raw).into_owned()))
}

fn bad_request() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
