//! Fakes that speak real HTTP, for the tests of the other crates.

pub mod fake_executor;
