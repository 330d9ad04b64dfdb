//! The Agent2Agent protocol, version 1.0: its messages, tasks, errors and card as JSON.
//!
//! A round is a task of the protocol, so nothing here is stored: a task is built from its round. What
//! the protocol adds, the id and the context of the message, is kept in the request of the round.

pub mod card;
pub mod error;
mod members;
pub mod message;
pub mod origin;
pub mod push;
pub mod requests;
pub mod rpc;
pub mod task;

/// The version of the protocol on the wire. Patch versions are never sent.
pub const PROTOCOL_VERSION: &str = "1.0";
/// The version of a request that names none.
pub const VERSION_IF_ABSENT: &str = "0.3";
/// The media type of the HTTP+JSON binding.
pub const MEDIA_TYPE: &str = "application/a2a+json";
