//! Transport between nodes: node ids, addresses and bytes over QUIC, and nothing of what they mean.

mod accept;
mod address;
mod call;
mod codes;
mod dial;
mod endpoint;
mod error;
mod frame;
mod handshakes;
mod links;
mod local_lookup;
mod mesh;
mod requests;
mod settings;
mod shared;
mod ticket;

pub use self::{
    address::{NodeAddress, NodeIdError, node_id},
    error::{BodyError, MeshCallError, MeshError},
    frame::MeshMessage,
    mesh::Mesh,
    requests::{IncomingRequest, MeshRequests, ReplySlot},
    settings::{MeshLimits, MeshSettings},
    shared::MeshGate,
    ticket::{InvitationTextError, MeshInvitation},
};
