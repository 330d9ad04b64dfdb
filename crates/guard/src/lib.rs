//! What touches the untrusted: the one HTTP client, and bounded evaluation of policies.

pub mod bounded;
pub mod client;
pub mod public;
