//! Sends batches to the collector with our HTTP client, and logs failures from time to time.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::StatusCode;
use jurat_guard::client::{CallError, HttpReply, OutboundClient};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use parking_lot::Mutex;
use tokio::{runtime::Handle, time::Instant};

/// Minimum time between two log lines about a failing collector.
const BETWEEN_COMPLAINTS: Duration = Duration::from_mins(1);
const TIMEOUT: Duration = Duration::from_secs(10);

/// The exporters run on threads of their own, so the call is made on the runtime.
#[derive(Clone)]
pub(super) struct OtlpHttpClient {
    client: OutboundClient,
    runtime: Handle,
    failures: Arc<Mutex<ExportFailures>>,
}

#[derive(Debug, Default)]
struct ExportFailures {
    since_told: u64,
    told_at: Option<Instant>,
}

impl OtlpHttpClient {
    pub(super) fn new(client: OutboundClient, runtime: Handle) -> Self {
        Self { client, runtime, failures: Arc::default() }
    }

    fn note(&self, result: &Result<HttpReply, CallError>) {
        let problem = match result {
            Ok(reply) if reply.status.is_success() => return,
            Ok(reply) => format!("it answered {}", reply.status),
            Err(error) => error.to_string(),
        };
        let mut failures = self.failures.lock();
        failures.since_told += 1;
        if failures.told_at.is_none_or(|at| BETWEEN_COMPLAINTS <= at.elapsed()) {
            let batches = failures.since_told;
            tracing::warn!(batches, problem, "the collector does not accept traces and events");
            *failures = ExportFailures { since_told: 0, told_at: Some(Instant::now()) };
        }
    }
}

impl fmt::Debug for OtlpHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client's requests may carry a key of the collector.
        f.debug_struct("OtlpHttpClient").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for OtlpHttpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sending = self.runtime.spawn(async move { client.send(request, TIMEOUT).await });
        let result = sending.await?;
        self.note(&result);
        let reply = result?;
        let mut response = Response::new(reply.body);
        *response.status_mut() = StatusCode::from_u16(reply.status.as_u16())?;
        *response.headers_mut() = reply.headers;
        Ok(response)
    }
}
