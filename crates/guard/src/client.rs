//! The one HTTP client: limited in time and size, without redirects, proxies or decompression.

mod permits;

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client as Pool, Error as PoolError,
        connect::{Connect, HttpConnector},
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls_platform_verifier::BuilderVerifierExt as _;

use self::permits::ReadPermits;

const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("jurat/", env!("CARGO_PKG_VERSION")));

/// The read buffer of a connection, which also limits the headers of a reply.
const BUFFER_BYTES: usize = 64 * 1024;
/// Replies up to this size are read immediately; larger ones wait for a permit.
const SMALL_BYTES: usize = 64 * 1024;
/// A large reply reserves this much up front, so that it is not copied while it grows.
const LARGE_BYTES: usize = 2 * 1024 * 1024;
/// How long the beginning of a reply may take once its status is known.
const EXCERPT_WITHIN: Duration = Duration::from_secs(2);

/// Limits of every call. The deadline comes with the call itself.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// The timeout for connecting.
    pub connect: Duration,
    /// The maximum size of a reply body.
    pub body_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), body_bytes: 2 * 1024 * 1024 }
    }
}

/// Sends requests to addresses that an operator registered; another connector can restrict them.
#[derive(Debug, Clone)]
pub struct OutboundClient<C = HttpConnector> {
    pool: Pool<HttpsConnector<C>, Full<Bytes>>,
    limits: ClientLimits,
    read_permits: ReadPermits,
}

/// How long a server asks us to wait: in seconds, or until a point in time. `now` counts from 1970.
pub fn retry_after(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(now))
}

/// A complete reply within the limits.
#[derive(Debug, Clone)]
pub struct HttpReply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A reply whose body is read as it arrives, within the same limits.
#[derive(Debug)]
pub struct HttpStream {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    ends_at: tokio::time::Instant,
    limit: usize,
    read: usize,
}

/// Why there is no reply. Typed, so that callers never have to parse the text.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("no answer before the deadline")]
    Timeout,
    #[error("no connection")]
    Unreachable(#[source] PoolError),
    #[error("the connection ended before the answer did")]
    Disconnected(#[source] Box<dyn Error + Send + Sync>),
    #[error("the answer is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the answer is encoded as `{encoding}`, which was not requested")]
    Encoded { encoding: String },
    /// The host is for the log: it may be a host of the operator's network. The rest of the address
    /// comes from the server and is not even logged.
    #[error("a redirect was not followed")]
    Redirect { host: String },
    #[error("TLS is not available on this machine")]
    Tls(#[source] rustls::Error),
}

impl OutboundClient {
    /// Builds the client; fails only if the TLS setup of the machine is broken.
    pub fn new(limits: ClientLimits) -> Result<Self, CallError> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(limits.connect));
        connector.set_nodelay(true);
        // The TLS connector around it accepts both schemes.
        connector.enforce_http(false);
        Self::with_connector(connector, limits)
    }
}

