//! Connections: accepting, pacing, and framing.

pub(crate) mod accept;
mod client_address;
mod connection_stream;
mod connections;
mod framing;
pub(crate) mod inbound;
pub(crate) mod pace;
