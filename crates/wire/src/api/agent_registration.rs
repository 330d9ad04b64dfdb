//! The registration file of ERC-8004, which says who this agent is and where it can be reached.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const TYPE: &str = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1";

/// What the operator says about the server as an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfile {
    /// The public URL of the server, without a slash at the end.
    pub url: String,
    pub name: String,
    pub description: String,
    pub image: Option<String>,
    pub registrations: Vec<AgentRegistration>,
}

/// The agent in one registry of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRegistration {
    pub agent_id: u64,
    /// The registry, as `namespace:chain:address`.
    #[schema(example = "eip155:1:0x8004a6090Cd10A7288092483047B097295Fb8847")]
    pub agent_registry: String,
}

/// A registration file of ERC-8004.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRegistrationFile<'a> {
    /// The version of the format.
    pub r#type: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub description: Cow<'a, str>,
    /// URL of an image; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub image: Option<Cow<'a, str>>,
    pub services: Vec<AgentService>,
    /// Whether the agent takes payments with x402.
    #[serde(rename = "x402Support")]
    pub x402_support: bool,
    /// Always true.
    pub active: bool,
    pub registrations: Cow<'a, [AgentRegistration]>,
}

/// An address of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct AgentService {
    /// `web`, `MCP`, `A2A` or `OpenAPI`.
    #[schema(example = "MCP")]
    pub name: Cow<'static, str>,
    pub endpoint: String,
    /// The revision of its protocol; left out if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub version: Option<Cow<'static, str>>,
}

/// An address of the server: its name, its path, and the revision of its protocol.
pub type ServicePath = (&'static str, &'static str, Option<&'static str>);

/// The file of an agent with these services, which takes payments or does not.
pub fn file<'a>(
    profile: &'a AgentProfile,
    services: &[ServicePath],
    x402_support: bool,
) -> AgentRegistrationFile<'a> {
    let service = |(name, path, version): &ServicePath| AgentService {
        name: Cow::Borrowed(*name),
        endpoint: format!("{}{path}", profile.url),
        version: version.map(Cow::Borrowed),
    };
    AgentRegistrationFile {
        r#type: Cow::Borrowed(TYPE),
        name: Cow::Borrowed(&profile.name),
        description: Cow::Borrowed(&profile.description),
        image: profile.image.as_deref().map(Cow::Borrowed),
        services: services.iter().map(service).collect(),
        x402_support,
        active: true,
        registrations: Cow::Borrowed(&profile.registrations),
    }
}

impl AgentRegistration {
    /// Reads a registration as settings write it: the agent's number, `@`, and the registry.
    pub fn parse(text: &str) -> Option<Self> {
        let (agent_id, agent_registry) = text.split_once('@')?;
        let parts: Vec<&str> = agent_registry.split(':').collect();
        let is_registry = parts.len() == 3
            && parts
                .iter()
                .all(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_alphanumeric()));
        let agent_id = agent_id.parse().ok().filter(|_| is_registry)?;
        Some(Self { agent_id, agent_registry: agent_registry.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_is_a_number_and_a_registry() {
        let read = AgentRegistration::parse("22@eip155:1:0x742d").unwrap();
        assert_eq!((read.agent_id, read.agent_registry.as_str()), (22, "eip155:1:0x742d"));
        for text in ["", "22", "@eip155:1:0x1", "x@eip155:1:0x1", "22@eip155:1", "22@eip155::0x1"] {
            assert_eq!(AgentRegistration::parse(text), None, "{text}");
        }
    }
}
