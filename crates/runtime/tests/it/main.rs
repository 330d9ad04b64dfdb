//! Tests of executors over real sockets.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::panic, reason = "a test may stop at the first surprise")]

mod command;
mod echo;
mod endpoints;
mod events;
mod examples;
mod idempotency;
mod openai;
mod server;
mod verify;
