//! Signs requests to executors with the node's key (HTTP message signatures, RFC 9421).

use std::{convert::Infallible, fmt, sync::Arc};

use aws_lc_rs::{
    hmac,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use http::HeaderName;
use jurat_core::time::Timestamp;
use jurat_wire::signature::{self, SignatureInput};
use sha2::{Digest as _, Sha256};

use crate::Engine;

pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static(signature::CONTENT_DIGEST);
pub(crate) const SIGNATURE_INPUT: HeaderName = HeaderName::from_static(signature::SIGNATURE_INPUT);
pub(crate) const SIGNATURE: HeaderName = HeaderName::from_static(signature::SIGNATURE);

/// The private key of this node. Executors know the node by its public half.
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

impl CoveredParts<'_> {
    /// The value of a covered component.
    fn value(&self, name: &str) -> &str {
        match name {
            "@authority" => self.authority,
            "@path" => self.path,
            signature::CONTENT_DIGEST => self.content_digest,
            header => {
                let found = self.about.iter().find(|(name, _)| *name == header);
                found.map_or("", |(_, value)| *value)
            }
        }
    }
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

    /// The public key as bytes.
    fn public_key(&self) -> &[u8] {
        self.key.public_key().as_ref()
    }

    pub(crate) fn sign(&self, covered: &CoveredParts<'_>) -> SignatureHeaders {
        let names: Vec<&str> = covered.about.iter().map(|(name, _)| *name).collect();
        let created_s = covered.created.millis().div_euclid(1_000);
        let input = SignatureInput::new(&names, created_s, &self.id);
        let Ok(base) = input.base(|name| Ok::<_, Infallible>(covered.value(name).to_owned()));
        let signature = signature::signature_header(self.key.sign(base.as_bytes()).as_ref());
        SignatureHeaders { input: input.header(), signature }
    }
}

impl Engine {
    /// The id of the node's key, and the public key as bytes.
    pub fn node_key(&self) -> (&str, &[u8]) {
        let key = &self.inner.node_key;
        (key.id(), key.public_key())
    }

    /// The Ed25519 signature of a document with the node's key. The document must not pass for the
    /// signature base of a request, which begins with a quotation mark.
    pub fn node_signature(&self, document: &[u8]) -> Vec<u8> {
        self.inner.node_key.key.sign(document).as_ref().to_vec()
    }
}

/// Whether a text looks like the id of a node: a public key in hex.
pub(crate) fn is_node_id(text: &str) -> bool {
    let text = text.trim();
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
