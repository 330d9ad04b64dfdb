//! The two ways to the router. Both return the same bytes, because both ask the same router.

use std::time::{Duration, UNIX_EPOCH};

use axum::{Router, body::Body};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use jurat_core::time::Timestamp;
use jurat_engine::{Engine, RunWorkerSettings};
use jurat_guard::client::{HttpStream, OutboundClient as HttpClient};
use tower::ServiceExt as _;

use super::ClientError;
use crate::state::StoreLock;

/// How many steps of runs a command works on at a time.
const CONCURRENT_STEPS: usize = 8;

#[derive(Debug)]
pub(super) enum Transport {
    Http { client: Box<HttpClient>, url: String },
    InProcess(Box<InProcessServer>),
}

#[derive(Debug)]
pub(super) struct InProcessServer {
    engine: Engine,
    router: Router,
    _lock: Option<StoreLock>,
}

impl InProcessServer {
    pub(super) fn new(engine: Engine, lock: Option<StoreLock>) -> Self {
        let router = jurat_server::router(engine.clone());
        Self { engine, router, _lock: lock }
    }
}

/// A reply whose body is still on its way.
#[derive(Debug)]
pub(super) struct StreamingReply {
    pub(super) status: StatusCode,
    pub(super) is_events: bool,
    pub(super) date: Option<Timestamp>,
    /// In how many seconds the request may be sent again.
    pub(super) retry_after: Option<u64>,
    chunks: ReplyChunks,
}

#[derive(Debug)]
enum ReplyChunks {
    Http { streaming: Box<HttpStream>, url: String },
    InProcess(Body),
}

impl Transport {
    pub(super) fn address(&self, path: &str) -> String {
        match self {
            Self::Http { url, .. } => format!("{url}{path}"),
            Self::InProcess(_) => path.to_owned(),
        }
    }

    /// Whether there is a server.
    pub(super) async fn answers(&self, within: Duration) -> bool {
        match self {
            Self::Http { client, url } => {
                let Ok(health) = http::Uri::try_from(format!("{url}/health")) else { return false };
                let reply = client.get(&health, HeaderMap::new(), within).await;
                reply.is_ok_and(|reply| reply.status.is_success())
            }
            Self::InProcess(_) => true,
        }
    }

    pub(super) async fn begin(
        &self,
        request: http::Request<Bytes>,
        within: Duration,
    ) -> Result<StreamingReply, ClientError> {
        match self {
            Self::Http { client, url } => {
                let begun = client.stream(request, within).await;
                let streaming =
                    begun.map_err(|source| ClientError::Call { url: url.clone(), source })?;
                Ok(StreamingReply {
                    status: streaming.status,
                    is_events: is_events(&streaming.headers),
                    date: date(&streaming.headers),
                    retry_after: retry_after(&streaming.headers),
                    chunks: ReplyChunks::Http { streaming: Box::new(streaming), url: url.clone() },
                })
            }
            Self::InProcess(it) => {
                let Ok(response) = it.router.clone().oneshot(request.map(Body::from)).await;
                Ok(StreamingReply {
                    status: response.status(),
                    is_events: is_events(response.headers()),
                    date: None,
                    retry_after: retry_after(response.headers()),
                    chunks: ReplyChunks::InProcess(response.into_body()),
                })
            }
        }
    }

    /// Works on runs in this process; a server does that itself.
    pub(super) fn work_on_agent_runs(&self) {
        if let Self::InProcess(it) = self {
            it.engine.drive_tasks();
            it.engine.deliver_agent_events();
            it.engine.spawn_run_worker(RunWorkerSettings::of_a_node(CONCURRENT_STEPS));
        }
    }

    pub(super) fn drive_tasks(&self) {
        if let Self::InProcess(it) = self {
            it.engine.drive_tasks();
            it.engine.deliver_agent_events();
        }
    }

    pub(super) async fn close(self) {
        match self {
            Self::Http { .. } => {}
            Self::InProcess(it) => {
                it.engine.stop_rounds();
                it.engine.shutdown().await;
            }
        }
    }
}

impl StreamingReply {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        match &mut self.chunks {
            ReplyChunks::Http { streaming, url } => {
                let chunk = streaming.chunk().await;
                chunk.map_err(|source| ClientError::Call { url: url.clone(), source })
            }
            ReplyChunks::InProcess(body) => loop {
                match body.frame().await {
                    None => return Ok(None),
                    Some(Err(error)) => return Err(ClientError::InProcess(error)),
                    // A frame without data holds trailers, which nobody sends.
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            return Ok(Some(data));
                        }
                    }
                }
            },
        }
    }

    pub(super) async fn rest(&mut self) -> Result<Bytes, ClientError> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.next().await? {
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }
}

fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp::from_millis)
}
