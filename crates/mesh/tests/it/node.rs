//! Nodes for tests: on the loopback, with a port of their own, and open to everybody.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use iroh::{
    Endpoint, EndpointAddr, TransportAddr,
    endpoint::{Connection, presets::Minimal},
};
use jurat_mesh::{
    IncomingRequest, Mesh, MeshCallError, MeshGate, MeshLimits, MeshMessage, MeshRequests,
    MeshSettings, NodeAddress,
};

pub(crate) const ALPN: &[u8] = b"jurat/node/1";
/// No test waits for this long.
pub(crate) const LONG: Duration = Duration::from_secs(30);
/// For what does not happen at all.
pub(crate) const SHORT: Duration = Duration::from_millis(100);
pub(crate) const MOST_BODY: usize = 16 * 1024 * 1024;

pub(crate) type Answer = Result<MeshMessage, MeshCallError>;

/// A node of this seed.
pub(crate) async fn node(seed: u8) -> (Mesh, MeshRequests) {
    node_with(seed, MeshLimits::default()).await
}

pub(crate) async fn node_with(seed: u8, limits: MeshLimits) -> (Mesh, MeshRequests) {
    let (mesh, requests) = Mesh::bind(settings(seed, limits)).await.unwrap();
    admit_all(&mesh);
    (mesh, requests)
}

pub(crate) fn settings(seed: u8, limits: MeshLimits) -> MeshSettings {
    MeshSettings {
        seed: [seed; 32],
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        relays: Vec::new(),
        find_local: false,
        limits,
    }
}

pub(crate) fn admit_all(mesh: &Mesh) {
    mesh.set_gate(Arc::new(|_| MeshGate::Admit));
}

pub(crate) fn refuse_all(mesh: &Mesh) {
    mesh.set_gate(Arc::new(|_| MeshGate::Refuse));
}

pub(crate) fn message(head: &str, body: impl Into<Bytes>) -> MeshMessage {
    MeshMessage { head: head.into(), body: body.into() }
}

/// Sends a small request.
pub(crate) async fn ask(mesh: &Mesh, to: &NodeAddress) -> Answer {
    mesh.request(to, message("ping", "body"), LONG, MOST_BODY).await
}

/// What `ask` gets from `echo`.
pub(crate) fn echoed() -> MeshMessage {
    message("ping", "body")
}

/// Answers requests with themselves, one after the other.
pub(crate) async fn echo(requests: &mut MeshRequests) -> Infallible {
    loop {
        answer(next(requests).await).await;
    }
}

/// Answers one request with itself.
pub(crate) async fn answer(mut request: IncomingRequest) {
    if let Ok(body) = request.body(MOST_BODY).await {
        let head = request.head;
        // The caller may be gone.
        let _sent = request.reply.send(MeshMessage { head, body }).await;
    }
}

pub(crate) async fn next(requests: &mut MeshRequests) -> IncomingRequest {
    requests.next().await.unwrap()
}

/// Does one thing while the requests of a node are answered.
pub(crate) async fn with_echo<T>(requests: &mut MeshRequests, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        never = echo(requests) => match never {},
    }
}

/// Does one thing while a call goes on that does not end.
pub(crate) async fn during<T>(
    call: impl Future<Output = Answer>,
    work: impl Future<Output = T>,
) -> T {
    tokio::select! {
        biased;
        done = work => done,
        reply = call => panic!("the call ended: {reply:?}"),
    }
}

/// A peer that speaks QUIC, and otherwise says what it likes.
pub(crate) async fn stranger() -> Endpoint {
    let builder = Endpoint::builder(Minimal).clear_ip_transports();
    builder.bind_addr("127.0.0.1:0").unwrap().bind().await.unwrap()
}

pub(crate) async fn connect(stranger: &Endpoint, to: &NodeAddress) -> Connection {
    stranger.connect(endpoint_addr(to), ALPN).await.unwrap()
}

pub(crate) fn endpoint_addr(to: &NodeAddress) -> EndpointAddr {
    let direct = to.direct.iter().copied().map(TransportAddr::Ip);
    EndpointAddr::from_parts(to.id.parse().unwrap(), direct)
}
