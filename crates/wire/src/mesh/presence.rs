//! The executors that a node lends to another.

use jurat_core::executor::Capabilities;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Route;
use crate::{
    executor::{CapabilitiesResponse, ShapeError, decode_capabilities},
    strict_json,
};

/// The most sessions that a presence lists.
pub const MOST_OFFERS: usize = 1_000;
/// The longest text in an offer.
const LONGEST_TEXT: usize = 2_000;

/// Asks a node which of its executors it lends to the asker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresenceRequest {
    pub route: Route,
    /// Only the executor at this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
}

/// The head of a presence. Its body is a list of offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    pub route: Route,
    /// The digest of the request's document.
    pub request: String,
    /// How long the list holds, from its arrival.
    pub valid_ms: u64,
    /// The scopes that the node serves.
    pub scopes: Vec<String>,
    pub body_digest: String,
}

/// One session that a node lends.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionOffer {
    /// The address of the executor, as its own node knows it.
    pub executor: String,
    pub profile: String,
    /// In micro-credits per job.
    pub price_micros: u64,
    /// What the executor can do, or why it cannot be asked.
    pub capabilities: Result<Capabilities, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferDocument {
    executor: String,
    profile: String,
    price_micros: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The body of a presence.
pub fn encode_offers(offers: &[SessionOffer]) -> Vec<u8> {
    let documents: Vec<OfferDocument> = offers.iter().map(OfferDocument::from).collect();
    serde_json::to_vec(&documents).unwrap_or_default()
}

/// Reads the body of a presence.
pub fn decode_offers(body: &[u8]) -> Result<Vec<SessionOffer>, ShapeError> {
    let value = strict_json::parse_within(body, 1_000 * MOST_OFFERS)
        .map_err(|error| ShapeError::new("body", error.to_string()))?;
    let documents = Vec::<OfferDocument>::deserialize(value)
        .map_err(|error| ShapeError::new("body", error.to_string()))?;
    if MOST_OFFERS < documents.len() {
        return Err(ShapeError::new("body", format!("must have at most {MOST_OFFERS} offers")));
    }
    documents.into_iter().map(SessionOffer::try_from).collect()
}

impl From<&SessionOffer> for OfferDocument {
    fn from(offer: &SessionOffer) -> Self {
        let declared = |it: &Capabilities| CapabilitiesResponse::from(it.clone());
        let capabilities = offer.capabilities.as_ref().ok().map(declared);
        Self {
            executor: offer.executor.clone(),
            profile: offer.profile.clone(),
            price_micros: offer.price_micros,
            capabilities: capabilities.and_then(|it| serde_json::to_value(it).ok()),
            problem: offer.capabilities.as_ref().err().cloned(),
        }
    }
}

impl TryFrom<OfferDocument> for SessionOffer {
    type Error = ShapeError;

    fn try_from(document: OfferDocument) -> Result<Self, ShapeError> {
        let OfferDocument { executor, profile, price_micros, capabilities, problem } = document;
        for (field, text) in [("executor", &executor), ("profile", &profile)] {
            if LONGEST_TEXT < text.len() || text.chars().any(char::is_control) {
                let problem = format!("must be at most {LONGEST_TEXT} bytes of plain text");
                return Err(ShapeError::new(field, problem));
            }
        }
        let capabilities = match (capabilities, problem) {
            (Some(declared), None) => Ok(decode_capabilities(declared)?.into()),
            (_, problem) => Err(excerpt(problem.as_deref().unwrap_or("it gave no reason"))),
        };
        Ok(Self { executor, profile, price_micros, capabilities })
    }
}

fn excerpt(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(200).collect()
}
