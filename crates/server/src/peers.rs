//! What the operator turns on for clients and registries of other systems.

use jurat_core::id::AccountId;
use jurat_wire::api::agent_registration::AgentProfile;

/// The settings of the surfaces for other systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerOptions {
    /// How many replicas a prompt-oriented request has if it does not say so: 1, 3 or 5.
    pub replicas: u8,
    /// The account of programs on this machine that send no key.
    pub loopback_account: Option<AccountId>,
    /// The content of the registration file; without it, there is no file.
    pub agent: Option<AgentProfile>,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self { replicas: 3, loopback_account: None, agent: None }
    }
}
