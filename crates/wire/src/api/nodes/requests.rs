//! Requests to invite, join and trust other nodes.

use std::net::SocketAddr;

use jurat_core::{
    code::ProblemCode,
    peer::{PeerId, terms::PeerTerms},
};
use serde_json::Value;
use utoipa::openapi::schema::ArrayBuilder;

use super::terms::PeerTermsRequest;
use crate::{
    api::kit::{
        json::short,
        request::{
            self, FieldFault, request, text, values,
            values::{PlainText, Whole, filled_text, texts_of},
        },
    },
    problem::Problem,
};

/// The longest name of a node.
const LONGEST_NAME: usize = 100;
/// A line that is not blank and has no control characters.
const ONE_LINE: &str = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
/// The most addresses of a node, and the most relays.
const MOST_ADDRESSES: usize = 8;
const SOCKET_ADDRESS: &str = r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$";
const RELAY: &str = r"^https?://[^@?#\s]+$";
const LONGEST_TICKET: usize = 2_048;
const LONGEST_LIFE_S: u64 = 30 * 86_400;
const DEFAULT_LIFE_S: u64 = 3_600;

request! {
    /// An invitation to write.
    pub strict struct InviteNodeRequest, draft InviteNodeDraft {
        /// The label of the node that will use the invitation.
        name: Option<NodeName>,
        /// How long the invitation is valid; defaults to one hour.
        valid_seconds: Option<Whole<1, LONGEST_LIFE_S>>,
        terms: Option<PeerTermsRequest>,
    }

    /// An invitation to take.
    pub strict struct JoinNodeRequest, draft JoinNodeDraft {
        /// The invitation that the other node wrote.
        ticket: PlainText<LONGEST_TICKET>,
        /// The label of the other node; defaults to the name that it proposes.
        name: Option<NodeName>,
        terms: Option<PeerTermsRequest>,
    }

    /// The terms on which to trust a node, and where to reach it.
    pub strict struct TrustNodeRequest, draft TrustNodeDraft {
        /// The label of the node; if left out, it keeps its label.
        name: Option<NodeName>,
        /// Socket addresses at which it may be reached, such as `192.0.2.7:5873`; if left out or
        /// empty, it keeps its addresses.
        addresses: Option<AddressList>,
        /// URLs of relays through which it may be reached; if left out or empty, it keeps its
        /// relays.
        relays: Option<RelayList>,
        terms: Option<PeerTermsRequest>,
    }
}

values! {
    /// The label of a node, on one line.
    pub struct NodeName(String):
        text().pattern(Some(ONE_LINE)).max_length(Some(LONGEST_NAME)) => node_name;

    /// Socket addresses of a node.
    pub struct AddressList(Vec<String>):
        ArrayBuilder::new()
            .items(text().pattern(Some(SOCKET_ADDRESS)))
            .max_items(Some(MOST_ADDRESSES))
        => addresses;

    /// URLs of relays.
    pub struct RelayList(Vec<String>):
        ArrayBuilder::new().items(text().pattern(Some(RELAY))).max_items(Some(MOST_ADDRESSES))
        => relays;
}

/// An invitation to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteOrder {
    pub name: Option<String>,
    pub valid_s: u64,
    pub terms: PeerTerms,
}

/// An invitation to be taken.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinOrder {
    pub ticket: String,
    pub name: Option<String>,
    pub terms: PeerTerms,
}

/// How a node is to be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustOrder {
    pub name: Option<String>,
    pub direct: Vec<String>,
    pub relays: Vec<String>,
    pub terms: PeerTerms,
}

