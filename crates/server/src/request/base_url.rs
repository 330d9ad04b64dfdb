//! The URL under which clients reach this server.

use axum::http::{HeaderMap, header};
use jurat_engine::Engine;

/// The base URL of this server: the operator's setting, or the host that the client called.
pub(crate) fn base(engine: &Engine, headers: &HeaderMap) -> String {
    if let Some(url) = engine.public_url() {
        return url.trim_end_matches('/').to_owned();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_plain = |host: &&str| {
        host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b)) && !host.is_empty()
    };
    format!("http://{}", host.filter(is_plain).unwrap_or("localhost"))
}
