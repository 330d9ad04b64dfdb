//! Takes connections and streams from peers, of which each may be hostile.

use std::{sync::Arc, time::Duration};

use iroh::endpoint::{Accepting, Connection, Incoming, RecvStream, SendStream, VarInt};

use crate::{
    codes, frame,
    frame::MessageStart,
    handshakes::{HandshakeChoice, HandshakePermit},
    links::{Link, LinkOrigin},
    requests::{IncomingRequest, ReplySlot},
    shared::{MeshGate, Shared},
};

/// Takes connections for as long as the mesh is open.
pub(crate) async fn accept_all(shared: Arc<Shared>) {
    while let Some(incoming) = shared.endpoint.accept().await {
        let from = incoming.remote_addr();
        match shared.handshakes.choose(&from, incoming.remote_addr_validated()) {
            HandshakeChoice::Begin(permit) => begin(&shared, incoming, permit),
            HandshakeChoice::Refuse => incoming.refuse(),
            HandshakeChoice::Validate => {
                if let Err(error) = incoming.retry() {
                    error.into_incoming().refuse();
                }
            }
        }
    }
}

fn begin(shared: &Arc<Shared>, incoming: Incoming, permit: HandshakePermit) {
    match incoming.accept() {
        Ok(accepting) => shared.spawn(greet(Arc::clone(shared), accepting, permit)),
        Err(error) => tracing::debug!(%error, "an incoming connection was not begun"),
    }
}

/// Finds out who connects, and admits or refuses it before it can send anything.
async fn greet(shared: Arc<Shared>, accepting: Accepting, permit: HandshakePermit) {
    let Some(connection) = finish(accepting, shared.limits.handshake_timeout).await else { return };
    drop(permit);
    let peer = connection.remote_id().to_string();
    if shared.gate_of(&peer) == MeshGate::Refuse {
        tracing::debug!(peer.id = peer, "a peer was not admitted");
        close(&connection, codes::NOT_ADMITTED);
        return;
    }
    match shared.links.add(connection, LinkOrigin::Accepted) {
        Ok(link) => serve(shared, link).await,
        Err(full) => {
            tracing::warn!(
                peer.id = peer,
                limit = full.limit,
                "a peer was sent away, because all connections are in use"
            );
        }
    }
}

async fn finish(accepting: Accepting, within: Duration) -> Option<Connection> {
    match tokio::time::timeout(within, accepting).await {
        Ok(Ok(connection)) => Some(connection),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("a handshake took too long");
            None
        }
    }
}

fn close(connection: &Connection, code: VarInt) {
    connection.close(code, codes::meaning(code).as_bytes());
}

/// Takes the streams of a connection until it ends.
pub(crate) async fn serve(shared: Arc<Shared>, link: Arc<Link>) {
    while let Ok((send, recv)) = link.connection.accept_bi().await {
        if shared.gate_of(&link.peer) == MeshGate::Admit {
            shared.spawn(take(Arc::clone(&shared), Arc::clone(&link), send, recv));
            continue;
        }
        match link.origin {
            LinkOrigin::Accepted => link.close(codes::NOT_ADMITTED),
            // This node's own requests go on.
            LinkOrigin::Dialled => end(send, recv, codes::NOT_ADMITTED),
        }
    }
    shared.links.remove(&link);
}

/// Reads the head of a request and hands it over.
async fn take(shared: Arc<Shared>, link: Arc<Link>, send: SendStream, mut recv: RecvStream) {
    let in_use = link.begin_stream();
    shared.links.mark_used(&link);
    let reading = frame::read_start(&mut recv, shared.limits.head_bytes);
    let start = match tokio::time::timeout(shared.limits.head_timeout, reading).await {
        Ok(Ok(start)) => start,
        Ok(Err(_)) => return end(send, recv, codes::BAD_HEAD),
        Err(_) => return end(send, recv, codes::LATE),
    };
    let MessageStart { head, body_bytes } = start;
    let reply = ReplySlot::new(send, in_use, &shared.limits);
    // A full queue lets streams wait; a caller that gives up meanwhile is forgotten.
    tokio::select! {
        biased;
        () = reply.abandoned() => {}
        permit = shared.queue.reserve() => {
            let peer = link.peer.clone();
            let (body, within) = (Some(recv), shared.limits.transfer_timeout);
            if let Ok(permit) = permit {
                permit.send(IncomingRequest { peer, head, body_bytes, reply, body, within });
            }
        }
    }
}

fn end(mut send: SendStream, mut recv: RecvStream, code: VarInt) {
    // Either half may be closed already, and then there is nothing to end.
    let _closed = (send.reset(code), recv.stop(code));
}
