//! Whether a request comes from a node that is known, by its message signature (RFC 9421).

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

/// What a signature of an event must cover.
const COVERED: [&str; 5] = ["@method", "@authority", "@path", "content-digest", "x-jurat-event"];
/// How far the clock of a node may be from ours, and how long a request may take to come.
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

/// What a signature covers of a request besides its body.
pub(crate) struct SignedHead {
    path: String,
    headers: HeaderMap,
}

impl SignedHead {
    pub(crate) fn of(request: &Request<Body>) -> Self {
        Self { path: request.uri().path().to_owned(), headers: request.headers().clone() }
    }

    /// The value of a header that stands once.
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

/// Who signed a request. Where nodes are listed, what none of them signed is refused, and so is
/// what was signed too long ago. Where none are, anybody may sign, and what is unsigned has no
/// signer.
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

/// What a signature is about.
struct SignatureInput<'a> {
    /// The names of what is covered, in order.
    names: Vec<&'a str>,
    /// All of it, as it is signed.
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

    /// The text that was signed, if it was signed for this request.
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