impl<C> OutboundClient<C>
where
    HttpsConnector<C>: Connect + Clone + Send + Sync + 'static,
{
    pub(crate) fn with_connector(connector: C, limits: ClientLimits) -> Result<Self, CallError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(rustls::ConfigBuilder::with_platform_verifier)
            .map_err(CallError::Tls)?
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        #[expect(clippy::disallowed_methods, reason = "this is the one place that builds a client")]
        let pool = Pool::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(BUFFER_BYTES)
            .build(connector);
        Ok(Self { pool, limits, read_permits: ReadPermits::default() })
    }

    /// Sends one request and reads the complete reply within `timeout`.
    ///
    /// Dropping the future cancels the call.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
    ) -> Result<HttpReply, CallError> {
        match tokio::time::timeout(timeout, self.exchange(request)).await {
            Ok(reply) => reply,
            Err(_) => Err(CallError::Timeout),
        }
    }

    /// Sends a GET request.
    pub async fn get(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<HttpReply, CallError> {
        self.send(request(Method::GET, uri, headers, Bytes::new()), timeout).await
    }

    /// Posts a JSON document.
    pub async fn post_json(
        &self,
        uri: &Uri,
        mut headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<HttpReply, CallError> {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(request(Method::POST, uri, headers, body), timeout).await
    }

    /// Sends one request and returns the body as it arrives; `timeout` covers all of it.
    pub async fn stream(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
    ) -> Result<HttpStream, CallError> {
        let ends_at = tokio::time::Instant::now() + timeout;
        let opened = tokio::time::timeout_at(ends_at, self.open(request)).await;
        let (head, body) = opened.map_err(|_| CallError::Timeout)??.into_parts();
        let limit = self.limits.body_bytes;
        Ok(HttpStream { status: head.status, headers: head.headers, body, ends_at, limit, read: 0 })
    }

    /// Sends one request and reads the status and the beginning of the body, whatever the rest is.
    /// A body that does not arrive within the time is cut short, too.
    pub(crate) async fn send_for_status(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
        excerpt_bytes: usize,
    ) -> Result<(StatusCode, Bytes), CallError> {
        let begun = tokio::time::timeout(timeout, self.begin(request)).await;
        let (head, mut body) = begun.map_err(|_| CallError::Timeout)??.into_parts();
        let mut excerpt = BytesMut::new();
        let reading = async {
            while excerpt.len() < excerpt_bytes
                && let Ok(Some(data)) = chunk(&mut body).await
            {
                let left = excerpt_bytes.saturating_sub(excerpt.len());
                excerpt.extend_from_slice(data.get(..left).unwrap_or(&data));
            }
        };
        // The status is known, so a body that stays away changes nothing.
        let _late = tokio::time::timeout(EXCERPT_WITHIN.min(timeout), reading).await;
        Ok((head.status, excerpt.freeze()))
    }

    /// Sends a request and returns its reply before the body, whatever its status is.
    async fn begin(&self, request: Request<Bytes>) -> Result<Response<Incoming>, CallError> {
        let mut request = request.map(Full::new);
        request.headers_mut().insert(header::USER_AGENT, USER_AGENT);
        self.pool.request(request).await.map_err(|error| {
            if error.is_connect() {
                CallError::Unreachable(error)
            } else {
                CallError::Disconnected(error.into())
            }
        })
    }

    /// Sends a request and returns its reply before the body.
    async fn open(&self, request: Request<Bytes>) -> Result<Response<Incoming>, CallError> {
        let response = self.begin(request).await?;
        if response.status().is_redirection() {
            return Err(CallError::Redirect { host: host_of(response.headers()) });
        }
        if let Some(encoding) = response.headers().get(header::CONTENT_ENCODING)
            && encoding.as_bytes() != b"identity"
        {
            let encoding = String::from_utf8_lossy(encoding.as_bytes()).chars().take(40).collect();
            return Err(CallError::Encoded { encoding });
        }
        Ok(response)
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<HttpReply, CallError> {
        let authority = request.uri().authority().cloned();
        let (head, mut body) = self.open(request).await?.into_parts();
        let limit = self.limits.body_bytes;
        let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if limit < declared {
            return Err(CallError::TooLarge { limit });
        }
        let mut whole = BytesMut::new();
        let mut permit = None;
        // Counted while it arrives, so that a body without a declared length is limited, too.
        while let Some(data) = chunk(&mut body).await? {
            if limit < whole.len() + data.len() {
                return Err(CallError::TooLarge { limit });
            }
            // Most replies arrive in one piece, which is passed on without a copy.
            if whole.is_empty() && data.len() == declared && body.is_end_stream() {
                return Ok(HttpReply { status: head.status, headers: head.headers, body: data });
            }
            if permit.is_none() && SMALL_BYTES < whole.len() + data.len() {
                permit = Some(self.read_permits.acquire(authority.as_ref()).await);
                whole.reserve(limit.min(LARGE_BYTES).saturating_sub(whole.len()));
            }
            whole.extend_from_slice(&data);
        }
        Ok(HttpReply { status: head.status, headers: head.headers, body: whole.freeze() })
    }
}

impl HttpStream {
    /// The next part of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        let next = tokio::time::timeout_at(self.ends_at, chunk(&mut self.body)).await;
        let data = next.map_err(|_| CallError::Timeout)??;
        self.read += data.as_ref().map_or(0, Bytes::len);
        if self.limit < self.read {
            return Err(CallError::TooLarge { limit: self.limit });
        }
        Ok(data)
    }
}

fn request(method: Method, uri: &Uri, headers: HeaderMap, body: Bytes) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = headers;
    request
}

/// The next data of a body; trailers are skipped.
async fn chunk(body: &mut Incoming) -> Result<Option<Bytes>, CallError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| CallError::Disconnected(error.into()))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
/// The host that a redirect leads to, without the rest of the address.
fn host_of(headers: &HeaderMap) -> String {
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let address = location.and_then(|text| text.parse::<Uri>().ok());
    let host = address.as_ref().and_then(Uri::host).unwrap_or_default();
    host.chars().take(200).collect()
}
