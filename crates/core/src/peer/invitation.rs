//! Invitations, with which another node becomes a peer by itself.

use super::{PeerId, terms::PeerTerms};
use crate::time::Timestamp;

/// An invitation for one node. Whoever knows its secret becomes a peer on its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerInvitation {
    /// The digest of the secret, which is not stored.
    pub secret_digest: String,
    pub terms: PeerTerms,
    /// The label of the peer.
    pub name: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub used_by: Option<PeerId>,
}

impl PeerInvitation {
    /// Whether it is too late to use the invitation.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}
