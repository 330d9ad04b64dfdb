//! What touches the untrusted: the one HTTP client, mail, and bounded evaluation of policies.

pub mod client;
pub mod mail;
pub mod public;
pub mod sandbox;
