//! Accepts connections: a limited number, and none that stays open without a request.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::background::BackgroundTasks;
use crate::options::ExecutorLimits;

/// The pause after a failed accept: the machine has run out of a resource and needs time to
/// recover.
const PAUSE: Duration = Duration::from_secs(1);

/// Accepts connections until `shutdown` resolves, then tells the open ones to finish.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    limits: ExecutorLimits,
    tasks: &BackgroundTasks,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let stopping = CancellationToken::new();
    // However this function ends, the connections are told to finish.
    let _stop = stopping.clone().drop_guard();
    let mut shutdown = pin!(shutdown);
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await.map_err(io::Error::other)?;
            Ok((permit, listener.accept().await?.0))
        };
        let accepted: io::Result<_> = tokio::select! {
            () = &mut shutdown => return Ok(()),
            accepted = next => accepted,
        };
        match accepted {
            Ok((permit, stream)) => {
                let (router, stopping) = (router.clone(), stopping.clone());
                tasks.spawn(async move {
                    converse(stream, router, limits.idle, &stopping).await;
                    drop(permit);
                });
            }
            // The listener no longer listens.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                tracing::error!(%error, "could not accept a connection");
                if tokio::time::timeout(PAUSE, &mut shutdown).await.is_ok() {
                    return Ok(());
                }
            }
        }
    }
}

async fn converse(stream: TcpStream, router: Router, idle: Duration, stopping: &CancellationToken) {
    // An answer is written in one piece, so delaying it for more data would only cost time.
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    // How a connection ends does not matter: its requests were answered, or the peer left.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
