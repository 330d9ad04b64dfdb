//! The network faults of a fake executor.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::interval;

use super::gzip;
use super::http::{ClientConnection, JSON, head};
use super::serve::AfterRequest;

/// A fault instead of the correct answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutorFault {
    /// Never answers.
    Hangs,
    /// Sends headers, then a byte now and then, for ever.
    Drips,
    /// Closes the connection before any header.
    HangsUp,
    /// Closes the connection before the end of the body.
    HangsUpMidBody,
    /// Sends half of the correct body, then keeps the connection open and silent.
    HangsMidBody,
    /// Sends half of the correct body, then resets the connection.
    ResetsMidBody,
    /// Sends a body longer than its `Content-Length`.
    LiesAboutLength,
    /// Sends the correct answer, followed by another that nobody asked for.
    RepliesTwice,
    /// Sends another answer, complete and readable.
    Replies {
        status: u16,
        content_type: String,
        body: Vec<u8>,
    },
    /// Sends a JSON text of slightly more than this many bytes.
    Huge(u64),
    /// Sends the first half of the correct body.
    TruncatedJson,
    /// Sends the correct body with a duplicate key.
    DuplicateKeys,
    RedirectsTo {
        status: u16,
        url: String,
    },
    /// Sends a small body that unpacks to a large one.
    Gzipped,
    /// Sends headers without end.
    EndlessHeaders,
}

const DRIP: Duration = Duration::from_millis(20);
/// The size of a chunk, and its HTTP form.
const CHUNK: usize = 0x1_0000;
const CHUNKED: (&str, &str) = ("transfer-encoding", "chunked");

impl ExecutorFault {
    /// Commits the fault, given the correct body.
    ///
    /// An I/O error means that the client left first.
    pub(super) async fn commit(
        &self,
        connection: &mut ClientConnection,
        right: &str,
    ) -> io::Result<AfterRequest> {
        match self {
            Self::Hangs => {
                connection.closed().await;
                return Ok(AfterRequest::Abandoned);
            }
            Self::HangsUp => return Ok(AfterRequest::Close),
            Self::HangsUpMidBody => return hang_up_mid_body(&mut connection.stream, right).await,
            Self::HangsMidBody => {
                half(&mut connection.stream, right).await?;
                connection.closed().await;
                return Ok(AfterRequest::Abandoned);
            }
            Self::ResetsMidBody => {
                half(&mut connection.stream, right).await?;
                connection.stream.set_zero_linger()?;
                return Ok(AfterRequest::Close);
            }
            Self::LiesAboutLength => {
                let mut text = head(200, &[JSON]);
                text.push_str(&format_length(right.len() / 2));
                text.push_str(right);
                connection.stream.write_all(text.as_bytes()).await?;
            }
            Self::RepliesTwice => {
                let mut text = head(200, &[JSON]);
                text.push_str(&format_length(right.len()));
                text.push_str(right);
                let another = r#"{"candidate_output":{"answer":"nobody asked"},"passed":false}"#;
                text.push_str(&head(200, &[JSON]));
                text.push_str(&format_length(another.len()));
                text.push_str(another);
                connection.stream.write_all(text.as_bytes()).await?;
            }
            Self::Drips => return drip(&mut connection.stream).await,
            Self::EndlessHeaders => return head_for_ever(&mut connection.stream).await,
            Self::Huge(bytes) => huge(&mut connection.stream, *bytes).await?,
            Self::Replies { status, content_type, body } => {
                let headers = [("content-type", content_type.as_str())];
                connection.reply(*status, &headers, body).await?;
            }
            Self::TruncatedJson => {
                let half = &right.as_bytes()[..right.len() / 2];
                connection.reply(200, &[JSON], half).await?;
            }
            Self::DuplicateKeys => {
                connection.reply(200, &[JSON], with_a_key_twice(right).as_bytes()).await?;
            }
            Self::RedirectsTo { status, url } => {
                connection.reply(*status, &[("location", url.as_str())], b"").await?;
            }
            Self::Gzipped => {
                let headers = [JSON, ("content-encoding", "gzip")];
                connection.reply(200, &headers, &gzip::bomb(right.as_bytes())).await?;
            }
        }
        Ok(AfterRequest::KeepAlive)
    }
}

async fn hang_up_mid_body(stream: &mut TcpStream, right: &str) -> io::Result<AfterRequest> {
    let mut text = head(200, &[JSON]);
    text.push_str(&format_length(right.len() + 1_000));
    text.push_str(right);
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(AfterRequest::Close)
}

/// Announces the correct body and sends the first half of it.
async fn half(stream: &mut TcpStream, right: &str) -> io::Result<()> {
    let mut text = head(200, &[JSON]);
    text.push_str(&format_length(right.len()));
    stream.write_all(text.as_bytes()).await?;
    stream.write_all(&right.as_bytes()[..right.len() / 2]).await?;
    stream.flush().await
}

async fn drip(stream: &mut TcpStream) -> io::Result<AfterRequest> {
    let mut text = head(200, &[JSON, CHUNKED]);
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).await?;
    let mut ticks = interval(DRIP);
    loop {
        ticks.tick().await;
        // White space, so that no parser can refuse it before the end, which never comes.
        stream.write_all(b"1\r\n \r\n").await?;
    }
}

async fn head_for_ever(stream: &mut TcpStream) -> io::Result<AfterRequest> {
    stream.write_all(head(200, &[JSON]).as_bytes()).await?;
    let filler = "a".repeat(1_000);
    for number in 0_u64.. {
        stream.write_all(format!("x-filler-{number}: {filler}\r\n").as_bytes()).await?;
    }
    Ok(AfterRequest::Close)
}

/// Streams one JSON object with a single member of the given size, from one buffer.
async fn huge(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let mut text = head(200, &[JSON, CHUNKED]);
    text.push_str("\r\nb\r\n{\"filler\":\"\r\n");
    stream.write_all(text.as_bytes()).await?;
    let filler = "a".repeat(CHUNK);
    let chunk = format!("{CHUNK:x}\r\n{filler}\r\n");
    for _ in 0..bytes / CHUNK as u64 {
        stream.write_all(chunk.as_bytes()).await?;
    }
    let rest = usize::try_from(bytes % CHUNK as u64).unwrap_or_default();
    if 0 < rest {
        stream.write_all(format!("{rest:x}\r\n{}\r\n", &filler[..rest]).as_bytes()).await?;
    }
    stream.write_all(b"2\r\n\"}\r\n0\r\n\r\n").await
}

/// Inserts a second value for a key of the contract before the correct one.
fn with_a_key_twice(right: &str) -> String {
    let (key, value) = if right.contains("\"candidate_output\"") {
        ("candidate_output", r#"{"answer":"another"}"#)
    } else if right.contains("\"passed\":true") {
        ("passed", "false")
    } else if right.contains("\"passed\"") {
        ("passed", "true")
    } else {
        ("model_id", r#""another""#)
    };
    right.replacen('{', &format!("{{\"{key}\":{value},"), 1)
}

fn format_length(length: usize) -> String {
    format!("content-length: {length}\r\n\r\n")
}
