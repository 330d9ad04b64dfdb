//! Two nodes become each other's peers by an invitation.

use serde::{Deserialize, Serialize};

use super::Route;

/// Takes an invitation: its secret, and where the sender can be reached.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    pub route: Route,
    /// The secret of the invitation, in hex. It works once.
    pub secret: String,
    /// The sender's own name, as a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Addresses of the sender.
    pub direct: Vec<String>,
    /// Relays of the sender.
    pub relays: Vec<String>,
}

impl std::fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinRequest").field("route", &self.route).finish_non_exhaustive()
    }
}

/// The invitation is accepted: both nodes trust each other now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinReply {
    pub route: Route,
    /// The digest of the request's document.
    pub request: String,
    /// The replier's own name, as a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
