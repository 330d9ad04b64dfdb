//! The stages of a request: authentication, decoding, idempotency, and encoding.

pub(crate) mod auth;
pub(crate) mod base_url;
pub(crate) mod count;
pub(crate) mod cursor;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod error_form;
pub(crate) mod event_stream;
pub(crate) mod idempotency;
pub(crate) mod layers;
pub(crate) mod negotiate;
pub(crate) mod page;
pub(crate) mod prefer;
