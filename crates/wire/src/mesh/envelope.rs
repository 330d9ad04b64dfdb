//! The signed head of a message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::canonical::{canonical, digest};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{MOST_HEAD_BYTES, Route, VERSION};
use crate::strict_json;

/// A document with the signature of the node that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The canonical JSON of the document, exactly as it is signed.
    pub document: String,
    /// The Ed25519 signature of these bytes, in Base64.
    pub signature: String,
}

/// A document that was read, before its signature is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedMessage<T> {
    pub message: T,
    /// The exact bytes that are signed.
    pub document: String,
    pub signature: Vec<u8>,
    /// The digest of the document, by which a reply names its request.
    pub digest: String,
}

/// Why the head of a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeFault {
    #[error("the head of the message cannot be read: {0}")]
    Unreadable(String),
    #[error("the message has version {0}, and this node knows version {VERSION}")]
    UnknownVersion(u64),
    #[error("the message has a type that this node does not know")]
    UnknownType,
}

/// The digest of a body, as heads name it.
pub fn body_digest(body: &[u8]) -> String {
    digest(body)
}

impl Envelope {
    /// Signs a message.
    pub fn seal(message: &impl Serialize, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Self {
        // A message consists of texts, whole numbers and lists, so it always serializes.
        let value = serde_json::to_value(message).unwrap_or_default();
        let document = canonical(&value);
        let signature = STANDARD.encode(sign(&document));
        Self { document: String::from_utf8(document).unwrap_or_default(), signature }
    }

    /// The head as it is sent.
    pub fn to_head(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a head. The signature is not verified yet.
    pub fn read<T: DeserializeOwned>(head: &[u8]) -> Result<SignedMessage<T>, EnvelopeFault> {
        let unreadable = |error: &dyn std::fmt::Display| {
            EnvelopeFault::Unreadable(error.to_string().chars().take(200).collect())
        };
        if MOST_HEAD_BYTES < head.len() {
            return Err(EnvelopeFault::Unreadable("it is too large".to_owned()));
        }
        let outer = strict_json::parse(head).map_err(|error| unreadable(&error))?;
        let envelope = Self::deserialize(outer).map_err(|error| unreadable(&error))?;
        let signature = STANDARD.decode(&envelope.signature).map_err(|error| unreadable(&error))?;
        let value =
            strict_json::parse(envelope.document.as_bytes()).map_err(|error| unreadable(&error))?;
        check_version(&value)?;
        if canonical(&value) != envelope.document.as_bytes() {
            let problem = "the document is not canonical JSON".to_owned();
            return Err(EnvelopeFault::Unreadable(problem));
        }
        let is_typed = value["type"].is_string();
        let message = T::deserialize(value).map_err(|error| {
            let text = error.to_string();
            if is_typed && text.starts_with("unknown variant") {
                EnvelopeFault::UnknownType
            } else {
                unreadable(&text)
            }
        })?;
        let digest = digest(envelope.document.as_bytes());
        Ok(SignedMessage { message, document: envelope.document, signature, digest })
    }
}

/// Later versions may have other members, so the version is read first.
fn check_version(document: &Value) -> Result<(), EnvelopeFault> {
    let version = document.pointer("/route/version").and_then(Value::as_u64);
    match version {
        Some(version) if version == u64::from(VERSION) => Ok(()),
        Some(version) => Err(EnvelopeFault::UnknownVersion(version)),
        None => Err(EnvelopeFault::Unreadable("it has no version".to_owned())),
    }
}

impl Route {
    /// The route of a message of this version.
    pub fn new(from: &str, to: &str, at_ms: u64) -> Self {
        Self { version: VERSION, from: from.to_owned(), to: to.to_owned(), at_ms }
    }
}
