//! A typed client for the HTTP API: each operation is a function that returns a typed `Call`.

pub mod accounts;
pub mod agent_events;
pub mod agent_runs;
mod call;
mod client;
pub mod executors;
pub mod invitations;
pub mod keys;
pub mod knowledge;
pub mod logins;
pub mod me;
pub mod node;
pub mod peers;
mod reply;
pub mod rounds;
pub mod sessions;
pub mod shares;
mod sse;
pub mod tasks;
pub mod teams;
pub mod templates;
mod transport;
pub mod verifier_runs;
pub mod verifiers;
pub mod webhooks;
pub mod workflows;

pub use self::{
    call::{Call, Page},
    client::{Client, ClientError},
    reply::{Refusal, Reply},
    sse::SseEvent,
    transport::{ReplyBody, Transport},
};
