//! The inbound surfaces of Jurat. Each request takes three beats: decode, one engine call, encode.

mod auth;
mod decode;
mod encode;
mod http;
mod layers;

use std::{future::Future, io};

use axum::Router;
use jurat_engine::Engine;
use tokio::net::TcpListener;

pub use self::http::{Access, RouteInfo, route_table};

/// Every route of the server.
pub fn router(engine: Engine) -> Router {
    http::router(engine)
}

/// Serves until `stop` is done, then finishes what is under way.
pub async fn serve(
    listener: TcpListener,
    engine: Engine,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, router(engine)).with_graceful_shutdown(stop).await
}
