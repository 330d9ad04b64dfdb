//! Tests of the mesh from outside: real endpoints that speak QUIC over the loopback.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod admission;
mod ending;
mod exchange;
mod hostile;
mod limits;
mod listening;
mod node;
mod tickets;
