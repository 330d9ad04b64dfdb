//! Messages between nodes: signed, versioned and bounded documents.
//!
//! A message has a head and a body. The head is an [`Envelope`]: a document with the signature of the
//! node that wrote it. The document names the digest of the body, so the signature covers both.

mod answer;
mod envelope;
mod job;
mod join;
mod presence;
mod statement;

use serde::{Deserialize, Serialize};

pub use self::{
    answer::{AnswerOutcome, JobAnswer, ServedBy},
    envelope::{Envelope, EnvelopeFault, SignedMessage, body_digest},
    job::{JobCall, JobRequest},
    join::{JoinReply, JoinRequest},
    presence::{
        MOST_OFFERS, Presence, PresenceRequest, SessionOffer, decode_offers, encode_offers,
    },
    statement::{StatementReply, StatementRequest},
};

/// The version of all messages.
pub const VERSION: u32 = 1;
/// The largest head.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;

/// A request of one node to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum NodeRequest {
    #[serde(rename = "jurat.presence-request")]
    Presence(PresenceRequest),
    #[serde(rename = "jurat.job")]
    Job(JobRequest),
    #[serde(rename = "jurat.join")]
    Join(JoinRequest),
    #[serde(rename = "jurat.statement-request")]
    Statement(StatementRequest),
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum NodeReply {
    #[serde(rename = "jurat.presence")]
    Presence(Presence),
    #[serde(rename = "jurat.answer")]
    Answer(JobAnswer),
    #[serde(rename = "jurat.joined")]
    Joined(JoinReply),
    #[serde(rename = "jurat.statement")]
    Statement(StatementReply),
    /// The request was not carried out.
    #[serde(rename = "jurat.refusal")]
    Refused(NodeRefusal),
}

/// Who wrote a message, and to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub version: u32,
    /// The public key of the node that wrote the message, in hex.
    pub from: String,
    /// The public key of the node that it is for.
    pub to: String,
    /// The sender's clock, in milliseconds since 1970. Nothing is decided by it.
    pub at_ms: u64,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRefusal {
    pub route: Route,
    /// The digest of the document that is refused.
    pub request: String,
    pub code: RefusalCode,
    pub detail: String,
}

/// Why a node refuses a request of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The operator of the node does not trust the other.
    NotTrusted,
    /// The message cannot be read, or does not fit its signature.
    BadMessage,
    /// The invitation is unknown, used or expired.
    BadInvitation,
    /// More requests or concurrent jobs than the operator allows.
    RateLimited,
    /// The payload is larger than the operator allows.
    TooLarge,
    /// The operator does not lend this task type.
    TaskTypeNotLent,
    /// No executor of the node has this address and profile.
    UnknownExecutor,
    /// The executor costs more than the origin pays.
    PriceTooHigh,
    /// The same execution was asked for with another content.
    Mismatch,
    /// The node cannot take the job now.
    Unavailable,
    /// The node cannot do such a job.
    Unsupported,
}

impl NodeRequest {
    /// Who wrote the request, and to whom.
    pub const fn route(&self) -> &Route {
        match self {
            Self::Presence(it) => &it.route,
            Self::Job(it) => &it.route,
            Self::Join(it) => &it.route,
            Self::Statement(it) => &it.route,
        }
    }
}

impl NodeReply {
    /// Who wrote the reply, and to whom.
    pub const fn route(&self) -> &Route {
        match self {
            Self::Presence(it) => &it.route,
            Self::Answer(it) => &it.route,
            Self::Joined(it) => &it.route,
            Self::Statement(it) => &it.route,
            Self::Refused(it) => &it.route,
        }
    }

    /// The digest of the document that the reply answers.
    pub fn request(&self) -> &str {
        match self {
            Self::Presence(it) => &it.request,
            Self::Answer(it) => &it.request,
            Self::Joined(it) => &it.request,
            Self::Statement(it) => &it.request,
            Self::Refused(it) => &it.request,
        }
    }
}

#[cfg(test)]
mod tests {
    use jurat_core::canonical::digest;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn statement() -> NodeRequest {
        NodeRequest::Statement(StatementRequest { route: Route::new("aa", "bb", 7) })
    }

    fn head_of(document: &Value) -> Vec<u8> {
        Envelope::seal(document, |_| vec![1; 64]).to_head()
    }

    #[test]
    fn a_sealed_message_reads_back_with_the_bytes_that_were_signed() {
        let mut signed = Vec::new();
        let envelope = Envelope::seal(&statement(), |bytes| {
            signed.extend_from_slice(bytes);
            vec![1; 64]
        });
        let read: SignedMessage<NodeRequest> = Envelope::read(&envelope.to_head()).unwrap();
        assert_eq!(read.message, statement());
        assert_eq!(read.document.as_bytes(), signed);
        assert_eq!(read.digest, digest(&signed));
        assert_eq!(
            read.document,
            r#"{"route":{"at_ms":7,"from":"aa","to":"bb","version":1},"type":"jurat.statement-request"}"#
        );
    }

    #[test]
    fn other_versions_types_and_members_are_told_apart() {
        let route = json!({ "version": 1, "from": "a", "to": "b", "at_ms": 1 });
        let later = json!({ "version": 2, "whatever": true });
        for (document, fault) in [
            (json!({ "type": "jurat.job", "route": later }), EnvelopeFault::UnknownVersion(2)),
            (json!({ "type": "jurat.dance", "route": route }), EnvelopeFault::UnknownType),
        ] {
            let read = Envelope::read::<NodeRequest>(&head_of(&document));
            assert_eq!(read.unwrap_err(), fault);
        }
        for document in [
            json!({ "type": "jurat.statement-request" }),
            json!({ "type": "jurat.statement-request", "route": route, "more": 1 }),
            json!({ "route": route }),
            json!(1),
        ] {
            let read = Envelope::read::<NodeRequest>(&head_of(&document));
            assert!(matches!(read, Err(EnvelopeFault::Unreadable(_))), "{document}");
        }
    }

    #[test]
    fn only_one_text_of_a_document_is_accepted() {
        let spaced = r#"{"type": "jurat.statement-request"}"#;
        let spaced =
            spaced.replace('}', r#", "route":{"at_ms":7,"from":"a","to":"b","version":1}}"#);
        let envelope = Envelope { document: spaced, signature: "AAAA".to_owned() };
        let read = Envelope::read::<NodeRequest>(&envelope.to_head());
        assert!(read.unwrap_err().to_string().contains("not canonical"));
        let twice = br#"{"document":"{}","document":"{}","signature":""}"#;
        assert!(Envelope::read::<NodeRequest>(twice).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            let _ = Envelope::read::<NodeRequest>(&bytes);
            let _ = Envelope::read::<NodeReply>(&bytes);
            let _ = decode_offers(&bytes);
        }

        #[test]
        fn no_document_makes_a_reader_panic(text in ".{0,400}") {
            let envelope = Envelope { document: text, signature: "AAAA".to_owned() };
            let _ = Envelope::read::<NodeRequest>(&envelope.to_head());
            let _ = Envelope::read::<NodeReply>(&envelope.to_head());
        }
    }
}
