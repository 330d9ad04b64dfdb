//! The card of the server: what it is, where it listens, and what it can do.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::PROTOCOL_VERSION;

const ABOUT: &str = "Delegates jobs, validates candidates and fact-checks claims with several independent executors, and returns one answer with agreement, confidence, each replica's answer and a receipt.";
const JSON: Cow<'static, str> = Cow::Borrowed("application/json");
const TEXT: Cow<'static, str> = Cow::Borrowed("text/plain");

/// The card of an agent.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    pub name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// The version of the server.
    pub version: Cow<'static, str>,
    pub documentation_url: String,
    /// The addresses of the server; the first is preferred.
    pub supported_interfaces: Vec<AgentInterface>,
    pub capabilities: AgentCapabilities,
    /// How a key is sent, by name.
    #[schema(value_type = Object)]
    pub security_schemes: Value,
    /// A request needs one of these.
    #[schema(value_type = Vec<Object>)]
    pub security_requirements: Value,
    pub default_input_modes: [Cow<'static, str>; 2],
    pub default_output_modes: [Cow<'static, str>; 2],
    pub skills: Vec<AgentSkill>,
    /// Signatures of the card without this member.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub signatures: Vec<AgentCardSignature>,
}

/// An address, with the binding and the version that it serves.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentInterface {
    pub url: String,
    /// `JSONRPC` or `HTTP+JSON`.
    pub protocol_binding: Cow<'static, str>,
    pub protocol_version: Cow<'static, str>,
}

/// The optional parts of the protocol that the server has.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    pub streaming: bool,
    pub push_notifications: bool,
    pub extended_agent_card: bool,
}

/// Something that the server can do.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AgentSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<Cow<'static, str>>,
    /// Messages for the skill: text, or the data of a data part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub examples: Vec<String>,
}

/// A JSON Web Signature of the card.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AgentCardSignature {
    /// The protected header, in base64url: `alg`, `typ`, `kid` and `jwk`.
    pub protected: String,
    /// The signature, in base64url.
    pub signature: String,
}

impl AgentCard {
    /// The card of a server with this base URL.
    pub fn at(base: &str, version: &'static str, skills: Vec<AgentSkill>) -> Self {
        let at = |path: &str, binding: &'static str| AgentInterface {
            url: format!("{base}{path}"),
            protocol_binding: Cow::Borrowed(binding),
            protocol_version: Cow::Borrowed(PROTOCOL_VERSION),
        };
        // Not empty: the canonical form has no empty members, and some clients remove them before
        // they check the signature.
        let scopes = json!({ "list": ["rounds:create", "rounds:read"] });
        Self {
            name: Cow::Borrowed("Jurat"),
            description: Cow::Borrowed(ABOUT),
            version: Cow::Borrowed(version),
            documentation_url: format!("{base}/docs"),
            supported_interfaces: vec![at("/a2a", "JSONRPC"), at("/a2a/v1", "HTTP+JSON")],
            capabilities: AgentCapabilities {
                streaming: true,
                push_notifications: true,
                extended_agent_card: true,
            },
            security_schemes: json!({
                "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } },
                "api_key": { "apiKeySecurityScheme": { "location": "header", "name": "X-API-Key" } },
            }),
            security_requirements: json!([
                { "schemes": { "bearer": scopes } },
                { "schemes": { "api_key": scopes } },
            ]),
            default_input_modes: [TEXT, JSON],
            default_output_modes: [TEXT, JSON],
            skills,
            signatures: Vec::new(),
        }
    }

    /// The card as JSON, signed: `sign` gets the signing input and returns the signature.
    pub fn signed(&self, key: &CardKey<'_>, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Value {
        let mut card = json!(self);
        let payload = BASE64.encode(jurat_core::canonical::canonical(&card));
        let protected = BASE64.encode(key.header().to_string());
        let signature = BASE64.encode(sign(format!("{protected}.{payload}").as_bytes()));
        card["signatures"] = json!([AgentCardSignature { protected, signature }]);
        card
    }
}

/// The public key of a node.
#[derive(Debug, Clone, Copy)]
pub struct CardKey<'a> {
    /// The name of the key.
    pub id: &'a str,
    pub bytes: &'a [u8],
}

impl CardKey<'_> {
    fn header(&self) -> Value {
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(self.bytes) });
        json!({ "alg": "EdDSA", "typ": "JOSE", "kid": self.id, "jwk": jwk })
    }
}

/// The skills that every server has.
pub fn skills() -> Vec<AgentSkill> {
    let skill =
        |id: &str, name: &str, text: &str, tags: [&'static str; 3], example: &str| AgentSkill {
            id: id.to_owned(),
            name: name.to_owned(),
            description: text.to_owned(),
            tags: tags.into_iter().map(Cow::Borrowed).collect(),
            examples: vec![example.to_owned()],
        };
    vec![
        skill(
            "delegate",
            "Delegate a job",
            "Runs a job on 1, 3 or 5 independent executors, checks every output under a policy, and returns the output they agree on. A message with text only is its objective.",
            ["delegate", "consensus", "execution"],
            r#"{"skill": "delegate", "objective": "Translate to French.", "input": {"text": "Good morning"}, "consensus": {"replicas": 3}}"#,
        ),
        skill(
            "validate",
            "Validate a candidate",
            "Has 1, 3 or 5 independent executors judge a claim or an output under a policy, and returns the verdict they agree on: VALID, INVALID, RETRY or NEEDS_SPEC.",
            ["validate", "consensus", "verification"],
            r#"{"skill": "validate", "claim": "12 * 12 = 144", "consensus": {"replicas": 3}}"#,
        ),
        skill(
            "factcheck",
            "Fact-check a claim",
            "Has 1, 3 or 5 independent executors decide whether a claim is true, and returns the verdict they agree on: TRUE, FALSE or UNSURE.",
            ["factcheck", "consensus", "verification"],
            r#"{"skill": "factcheck", "claim": "Water boils at 100 °C at sea level.", "consensus": {"replicas": 3}}"#,
        ),
        skill(
            "run-verifier",
            "Run a verifier",
            "Has the judge of a verifier decide whether inputs pass.",
            ["verifier", "judge", "verification"],
            r#"{"skill": "run-verifier", "verifier": "cites-sources", "inputs": {"answer": "42, by the manual."}}"#,
        ),
    ]
}

/// A verifier of the caller as a skill of its own.
pub fn verifier_skill(name: &str, description: &str) -> AgentSkill {
    AgentSkill {
        id: format!("run-verifier:{name}"),
        name: format!("Run the verifier {name}"),
        description: description.to_owned(),
        tags: vec![Cow::Borrowed("verifier")],
        examples: Vec::new(),
    }
}
