//! Checks that a known node sent a request, by its message signature (RFC 9421).

use std::{
    collections::BTreeSet,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode, header};
use jurat_wire::signature::{
    ALWAYS_COVERED, CONTENT_DIGEST, EVENT_ID, SIGNATURE, SIGNATURE_INPUT, SignatureInput,
    content_digest, read_signature,
};

use crate::refusal::RequestRefusal;

/// The maximum clock difference to a node, plus the time that a request may take to arrive.
const FRESH_S: u64 = 300;

/// The public key of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePublicKey([u8; 32]);

impl FromStr for NodePublicKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut key = [0; 32];
        hex::decode_to_slice(text, &mut key)
            .map_err(|_| "must be the public key of a node, 64 hex digits as `jurat node` shows")?;
        Ok(Self(key))
    }
}

/// The signed parts of a request besides its body.
pub(crate) struct SignedHead {
    path: String,
    headers: HeaderMap,
}

impl SignedHead {
    pub(crate) fn of(request: &Request<Body>) -> Self {
        Self { path: request.uri().path().to_owned(), headers: request.headers().clone() }
    }

    /// The value of a header that occurs once.
    fn get(&self, name: &str) -> Result<&str, String> {
        let mut all = self.headers.get_all(name).iter();
        let value = all.next().filter(|_| all.next().is_none());
        let value = value.and_then(|it| it.to_str().ok());
        value.ok_or_else(|| format!("the header `{name}` must appear exactly once"))
    }

    fn authority(&self) -> Result<String, String> {
        self.get(header::HOST.as_str()).map(str::to_ascii_lowercase)
    }

    /// The value of a signed component.
    fn component(&self, name: &str) -> Result<String, String> {
        match name {
            "@authority" => self.authority(),
            "@path" => Ok(self.path.clone()),
            header => self.get(header).map(str::to_owned),
        }
    }
}

/// The signer of a request. If nodes are configured, requests that none of them signed recently are
/// refused. If none are, any key may sign, and an unsigned request has no signer.
pub(crate) fn signer(
    nodes: &[NodePublicKey],
    head: &SignedHead,
    body: &[u8],
) -> Result<Option<NodePublicKey>, RequestRefusal> {
    let is_known = |key: &NodePublicKey| nodes.is_empty() || nodes.contains(key);
    let signer = checked(is_known, head, body, now_s());
    if nodes.is_empty() {
        return Ok(signer.ok());
    }
    signer.map(Some).map_err(|why| {
        tracing::warn!(why, "refused an event");
        let message = format!("only events signed by a known node are accepted: {why}");
        RequestRefusal::new(StatusCode::UNAUTHORIZED, "signature_refused", message)
    })
}

fn checked(
    is_known: impl Fn(&NodePublicKey) -> bool,
    head: &SignedHead,
    body: &[u8],
    now_s: u64,
) -> Result<NodePublicKey, String> {
    if head.get(CONTENT_DIGEST)? != content_digest(body) {
        return Err("`Content-Digest` does not match the body".to_owned());
    }
    let input = SignatureInput::read(head.get(SIGNATURE_INPUT)?);
    let signed = input.and_then(|input| {
        let (created_s, key) = (u64::try_from(input.created_s).ok()?, input.key_id.parse().ok()?);
        Some((input, created_s, key))
    });
    let (input, created_s, key) = signed.ok_or("`Signature-Input` cannot be read")?;
    require_coverage(&input)?;
    if FRESH_S < now_s.abs_diff(created_s) {
        return Err(format!(
            "it was signed at {created_s}, more than {FRESH_S} seconds from the current time {now_s}"
        ));
    }
    if !is_known(&key) {
        return Err("the signing node is unknown".to_owned());
    }
    let signature = read_signature(head.get(SIGNATURE)?).ok_or("`Signature` cannot be read")?;
    let base = input.base(|name| head.component(name))?;
    let NodePublicKey(bytes) = key;
    UnparsedPublicKey::new(&ED25519, bytes).verify(base.as_bytes(), &signature).map_err(|_| {
        let authority = head.authority().unwrap_or_default();
        let path = &head.path;
        format!("the signature does not match the received request to `{authority}` at `{path}`")
    })?;
    Ok(key)
}

/// The signature of an event must cover its id besides what every signature covers, and no more.
fn require_coverage(input: &SignatureInput) -> Result<(), String> {
    let required: Vec<&str> = ALWAYS_COVERED.into_iter().chain([EVENT_ID]).collect();
    let covered: BTreeSet<&str> = input.components.iter().map(String::as_str).collect();
    let is_covered =
        input.components.len() == required.len() && covered == required.iter().copied().collect();
    if is_covered {
        return Ok(());
    }
    Err(format!("the signature must cover {}", required.join(", ")))
}

fn now_s() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a signature is believed for a while only")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
