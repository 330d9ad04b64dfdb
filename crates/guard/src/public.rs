//! Fetches addresses that callers and executors name: over HTTPS, and from public addresses only.

mod address;
mod connector;
mod document;
mod image;
mod post;

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use url::{Host, Url};

use self::{address::AddressFilter, connector::Connector};
pub use self::{
    address::{Range, is_public},
    connector::{ResolveFuture, Resolver, SystemResolver},
    document::{DOCUMENT_BYTES, EvidenceFetch},
    image::FetchedImage,
    post::{POST_EXCERPT_BYTES, PostError, PostReply},
};
use crate::client::{CallError, ClientLimits, OutboundClient};

/// The maximum size of an image.
pub const IMAGE_BYTES: usize = 5 * 1024 * 1024;
/// The maximum time for one fetch, however much time its round has.
const LONGEST: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
const URL_CHARS: usize = 2_048;

const ACCEPT: HeaderValue =
    HeaderValue::from_static("image/png, image/jpeg, image/gif, image/webp");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Fetches addresses that callers name.
#[derive(Debug, Clone)]
pub struct PublicClient {
    client: OutboundClient<Connector>,
    permitted: Arc<AddressFilter>,
}

/// Why an address is refused before anything is fetched. Completes a sentence about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlRefusal {
    #[error("must be a URL such as `https://example.com/picture.png`")]
    NotUrl,
    #[error("must begin with `https://`")]
    Scheme,
    #[error("must not contain a user name or password")]
    Credentials,
    #[error("must name a public host")]
    NotPublic,
    #[error("must have at most {URL_CHARS} characters")]
    TooLong,
}

/// Why there is no image. The caller does not learn whether an address was refused, silent or
/// empty: otherwise the error would reveal what exists inside our network.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the image could not be fetched from its address")]
    Unavailable {
        /// Only for the operator's log.
        detail: String,
    },
    #[error("the image has more than 5 MiB")]
    TooLarge,
    #[error("the content is not a PNG, JPEG, GIF or WebP image, or has another declared type")]
    NotAnImage,
}

impl FetchError {
    /// The details for the operator.
    pub fn detail(&self) -> String {
        match self {
            Self::Unavailable { detail } => detail.clone(),
            Self::TooLarge | Self::NotAnImage => self.to_string(),
        }
    }
}

impl PublicClient {
    /// Allows the ranges besides public addresses, even without TLS.
    pub fn new(allowed: &[Range]) -> Result<Self, CallError> {
        Self::with_resolver(allowed, Arc::new(SystemResolver))
    }

    /// Like [`PublicClient::new`], with another resolver.
    pub fn with_resolver(
        allowed: &[Range],
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, CallError> {
        let permitted = Arc::new(AddressFilter::new(allowed));
        let connector = Connector::new(resolver, Arc::clone(&permitted), CONNECT);
        let limits = ClientLimits { connect: CONNECT, body_bytes: IMAGE_BYTES };
        Ok(Self { client: OutboundClient::with_connector(connector, limits)?, permitted })
    }

    /// Checks the form of an address.
    pub fn check(&self, text: &str) -> Result<Url, UrlRefusal> {
        check(text, &self.permitted)
    }

    /// Fetches an image within `timeout`. Dropping the future cancels the fetch.
    pub async fn image(&self, text: &str, timeout: Duration) -> Result<FetchedImage, FetchError> {
        let unavailable = |detail: String| FetchError::Unavailable { detail };
        let url = self.check(text).map_err(|refused| unavailable(refused.to_string()))?;
        let request = plain_get(&url, ACCEPT).map_err(|error| unavailable(error.to_string()))?;
        let reply = self.client.send(request, timeout.min(LONGEST)).await;
        let reply = reply.map_err(|error| match error {
            CallError::TooLarge { .. } => FetchError::TooLarge,
            CallError::Timeout
            | CallError::Unreachable(_)
            | CallError::Disconnected(_)
            | CallError::Encoded { .. }
            | CallError::Redirect { .. }
            | CallError::Tls(_) => unavailable(chain(&error)),
        })?;
        if !reply.status.is_success() {
            return Err(unavailable(format!("the answer was {}", reply.status)));
        }
        let declared = reply.headers.get(header::CONTENT_TYPE);
        let declared = declared.and_then(|value| value.to_str().ok()).unwrap_or_default();
        image::recognised(declared, reply.body).ok_or(FetchError::NotAnImage)
    }
}

/// A request for an address, without compression.
fn plain_get(url: &Url, accept: HeaderValue) -> Result<Request<Bytes>, http::Error> {
    Request::get(url.as_str())
        .header(header::ACCEPT, accept)
        .header(header::ACCEPT_ENCODING, IDENTITY)
        .body(Bytes::new())
}

/// Checks the form of an address if only public ones are allowed.
pub fn check_media_url(text: &str) -> Result<Url, UrlRefusal> {
    check(text, &AddressFilter::default())
}

fn check(text: &str, permitted: &AddressFilter) -> Result<Url, UrlRefusal> {
    if URL_CHARS < text.chars().count() {
        return Err(UrlRefusal::TooLong);
    }
    // The parser would remove these characters, and a log would show another address than the one
    // written.
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(UrlRefusal::NotUrl);
    }
    let url = Url::parse(text).map_err(|_| UrlRefusal::NotUrl)?;
    let is_plain = url.scheme() == "http";
    if url.scheme() != "https" && !(is_plain && permitted.has_ranges()) {
        return Err(UrlRefusal::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlRefusal::Credentials);
    }
    // The parser has normalised any spelling of a numeric address.
    let address = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(name)) if !name.is_empty() => return Ok(url),
        Some(Host::Domain(_)) | None => return Err(UrlRefusal::NotUrl),
    };
    if permitted.allows(address, is_plain) { Ok(url) } else { Err(UrlRefusal::NotPublic) }
}

/// An error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl FetchedImage {
    /// The bytes of the image.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}
