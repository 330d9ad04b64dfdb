//! The one HTTP client: bounded in time and size, without redirects, proxies or decompression.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

/// Limits of every call. The deadline comes with the call itself.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connect: Duration,
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), body_bytes: 2 * 1024 * 1024 }
    }
}

/// Sends requests to addresses that an operator registered.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    limits: Limits,
}

/// A whole reply within the limits.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A reply whose body is read as it arrives, within the same limits.
#[derive(Debug)]
pub struct Streaming {
    pub status: StatusCode,
    pub headers: HeaderMap,
    response: reqwest::Response,
    ends_at: tokio::time::Instant,
    limit: usize,
    read: usize,
}

/// Why there is no reply. Typed, so that nobody has to read the text.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("no answer before the deadline")]
    Timeout,
    #[error("no connection")]
    Unreachable(#[source] reqwest::Error),
    #[error("the connection ended before the answer did")]
    Disconnected(#[source] reqwest::Error),
    #[error("the answer is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the answer is encoded as `{encoding}` although that was not asked for")]
    Encoded { encoding: String },
    #[error("a redirect to `{location}` was not followed")]
    Redirect { location: String },
    #[error("the request could not be made")]
    Request(#[source] reqwest::Error),
}

impl Client {
    /// Builds the client; fails only when the TLS set-up of the machine is broken.
    pub fn new(limits: Limits) -> Result<Self, CallError> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that builds a client")]
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(limits.connect)
            .pool_idle_timeout(Duration::from_secs(30))
            .tcp_nodelay(true)
            .user_agent(concat!("jurat/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(CallError::Request)?;
        Ok(Self { http, limits })
    }

    /// Sends one request and reads the whole reply within `timeout`.
    ///
    /// Dropping the future cancels the call.
    pub async fn send(
        &self,
        request: http::Request<Bytes>,
        timeout: Duration,
    ) -> Result<Reply, CallError> {
        self.within(timeout, reqwest::Request::try_from(request).map_err(CallError::Request)?).await
    }

    pub async fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<Reply, CallError> {
        self.within(timeout, request(Method::GET, url, headers)).await
    }

    /// Posts a JSON document.
    pub async fn post_json(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Reply, CallError> {
        headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        let mut request = request(Method::POST, url, headers);
        *request.body_mut() = Some(body.into());
        self.within(timeout, request).await
    }

    async fn within(
        &self,
        timeout: Duration,
        request: reqwest::Request,
    ) -> Result<Reply, CallError> {
        match tokio::time::timeout(timeout, self.exchange(request)).await {
            Ok(reply) => reply,
            Err(_) => Err(CallError::Timeout),
        }
    }

    /// Sends one request and hands out the body as it arrives; `timeout` bounds all of it.
    pub async fn stream(
        &self,
        request: http::Request<Bytes>,
        timeout: Duration,
    ) -> Result<Streaming, CallError> {
        let ends_at = tokio::time::Instant::now() + timeout;
        let request = reqwest::Request::try_from(request).map_err(CallError::Request)?;
        let opened = tokio::time::timeout_at(ends_at, self.open(request)).await;
        let mut response = opened.map_err(|_| CallError::Timeout)??;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let limit = self.limits.body_bytes;
        Ok(Streaming { status, headers, response, ends_at, limit, read: 0 })
    }

    /// Sends a request and returns its reply with the body still to come.
    async fn open(&self, request: reqwest::Request) -> Result<reqwest::Response, CallError> {
        let response = self.http.execute(request).await.map_err(send_error)?;
        if response.status().is_redirection() {
            let location = response.headers().get(header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok()).unwrap_or_default();
            return Err(CallError::Redirect { location: location.chars().take(200).collect() });
        }
        if let Some(encoding) = response.headers().get(header::CONTENT_ENCODING)
            && encoding.as_bytes() != b"identity"
        {
            let encoding = String::from_utf8_lossy(encoding.as_bytes()).chars().take(40).collect();
            return Err(CallError::Encoded { encoding });
        }
        Ok(response)
    }

    async fn exchange(&self, request: reqwest::Request) -> Result<Reply, CallError> {
        let mut response = self.open(request).await?;
        let status = response.status();
        let limit = self.limits.body_bytes;
        let declared =
            usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
        if limit < declared {
            return Err(CallError::TooLarge { limit });
        }
        let headers = std::mem::take(response.headers_mut());
        // Most replies arrive in one piece, which is then handed on without a copy.
        let Some(first) = response.chunk().await.map_err(CallError::Disconnected)? else {
            return Ok(Reply { status, headers, body: Bytes::new() });
        };
        if limit < first.len() {
            return Err(CallError::TooLarge { limit });
        }
        if first.len() == declared {
            return Ok(Reply { status, headers, body: first });
        }
        let mut body = BytesMut::with_capacity(declared.max(first.len()));
        body.extend_from_slice(&first);
        // Counted while it arrives, so that a body without a declared length is bounded too.
        while let Some(chunk) = response.chunk().await.map_err(CallError::Disconnected)? {
            if limit < body.len() + chunk.len() {
                return Err(CallError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Reply { status, headers, body: body.freeze() })
    }
}

impl Streaming {
    /// The next part of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        let next = tokio::time::timeout_at(self.ends_at, self.response.chunk()).await;
        let chunk = next.map_err(|_| CallError::Timeout)?.map_err(CallError::Disconnected)?;
        self.read += chunk.as_ref().map_or(0, Bytes::len);
        if self.limit < self.read {
            return Err(CallError::TooLarge { limit: self.limit });
        }
        Ok(chunk)
    }
}

fn request(method: Method, url: &Url, headers: HeaderMap) -> reqwest::Request {
    let mut request = reqwest::Request::new(method, url.clone());
    *request.headers_mut() = headers;
    request
}

fn send_error(error: reqwest::Error) -> CallError {
    if error.is_timeout() && !error.is_connect() {
        CallError::Timeout
    } else if error.is_connect() {
        CallError::Unreachable(error)
    } else if error.is_builder() {
        CallError::Request(error)
    } else {
        CallError::Disconnected(error)
    }
}
