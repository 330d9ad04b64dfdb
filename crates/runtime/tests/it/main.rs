//! Executors over real sockets.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod command;
mod echo;
mod endpoints;
mod idempotency;
mod openai;
mod python_example;
mod server;
mod verify;
