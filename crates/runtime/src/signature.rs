//! Checks that a known node sent a request, by its message signature (RFC 9421).

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Request, StatusCode, header};
use sha2::{Digest as _, Sha256};

use crate::refusal::RequestRefusal;

/// The components that the signature of an event must cover.
const COVERED: [&str; 5] = ["@method", "@authority", "@path", "content-digest", "x-jurat-event"];
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
    let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)));
    if head.get("content-digest")? != digest {
        return Err("`Content-Digest` does not match the body".to_owned());
    }
    let input = SignatureInput::read(head.get("signature-input")?)?;
    if FRESH_S < now_s.abs_diff(input.created) {
        return Err(format!(
            "it was signed at {}, more than {FRESH_S} seconds from the current time {now_s}",
            input.created
        ));
    }
    if !is_known(&input.key) {
        return Err("the signing node is unknown".to_owned());
    }
    let signature = head.get("signature")?.strip_prefix("sig1=:");
    let signature = signature.and_then(|it| STANDARD.decode(it.strip_suffix(':')?).ok());
    let signature = signature.ok_or("`Signature` cannot be read")?;
    let base = input.base(head)?;
    let NodePublicKey(key) = input.key;
    UnparsedPublicKey::new(&ED25519, key).verify(base.as_bytes(), &signature).map_err(|_| {
        let authority = head.authority().unwrap_or_default();
        let path = &head.path;
        format!("the signature does not match the received request to `{authority}` at `{path}`")
    })?;
    Ok(input.key)
}

/// The parsed `Signature-Input`.
struct SignatureInput<'a> {
    /// The names of the covered components, in order.
    names: Vec<&'a str>,
    /// The parameters as they are signed.
    params: &'a str,
    created: u64,
    key: NodePublicKey,
}

impl<'a> SignatureInput<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let unreadable = || "`Signature-Input` cannot be read".to_owned();
        let params = text.strip_prefix("sig1=").ok_or_else(unreadable)?;
        let parts = params.strip_prefix('(').and_then(|it| it.split_once(')'));
        let (names, rest) = parts.ok_or_else(unreadable)?;
        let names: Vec<&str> = names.split(' ').map(|it| it.trim_matches('"')).collect();
        let covered: BTreeSet<&str> = names.iter().copied().collect();
        if covered != BTreeSet::from(COVERED) || names.len() != COVERED.len() {
            return Err(format!("the signature must cover {}", COVERED.join(", ")));
        }
        let parameter =
            |name: &str| rest.split(';').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        let created = parameter("created").and_then(|it| it.parse().ok());
        let key = parameter("keyid").and_then(|it| it.trim_matches('"').parse().ok());
        let (created, key) = created.zip(key).ok_or_else(unreadable)?;
        Ok(Self { names, params, created, key })
    }

    /// The signed text, if it was signed for this request.
    fn base(&self, head: &SignedHead) -> Result<String, String> {
        let mut base = String::new();
        for name in &self.names {
            let value = match *name {
                "@method" => "POST".to_owned(),
                "@authority" => head.authority()?,
                "@path" => head.path.clone(),
                other => head.get(other)?.to_owned(),
            };
            base.extend(["\"", name, "\": ", &value, "\n"]);
        }
        base.extend(["\"@signature-params\": ", self.params]);
        Ok(base)
    }
}

fn now_s() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a signature is believed for a while only")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
