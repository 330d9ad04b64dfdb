//! Invitations as one line of text: where a node is, and the secret that admits the bearer.

use std::{fmt, net::SocketAddr};

use iroh_tickets::{ParseError, Ticket};
use serde::{Deserialize, Serialize};

use crate::address::{MOST_ADDRESSES, NodeAddress, NodeIdError, parse_id};

/// The longest text that is read.
const MOST_BYTES: usize = 1024;

/// What a node hands to another one, so that it connects and is let in.
#[derive(Clone, PartialEq, Eq)]
pub struct MeshInvitation {
    /// The node that invites.
    pub address: NodeAddress,
    /// What the bearer shows to be let in.
    pub secret: [u8; 32],
    /// The network that the bearer would join, if it is not the only one.
    pub network: Option<String>,
}

/// Why a text is no invitation, or an invitation has no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvitationTextError {
    #[error("an invitation begins with `{}`", WrittenInvitation::KIND)]
    Kind,
    #[error("the invitation has {bytes} bytes, and {MOST_BYTES} are allowed")]
    TooLong { bytes: usize },
    #[error("the invitation is mistyped or cut off")]
    Unreadable,
    #[error("the invitation is followed by something else")]
    Trailing,
    #[error("the invitation has {count} addresses, and {MOST_ADDRESSES} are allowed")]
    TooManyAddresses { count: usize },
    #[error("the invitation contains control characters")]
    Control,
    #[error("the invitation names no node")]
    Node(#[source] NodeIdError),
}

/// The invitation as it is written. The first byte says which version it is.
#[derive(Serialize, Deserialize)]
enum WrittenInvitation {
    V1 {
        id: [u8; 32],
        direct: Vec<SocketAddr>,
        relays: Vec<String>,
        secret: [u8; 32],
        network: Option<String>,
    },
}

impl Ticket for WrittenInvitation {
    const KIND: &'static str = "jurat";

    fn encode_bytes(&self) -> Vec<u8> {
        // Writing numbers, bytes and texts to memory does not fail; nothing would be no invitation.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    fn decode_bytes(bytes: &[u8]) -> Result<Self, ParseError> {
        Ok(postcard::from_bytes(bytes)?)
    }
}

impl MeshInvitation {
    /// The invitation as one line.
    pub fn to_text(&self) -> Result<String, InvitationTextError> {
        self.check()?;
        let id = parse_id(&self.address.id).map_err(InvitationTextError::Node)?;
        let written = WrittenInvitation::V1 {
            id: *id.as_bytes(),
            direct: self.address.direct.clone(),
            relays: self.address.relays.clone(),
            secret: self.secret,
            network: self.network.clone(),
        };
        short(&written.encode_string()).map(str::to_owned)
    }

    /// Reads a line; space around it is left out.
    pub fn from_text(text: &str) -> Result<Self, InvitationTextError> {
        let text = short(text.trim())?;
        let written = WrittenInvitation::decode_string(text).map_err(|error| match error {
            ParseError::Kind { .. } => InvitationTextError::Kind,
            ParseError::Postcard { .. }
            | ParseError::Encoding { .. }
            | ParseError::Verify { .. }
            | _ => InvitationTextError::Unreadable,
        })?;
        // An invitation has one spelling, so that whatever else is in the text is found.
        if written.encode_string() != text {
            return Err(InvitationTextError::Trailing);
        }
        let WrittenInvitation::V1 { id, direct, relays, secret, network } = written;
        let address = NodeAddress { id: hex::encode(id), direct, relays };
        parse_id(&address.id).map_err(InvitationTextError::Node)?;
        let invitation = Self { address, secret, network };
        invitation.check()?;
        Ok(invitation)
    }

    fn check(&self) -> Result<(), InvitationTextError> {
        let count = self.address.direct.len() + self.address.relays.len();
        if MOST_ADDRESSES < count {
            return Err(InvitationTextError::TooManyAddresses { count });
        }
        let mut texts = self.address.relays.iter().chain(&self.network);
        if texts.any(|text| text.chars().any(char::is_control)) {
            return Err(InvitationTextError::Control);
        }
        Ok(())
    }
}

fn short(text: &str) -> Result<&str, InvitationTextError> {
    let bytes = text.len();
    if MOST_BYTES < bytes { Err(InvitationTextError::TooLong { bytes }) } else { Ok(text) }
}

impl fmt::Debug for MeshInvitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshInvitation")
            .field("address", &self.address)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}
