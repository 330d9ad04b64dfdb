//! Fetches referenced documents and compares them with their declared size and digest.

use std::{error::Error, io, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jurat_core::{
    canonical::sha256_hex,
    round::{candidate::ArtifactRef, evidence::EvidenceStatus},
};

use super::{CallError, LONGEST, PublicClient, UrlRefusal, chain, plain_get};

/// The maximum size of a document.
pub const DOCUMENT_BYTES: usize = 5 * 1024 * 1024;

const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// The result of fetching a reference, with the document if it matches.
#[derive(Debug, Clone)]
pub struct EvidenceFetch {
    pub found: EvidenceStatus,
    /// The content, if it matches the declaration.
    pub bytes: Option<Bytes>,
    /// Only for the operator's log.
    pub detail: String,
}

impl EvidenceFetch {
    fn new(found: EvidenceStatus, detail: impl Into<String>) -> Self {
        Self { found, bytes: None, detail: detail.into() }
    }
}

impl PublicClient {
    /// Fetches a reference within `timeout`, and compares it with its size and digest. Nothing is
    /// fetched if it is clear in advance that it cannot be compared.
    pub async fn look_at(&self, reference: &ArtifactRef, timeout: Duration) -> EvidenceFetch {
        let Some(digest) = sha256_of(&reference.digest) else {
            return EvidenceFetch::new(
                EvidenceStatus::Mismatch,
                "its digest is not a SHA-256 digest",
            );
        };
        let size = usize::try_from(reference.size_bytes).unwrap_or(usize::MAX);
        if DOCUMENT_BYTES < size {
            let detail = format!("it is declared to have more than {DOCUMENT_BYTES} bytes");
            return EvidenceFetch::new(EvidenceStatus::Unreachable, detail);
        }
        match self.document(&reference.uri, size, timeout).await {
            Err(looked) => looked,
            Ok(bytes) if bytes.len() == size && sha256_hex(&bytes) == digest => EvidenceFetch {
                found: EvidenceStatus::Seen,
                bytes: Some(bytes),
                detail: String::new(),
            },
            Ok(bytes) => EvidenceFetch::new(
                EvidenceStatus::Mismatch,
                format!("it has {} bytes", bytes.len()),
            ),
        }
    }

    /// Fetches a document of this declared size. A larger one is not read to its end.
    async fn document(
        &self,
        text: &str,
        size: usize,
        timeout: Duration,
    ) -> Result<Bytes, EvidenceFetch> {
        let url = self.check(text).map_err(|refused| url_refused(refused, text))?;
        let request = plain_get(&url, ANYTHING)
            .map_err(|error| EvidenceFetch::new(EvidenceStatus::Unreachable, error.to_string()))?;
        let stream = self.client.stream(request, timeout.min(LONGEST)).await;
        let mut stream = stream.map_err(|error| failed(&error))?;
        if !stream.status.is_success() {
            return Err(answered(stream.status));
        }
        if declared(&stream.headers).is_some_and(|declared| declared != size) {
            return Err(EvidenceFetch::new(
                EvidenceStatus::Mismatch,
                "its length differs from the declared length",
            ));
        }
        let mut whole = BytesMut::new();
        while let Some(data) = stream.chunk().await.map_err(|error| failed(&error))? {
            if size < whole.len() + data.len() {
                return Err(EvidenceFetch::new(
                    EvidenceStatus::Mismatch,
                    "it has more bytes than declared",
                ));
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    }
}

/// The digest in hex, if it is a SHA-256.
fn sha256_of(text: &str) -> Option<String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    (hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(hex)
}

fn declared(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The result for an address that is refused before anything is sent.
fn url_refused(refused: UrlRefusal, text: &str) -> EvidenceFetch {
    let is_denied = match refused {
        UrlRefusal::NotPublic | UrlRefusal::Credentials => true,
        // It could be reached, but not safely.
        UrlRefusal::Scheme => text.to_ascii_lowercase().starts_with("http:"),
        UrlRefusal::NotUrl | UrlRefusal::TooLong => false,
    };
    let found = if is_denied { EvidenceStatus::Denied } else { EvidenceStatus::Unreachable };
    EvidenceFetch::new(found, refused.to_string())
}

fn answered(status: StatusCode) -> EvidenceFetch {
    let found = match status {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::PROXY_AUTHENTICATION_REQUIRED
        | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => EvidenceStatus::Denied,
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => EvidenceStatus::Timeout,
        _ => EvidenceStatus::Unreachable,
    };
    EvidenceFetch::new(found, format!("the answer was {status}"))
}

fn failed(error: &CallError) -> EvidenceFetch {
    let found = match error {
        CallError::Timeout => EvidenceStatus::Timeout,
        CallError::Unreachable(cause) => match io_cause(cause) {
            Some(io::ErrorKind::TimedOut) => EvidenceStatus::Timeout,
            Some(_) | None => EvidenceStatus::Unreachable,
        },
        CallError::Disconnected(_)
        | CallError::TooLarge { .. }
        | CallError::Encoded { .. }
        | CallError::Redirect { .. }
        | CallError::Tls(_) => EvidenceStatus::Unreachable,
    };
    EvidenceFetch::new(found, chain(error))
}

/// The I/O error behind an error, if there is one.
fn io_cause(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut cause = Some(error);
    let mut kind = None;
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            kind = Some(found.kind());
        }
        cause = error.source();
    }
    kind
}
