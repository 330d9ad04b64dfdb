//! The inbound surfaces of Jurat. Each request takes three beats: decode, one engine call, encode.

mod auth;
mod count;
mod decode;
mod encode;
mod http;
mod layers;
mod openapi;

use std::{
    future::{Future, IntoFuture as _},
    io,
    time::Duration,
};

use axum::Router;
use jurat_engine::Engine;
use tokio::{net::TcpListener, sync::oneshot};

pub use self::{
    http::{Access, RouteInfo, route_table},
    openapi::openapi,
};

/// Every route of the server.
pub fn router(engine: Engine) -> Router {
    http::router(engine)
}

/// How long connections may take to end once the server stops.
const DRAIN: Duration = Duration::from_secs(30);

/// Serves until `stop` is done, then finishes what is under way, for a while.
pub async fn serve(
    listener: TcpListener,
    engine: Engine,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopping, stopped) = oneshot::channel();
    let stop = async move {
        stop.await;
        // The other side waits as long as the server runs.
        let _gone = stopping.send(());
    };
    let too_long = async move {
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
        let _elapsed = tokio::time::timeout(DRAIN, std::future::pending::<()>()).await;
    };
    tokio::select! {
        ended = axum::serve(listener, router(engine)).with_graceful_shutdown(stop).into_future() => ended,
        () = too_long => {
            tracing::warn!("connections that did not end were dropped");
            Ok(())
        }
    }
}
