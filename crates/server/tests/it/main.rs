//! Tests of the HTTP surface: requests in, replies out, through the whole walk.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::panic, reason = "a test may stop at the first surprise")]

mod a2a;
mod api;
mod auth;
mod chat;
mod coverage;
mod examples;
mod hostile;
mod idempotency;
mod inbound;
mod json;
mod limits;
mod mcp;
mod metrics;
mod openapi;
mod overload;
mod peer;
mod postgres;
mod signature;
mod storage;
mod stream;
mod surfaces;
mod tenants;
mod v1;
mod verify;
mod without_waiting;
mod x402;