impl std::fmt::Debug for JoinOrder {
    /// Without the ticket, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinOrder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads an invitation to write.
pub fn decode_invite(body: &Value) -> Result<InviteOrder, Problem> {
    let new: InviteNodeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(InviteOrder {
        name: new.name.map(|it| it.0),
        valid_s: new.valid_seconds.map_or(DEFAULT_LIFE_S, |it| it.0),
        terms: terms(new.terms),
    })
}

/// Reads an invitation to take.
pub fn decode_join(body: &Value) -> Result<JoinOrder, Problem> {
    let new: JoinNodeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(JoinOrder { ticket: new.ticket.0, name: new.name.map(|it| it.0), terms: terms(new.terms) })
}

/// Reads how to trust a node.
pub fn decode_trust(body: &Value) -> Result<TrustOrder, Problem> {
    let new: TrustNodeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(TrustOrder {
        name: new.name.map(|it| it.0),
        direct: new.addresses.map(|it| it.0).unwrap_or_default(),
        relays: new.relays.map(|it| it.0).unwrap_or_default(),
        terms: terms(new.terms),
    })
}

/// Reads the identity of a node in a path.
pub fn peer_id(text: &str) -> Result<PeerId, Problem> {
    PeerId::parse(text).map_err(|_| {
        let reason = "must be the public key of a node, which has 64 hexadecimal digits";
        request::wrong("id", reason)
    })
}

fn terms(given: Option<PeerTermsRequest>) -> PeerTerms {
    given.map(PeerTerms::from).unwrap_or_default()
}

fn node_name(value: &Value) -> Result<String, FieldFault> {
    let text = filled_text(value)?;
    if LONGEST_NAME < text.chars().count() || text.chars().any(char::is_control) {
        let reason = format!("must be one line of at most {LONGEST_NAME} characters");
        return Err(reason.into());
    }
    Ok(text.to_owned())
}

fn addresses(value: &Value) -> Result<Vec<String>, FieldFault> {
    let read = |text: &str| -> Result<String, FieldFault> {
        let address = text.parse::<SocketAddr>();
        let address = address.ok().filter(|it| !it.ip().is_unspecified() && it.port() != 0);
        let wrong = || {
            format!(
                "has `{}`, which is not an address at which a node is reached; write it like 192.0.2.7:5873",
                short(text)
            )
        };
        Ok(address.ok_or_else(wrong)?.to_string())
    };
    few(value)?.into_iter().map(read).collect()
}

fn relays(value: &Value) -> Result<Vec<String>, FieldFault> {
    let read = |text: &str| -> Result<String, FieldFault> {
        let is_relay = |url: &url::Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        };
        let wrong = || {
            format!(
                "has `{}`, which is not the URL of a relay; write it like https://relay.example.com",
                short(text)
            )
        };
        let url = url::Url::parse(text).ok().filter(is_relay).ok_or_else(wrong)?;
        Ok(url.to_string())
    };
    few(value)?.into_iter().map(read).collect()
}

/// A list of a few texts.
fn few(value: &Value) -> Result<Vec<&str>, FieldFault> {
    let texts = texts_of(value)?;
    if MOST_ADDRESSES < texts.len() {
        return Err(format!("must have at most {MOST_ADDRESSES} entries").into());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_must_be_one_that_can_be_reached() {
        let read = |address: &str| decode_trust(&json!({ "addresses": [address] }));
        for (text, expected) in
            [("192.0.2.7:5873", "192.0.2.7:5873"), ("[2001:DB8::7]:1", "[2001:db8::7]:1")]
        {
            assert_eq!(read(text).unwrap().direct, [expected]);
        }
        for wrong in ["192.0.2.7", "0.0.0.0:5873", "[::]:1", "192.0.2.7:0", "host:5873", ""] {
            let problem = read(wrong).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some("addresses"), "{wrong}");
        }
        let many = vec!["192.0.2.7:1"; MOST_ADDRESSES + 1];
        assert!(decode_trust(&json!({ "addresses": many })).is_err());
    }

    #[test]
    fn a_relay_is_a_web_address() {
        let read = |relay: &str| decode_trust(&json!({ "relays": [relay] }));
        assert_eq!(read("https://relay.example").unwrap().relays, ["https://relay.example/"]);
        for wrong in
            ["relay.example", "ftp://relay.example", "https://u:p@relay.example", "http://"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_term_is_named_with_its_place() {
        let body = json!({ "terms": { "concurrent_jobs": 0 } });
        let problem = decode_invite(&body).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("terms.concurrent_jobs"));
        let problem = decode_invite(&json!({ "terms": { "hire": true } })).unwrap_err();
        assert!(problem.detail.contains("did you mean `terms.hires`"), "{problem:?}");
        let long = json!({ "valid_seconds": LONGEST_LIFE_S + 1 });
        assert_eq!(decode_invite(&long).unwrap_err().field.as_deref(), Some("valid_seconds"));
    }

    #[test]
    fn an_order_to_join_is_written_without_its_secret() {
        let order = decode_join(&json!({ "ticket": "jurat1secret" })).unwrap();
        assert!(!format!("{order:?}").contains("secret"), "{order:?}");
    }
}
