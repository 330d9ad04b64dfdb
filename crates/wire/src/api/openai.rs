//! The OpenAI shape: chat completions whose model is a consensus profile.

pub mod error;
pub mod messages;
pub mod models;
pub mod profile;
pub mod reply;
pub mod request;
