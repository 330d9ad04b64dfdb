//! The inbound surfaces of Jurat. Each request takes three beats: decode, one engine call, encode.

mod accept;
mod auth;
mod client_address;
mod count;
mod decode;
mod encode;
mod framing;
mod http;
mod inbound;
mod layers;
mod mcp;
mod negotiate;
mod once;
mod openapi;
mod pace;
mod prefer;

use std::{
    future::{Future, pending},
    io,
};

use axum::Router;
use jurat_engine::Engine;
use tokio::net::TcpListener;

use self::{accept::Connections, mcp::Hosts};
pub use self::{
    auth::Peer,
    http::{Access, RouteInfo, route_table},
    inbound::{Front, Inbound},
    openapi::openapi,
};

/// Every route of the server, for callers on this machine.
pub fn router(engine: Engine) -> Router {
    http::router(engine, Hosts::default())
}

/// Serves until `stop` is done, then finishes what is under way, for a while.
///
/// From the stop on no round begins, but all else is answered until the last round has ended.
pub async fn serve(
    listener: TcpListener,
    engine: Engine,
    front: Front,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let Front { inbound, hosts, trusted_proxies } = front;
    let router = http::router(engine.clone(), Hosts::new(listener.local_addr()?.ip(), &hosts));
    let connections = Connections::new(engine.clone(), router, (inbound, trusted_proxies));
    let ended = tokio::select! {
        Err(error) = connections.accept(&listener) => Err(error),
        () = stopped(&engine, &inbound, stop) => Ok(()),
    };
    drop(listener);
    connections.close().await;
    ended
}

/// Done when nothing keeps the server any more.
async fn stopped(engine: &Engine, inbound: &Inbound, stop: impl Future<Output = ()>) {
    stop.await;
    engine.stop_rounds();
    let noticed = tokio::time::timeout(inbound.shutdown_delay, pending::<()>());
    let drained = tokio::time::timeout(inbound.drain, engine.drain());
    let (_, drained) = tokio::join!(noticed, drained);
    if drained.is_err() {
        tracing::warn!("releasing rounds that did not end in time");
        // A store that does not answer must not keep the process.
        let _elapsed = tokio::time::timeout(inbound.close_timeout, engine.release()).await;
    }
}
