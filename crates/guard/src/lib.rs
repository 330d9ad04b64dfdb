//! All contact with untrusted input: the one HTTP client, mail, and evaluation with a work limit.

pub mod client;
pub mod mail;
pub mod public;
pub mod sandbox;
