//! The URL under which clients reach this server.

use std::{net::SocketAddr, sync::Arc};

use axum::http::{HeaderMap, header, request::Parts};
use jurat_engine::Engine;

use crate::mcp::AllowedHosts;

/// The address of this machine at which a request arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalAddress(pub(crate) SocketAddr);

/// The base URL of this server in a card.
#[derive(Debug, Clone)]
pub(crate) struct CardBase {
    pub(crate) url: String,
    /// Whether the node may sign for the URL.
    pub(crate) is_own: bool,
}

/// The base URL of this server: the operator's setting, or the host that the client called.
pub(crate) fn base(engine: &Engine, headers: &HeaderMap) -> String {
    configured(engine).unwrap_or_else(|| url_of(called(headers).unwrap_or("localhost")))
}

/// The base URL for a card: the operator's setting, or the host that the client called if it is one
/// of this server. For another host, the card names the address at which the request arrived.
///
/// The node signs only for the operator's setting, and for the host and port at which the request
/// arrived: otherwise it would sign for any host that a request names, and for other programs on
/// its own host.
pub(crate) fn of_card(engine: &Engine, parts: &Parts) -> CardBase {
    if let Some(url) = configured(engine) {
        return CardBase { url, is_own: true };
    }
    let arrived = parts.extensions.get::<ArrivalAddress>().map(|ArrivalAddress(at)| *at);
    let hosts = parts.extensions.get::<Arc<AllowedHosts>>();
    let is_own = |host: &&str| hosts.is_some_and(|hosts| hosts.owns(host, arrived));
    if let Some(host) = called(&parts.headers).filter(is_own) {
        return CardBase { url: url_of(host), is_own: AllowedHosts::is_port_of(host, arrived) };
    }
    let address = arrived.map_or_else(|| "localhost".to_owned(), |at| at.to_string());
    CardBase { url: url_of(&address), is_own: !parts.headers.contains_key(header::HOST) }
}

fn configured(engine: &Engine) -> Option<String> {
    engine.public_url().map(|url| url.trim_end_matches('/').to_owned())
}

/// The host that the client called, with its port.
fn called(headers: &HeaderMap) -> Option<&str> {
    let is_plain = |host: &&str| {
        host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b)) && !host.is_empty()
    };
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(is_plain)
}

fn url_of(host: &str) -> String {
    format!("http://{host}")
}
