//! Accepts connections: a limited number, and none that stays open without a request.

use std::{
    convert::Infallible,
    error::Error,
    io::{self, Write as _},
    net::Shutdown,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody},
    http::{HeaderValue, Request, Response, header},
};
use bytes::Bytes;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use jurat_core::code::ProblemCode;
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

use super::{client_address, framing, inbound::InboundLimits, pace::PacedBody};
use super::{
    connection_stream::{ConnectionPhase, ConnectionStream},
    connections::ConnectionPermits,
};
use crate::{
    request::{
        auth::{self, LoopbackMark, PeerAddress},
        base_url::ArrivalAddress,
        encode, error_form, layers,
    },
    router,
};

/// The pause after a failed accept: the machine has run out of a resource and needs time to
/// recover.
const PAUSE: Duration = Duration::from_millis(200);
/// How long, and how much, is read and discarded after a reply that came before its request ended.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: u64 = 4 * 1024 * 1024;

/// The connections of a server, and how to end them.
#[derive(Debug)]
pub(crate) struct Connections {
    engine: Engine,
    router: Router,
    inbound: InboundLimits,
    trusted: Arc<[IpNet]>,
    tracker: TaskTracker,
    closing: CancellationToken,
    forced_close: CancellationToken,
}

impl Connections {
    pub(crate) fn new(
        engine: Engine,
        router: Router,
        (inbound, trusted): (InboundLimits, Vec<IpNet>),
    ) -> Self {
        Self {
            engine,
            router,
            inbound,
            trusted: trusted.into(),
            tracker: TaskTracker::new(),
            closing: CancellationToken::new(),
            forced_close: CancellationToken::new(),
        }
    }

    /// Accepts connections for as long as it is polled.
    pub(crate) async fn accept(&self, listener: &TcpListener) -> io::Result<Infallible> {
        let places = ConnectionPermits::new(&self.inbound, Arc::clone(&self.trusted));
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let figures = self.engine.metrics().requests();
                    if let Some(place) = places.take(peer.ip()) {
                        let conversation = self.conversation(stream);
                        let counted = figures.connection();
                        self.tracker.spawn(async move {
                            conversation.await;
                            drop((place, counted));
                        });
                    } else {
                        figures.connection_refused();
                        refuse(stream, encode::retry_after(self.engine.clock().bits()));
                    }
                }
                // The listener no longer listens.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "could not accept a connection");
                    jurat_engine::pause(PAUSE).await;
                }
            }
        }
    }

    /// Lets the connections finish within a limit, and drops those that do not.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tracker.close();
        if tokio::time::timeout(self.inbound.close_timeout, self.tracker.wait()).await.is_err() {
            tracing::warn!(
                connections = self.tracker.len(),
                "dropping connections that did not end in time"
            );
            self.forced_close.cancel();
            self.tracker.wait().await;
        }
    }

    fn conversation(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static {
        let (router, inbound, closing) = (self.router.clone(), self.inbound, self.closing.clone());
        let (engine, out_of_patience) = (self.engine.clone(), self.forced_close.clone());
        let trusted = Arc::clone(&self.trusted);
        async move {
            let conversation = converse(stream, router, engine, (inbound, trusted), &closing);
            out_of_patience.run_until_cancelled(conversation).await;
        }
    }
}

/// Serves one connection to its end. How it ends does not matter.
async fn converse(
    stream: TcpStream,
    router: Router,
    engine: Engine,
    (inbound, trusted): (InboundLimits, Arc<[IpNet]>),
    closing: &CancellationToken,
) {
    // A reply is written in one piece, so delaying it for more data would only cost time.
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_addr().ok().map(|peer| peer.ip());
    let arrived = stream.local_addr().ok().map(ArrivalAddress);
    let (line, phase, returned) = ConnectionStream::new(stream, inbound);
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(peer) = peer {
            let client = client_address::client(peer, request.headers(), &trusted);
            if auth::is_from_this_machine(peer, request.headers(), &trusted) {
                request.extensions_mut().insert(LoopbackMark);
            }
            request.extensions_mut().insert(PeerAddress(client));
        }
        if let Some(arrived) = arrived {
            request.extensions_mut().insert(arrived);
        }
        answer(router.clone(), engine.clone(), request, inbound, phase.clone())
    });
    let mut http = http1::Builder::new();
    // The stream watches a head that has started; this is the wait for the next one.
    http.timer(TokioTimer::new()).header_read_timeout(inbound.idle_timeout);
    http.max_headers(inbound.max_headers).max_header_size(inbound.max_head_bytes);
    let ended = {
        let mut connection = pin!(http.serve_connection(TokioIo::new(line), service));
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let is_late = ended.as_ref().is_err_and(|error| error.is_timeout() || has_timed_out(error));
    if let (false, Ok(stream)) = (is_late, returned.await) {
        // A stop waits for replies, not for peers to leave.
        closing.run_until_cancelled(linger(stream)).await;
    }
}

async fn answer(
    mut router: Router,
    engine: Engine,
    request: Request<Incoming>,
    inbound: InboundLimits,
    phase: ConnectionPhase,
) -> Result<Response<ReplyBody>, Infallible> {
    phase.busy();
    let is_round = router::begins_rounds(request.method().as_str(), request.uri().path());
    if is_round && engine.is_late(auth::key(request.headers())) {
        let response = layers::late(&engine, router::error_form(request.uri().path()));
        return Ok(response.map(|body| ReplyBody { body, phase }));
    }
    if let Some(problem) = framing::fault(&request) {
        let form = router::error_form(request.uri().path());
        let mut response = error_form::written(encode::problem(&problem), form).await;
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return Ok(response.map(|body| ReplyBody { body, phase }));
    }
    // A length next to it is overruled and removed before it gets here, so a proxy may take what
    // follows such a request on the connection for a part of it.
    let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    let request = request.map(|body| Body::new(PacedBody::new(body, inbound)));
    let mut response = router.call(request).await?;
    if is_chunked {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| ReplyBody { body, phase }))
}

/// The body of a reply, after which the connection is idle.
#[derive(Debug)]
struct ReplyBody {
    body: Body,
    phase: ConnectionPhase,
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        self.phase.idle();
    }
}

impl HttpBody for ReplyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads on for a moment: closing with unread bytes would take the reply away from the peer.
async fn linger(stream: TcpStream) {
    let (mut rest, mut nowhere) = (stream.take(LINGER_BYTES), tokio::io::sink());
    let drained = tokio::io::copy(&mut rest, &mut nowhere);
    let _elapsed = tokio::time::timeout(LINGER, drained).await;
}

/// Refuses a connection beyond the limit, without waiting for anything.
fn refuse(stream: TcpStream, retry_after: u64) {
    let problem =
        Problem::new(ProblemCode::Overloaded, "too many connections are open").body().to_string();
    let length = problem.len();
    let reply = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: {retry_after}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{problem}"
    );
    // A peer that does not receive it learns the same from the end of the connection.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(reply.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn has_timed_out(error: &hyper::Error) -> bool {
    let source = error.source().and_then(<dyn Error>::downcast_ref::<io::Error>);
    source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}
