//! The two transports to the router. Both return the same bytes, because they use the same router.

use std::time::Duration;

use axum::{Router, body::Body};
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use jurat_client::{ReplyBody, Transport};
use jurat_engine::{Engine, RunWorkerSettings};
use jurat_guard::client::{CallError, HttpStream, OutboundClient as HttpClient};
use tower::ServiceExt as _;

use crate::state::StoreLock;

/// Maximum number of run steps that a command works on concurrently.
const CONCURRENT_STEPS: usize = 8;

#[derive(Debug)]
pub(crate) enum ServerTransport {
    Http { client: Box<HttpClient>, url: String },
    InProcess(Box<InProcessServer>),
}

#[derive(Debug)]
pub(crate) struct InProcessServer {
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

/// Why a request or its reply did not get through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("cannot use the server at {url}; is it running? start it with `jurat serve`")]
    Http { url: String, source: CallError },
    #[error("the reply is incomplete")]
    InProcess(#[source] axum::Error),
}

/// The body of a reply, which may still be arriving.
#[derive(Debug)]
pub(crate) enum ArrivingBody {
    Http { streaming: Box<HttpStream>, url: String },
    InProcess(Body),
}

impl ServerTransport {
    /// Whether the server passes its health check within this time.
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

    /// Works on runs in this process; a server does that itself.
    pub(super) fn work_on_agent_runs(&self) {
        if let Self::InProcess(it) = self {
            it.engine.drive_tasks();
            it.engine.deliver_agent_events();
            it.engine.deliver_webhooks();
            it.engine.spawn_run_worker(RunWorkerSettings::of_a_node(CONCURRENT_STEPS));
        }
    }

    pub(super) fn drive_tasks(&self) {
        if let Self::InProcess(it) = self {
            it.engine.drive_tasks();
            it.engine.deliver_agent_events();
            it.engine.deliver_webhooks();
        }
    }

    /// Waits until no round is in progress in this process; a server's rounds need no process here.
    pub(super) async fn rounds_ended(&self) {
        if let Self::InProcess(it) = self {
            it.engine.drain().await;
        }
    }

    /// Ends the rounds in progress in this process as expired.
    pub(super) async fn release_rounds(&self) {
        if let Self::InProcess(it) = self {
            it.engine.stop_rounds();
            it.engine.release().await;
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

impl Transport for ServerTransport {
    type Body = ArrivingBody;
    type Error = TransportError;

    fn address(&self, path: &str) -> String {
        match self {
            Self::Http { url, .. } => format!("{url}{path}"),
            Self::InProcess(_) => path.to_owned(),
        }
    }

    async fn send(
        &self,
        request: http::Request<Bytes>,
        within: Duration,
    ) -> Result<http::Response<ArrivingBody>, TransportError> {
        match self {
            Self::Http { client, url } => {
                let streaming = client.stream(request, within).await;
                let mut streaming = streaming
                    .map_err(|source| TransportError::Http { url: url.clone(), source })?;
                let (status, headers) = (streaming.status, std::mem::take(&mut streaming.headers));
                let streaming = Box::new(streaming);
                let body = ArrivingBody::Http { streaming, url: url.clone() };
                let mut response = http::Response::new(body);
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                Ok(response)
            }
            Self::InProcess(it) => {
                let Ok(response) = it.router.clone().oneshot(request.map(Body::from)).await;
                Ok(response.map(ArrivingBody::InProcess))
            }
        }
    }
}

impl ReplyBody for ArrivingBody {
    type Error = TransportError;

    async fn next(&mut self) -> Result<Option<Bytes>, TransportError> {
        match self {
            Self::Http { streaming, url } => {
                let chunk = streaming.chunk().await;
                chunk.map_err(|source| TransportError::Http { url: url.clone(), source })
            }
            Self::InProcess(body) => loop {
                match body.frame().await {
                    None => return Ok(None),
                    Some(Err(error)) => return Err(TransportError::InProcess(error)),
                    // A frame without data holds trailers, which no handler sends.
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            return Ok(Some(data));
                        }
                    }
                }
            },
        }
    }
}
