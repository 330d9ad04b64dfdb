//! Signs requests to executors with the node's key (HTTP message signatures, RFC 9421).

use std::{fmt, sync::Arc};

use aws_lc_rs::{
    hmac,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderName;
use jurat_core::time::Timestamp;
use sha2::{Digest as _, Sha256};

pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
pub(crate) const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
pub(crate) const SIGNATURE: HeaderName = HeaderName::from_static("signature");

/// The key by which executors recognize this node.
#[derive(Clone)]
pub struct NodeSigningKey {
    key: Arc<Ed25519KeyPair>,
    id: String,
}

impl fmt::Debug for NodeSigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeSigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The parts of a request that its signature covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoveredParts<'a> {
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) content_digest: &'a str,
    /// Headers that the signature covers, by their names in lower case.
    pub(crate) about: &'a [(&'a str, &'a str)],
    pub(crate) created: Timestamp,
}

/// The values of `Signature-Input` and `Signature`.
#[derive(Debug, Clone)]
pub(crate) struct SignatureHeaders {
    pub(crate) input: String,
    pub(crate) signature: String,
}

impl NodeSigningKey {
    /// `None` only if the cryptographic library refuses to work.
    pub fn from_seed(seed: &[u8; 32]) -> Option<Self> {
        let key = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        let id = hex::encode(key.public_key());
        Some(Self { key: Arc::new(key), id })
    }

    /// The public key in hex, which is also the `keyid` of signatures.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A secret for one purpose, derived from the key.
    pub(crate) fn secret(&self, purpose: &str) -> [u8; 32] {
        // Ed25519 signatures are deterministic, and nobody else can compute them.
        Sha256::digest(self.key.sign(purpose.as_bytes())).into()
    }

    /// A digest of these texts, in hex, that only this node can compute.
    pub(crate) fn keyed_digest(&self, purpose: &str, texts: &[&str]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.secret(purpose));
        let mut context = hmac::Context::with_key(&key);
        for text in texts {
            // With its length before it, no text can pass for a part of its neighbour.
            context.update(&text.len().to_be_bytes());
            context.update(text.as_bytes());
        }
        hex::encode(context.sign())
    }

    pub(crate) fn sign(&self, covered: &CoveredParts<'_>) -> SignatureHeaders {
        let (mut names, mut lines) = (String::new(), String::new());
        for (name, value) in covered.about {
            names.extend([" \"", name, "\""]);
            lines.extend(["\"", name, "\": ", value, "\n"]);
        }
        let params = format!(
            "(\"@method\" \"@authority\" \"@path\" \"content-digest\"{names});created={};keyid=\"{}\";alg=\"ed25519\"",
            covered.created.millis().div_euclid(1_000),
            self.id
        );
        let base = format!(
            "\"@method\": POST\n\"@authority\": {}\n\"@path\": {}\n\"content-digest\": {}\n{lines}\"@signature-params\": {params}",
            covered.authority, covered.path, covered.content_digest
        );
        let signature = STANDARD.encode(self.key.sign(base.as_bytes()));
        SignatureHeaders {
            input: format!("sig1={params}"),
            signature: format!("sig1=:{signature}:"),
        }
    }
}

/// Whether a text looks like the id of a node: a public key in hex.
pub(crate) fn is_node_id(text: &str) -> bool {
    let text = text.trim();
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The value of `Content-Digest` (RFC 9530).
pub(crate) fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}
