//! The inbound surfaces of Jurat. Each request has three steps: decode, one engine call, encode.

mod a2a;
mod mcp;
mod openapi;
mod operation;
mod peers;
mod request;
mod resources;
mod router;
mod transport;

use std::{future::Future, io};

use axum::Router;
use jurat_engine::{Engine, pause};
use tokio::net::TcpListener;

pub use crate::{
    mcp::sets::TOOL_SETS,
    openapi::openapi,
    operation::{RouteAccess, RouteInfo},
    peers::PeerOptions,
    request::auth::PeerAddress,
    router::route_table,
    transport::inbound::{InboundLimits, ServerOptions},
};
use crate::{
    mcp::{AllowedHosts, ToolOffer},
    router::RouterOptions,
    transport::accept::Connections,
};

/// Every route of the server, for callers on this machine.
pub fn router(engine: Engine) -> Router {
    router_with(engine, PeerOptions::default())
}

/// Every route of the server, with what the operator turned on for other systems.
pub fn router_with(engine: Engine, peers: PeerOptions) -> Router {
    router::router(
        engine,
        AllowedHosts::default(),
        RouterOptions { peers, ..RouterOptions::default() },
    )
}

/// Serves until `stop` resolves, then finishes the work in progress within limits.
///
/// After `stop`, no new round starts; other requests are answered until the last round has ended.
pub async fn serve(
    listener: TcpListener,
    engine: Engine,
    front: ServerOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let ServerOptions { inbound, hosts, trusted_proxies, tools, peers } = front;
    let hosts = AllowedHosts::new(listener.local_addr()?.ip(), &hosts);
    let options = RouterOptions { tools: ToolOffer::new(&tools), peers };
    let router = router::router(engine.clone(), hosts, options);
    let connections = Connections::new(engine.clone(), router, (inbound, trusted_proxies));
    let ended = tokio::select! {
        Err(error) = connections.accept(&listener) => Err(error),
        () = stopped(&engine, &inbound, stop) => Ok(()),
    };
    drop(listener);
    connections.close().await;
    ended
}

/// Resolves after `stop`, the shutdown delay, and the end or release of all open rounds.
async fn stopped(engine: &Engine, inbound: &InboundLimits, stop: impl Future<Output = ()>) {
    stop.await;
    engine.stop_rounds();
    let drained = tokio::time::timeout(inbound.drain, engine.drain());
    let ((), drained) = tokio::join!(pause(inbound.shutdown_delay), drained);
    if drained.is_err() {
        tracing::warn!("releasing rounds that did not end in time");
        // A store that does not answer must not block the process.
        let _elapsed = tokio::time::timeout(inbound.close_timeout, engine.release()).await;
    }
}
