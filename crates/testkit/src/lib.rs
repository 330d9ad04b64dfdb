//! Fakes that speak real HTTP and a complete application, for the tests of the other crates.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "what a test needs and does not get ends the test"
)]

pub mod app;
pub mod client;
mod described;
pub mod fake_collector;
pub mod fake_documents;
pub mod fake_executor;
pub mod fake_facilitator;
pub mod fake_peer;
pub mod fake_provider;
pub mod fake_receiver;
pub mod json_table;
pub mod log;
pub mod mail;
pub mod postgres;
pub mod stalling_proxy;
pub mod surface_table;
pub mod unreliable_store;
