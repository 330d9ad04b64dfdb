//! Makes connections: one at a time for each peer, however many requests wait for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use iroh::{
    EndpointId,
    endpoint::{Connection, ConnectionError},
};
use parking_lot::Mutex;
use tokio::sync::Mutex as WaitingMutex;

use crate::{
    accept,
    address::Destination,
    call::OutgoingStream,
    endpoint::ALPN,
    error::MeshCallError,
    links::{Link, LinkOrigin},
    shared::Shared,
};

/// The peers that are being connected to.
#[derive(Debug, Default)]
pub(crate) struct Dials {
    in_progress: Mutex<BTreeMap<EndpointId, Weak<WaitingMutex<()>>>>,
}

impl Dials {
    /// The lock that is held while connecting to this peer.
    fn lock_of(&self, id: EndpointId) -> Arc<WaitingMutex<()>> {
        let mut in_progress = self.in_progress.lock();
        if let Some(lock) = in_progress.get(&id).and_then(Weak::upgrade) {
            return lock;
        }
        in_progress.retain(|_, lock| 0 < lock.strong_count());
        let lock = Arc::new(WaitingMutex::new(()));
        in_progress.insert(id, Arc::downgrade(&lock));
        lock
    }
}

/// Opens a stream, on a new connection if there is none or if the one there is turns out dead.
pub(crate) async fn open_stream(
    shared: &Arc<Shared>,
    destination: &Destination,
) -> Result<OutgoingStream, MeshCallError> {
    if let Some(link) = shared.links.find(destination.id) {
        // Nothing was sent yet, so another try does nothing twice.
        if let Ok(stream) = open_on(&link).await {
            return Ok(stream);
        }
        shared.links.remove(&link);
    }
    let link = dial(shared, destination).await?;
    Ok(open_on(&link).await?)
}

async fn open_on(link: &Arc<Link>) -> Result<OutgoingStream, ConnectionError> {
    let in_use = link.begin_stream();
    let (send, recv) = link.connection.open_bi().await?;
    Ok(OutgoingStream::new(send, recv, in_use))
}

async fn dial(shared: &Arc<Shared>, destination: &Destination) -> Result<Arc<Link>, MeshCallError> {
    let lock = shared.dials.lock_of(destination.id);
    let _connecting = lock.lock().await;
    // Somebody else may have connected in the meantime.
    if let Some(link) = shared.links.find(destination.id) {
        return Ok(link);
    }
    if shared.stopping.is_cancelled() {
        return Err(MeshCallError::unreachable("the mesh is closed"));
    }
    let connection = connect(shared, destination).await?;
    let link = shared.links.add(connection, LinkOrigin::Dialled).map_err(|full| {
        MeshCallError::unreachable(format!("all {} connections are in use", full.limit))
    })?;
    shared.spawn(accept::serve(Arc::clone(shared), Arc::clone(&link)));
    Ok(link)
}

async fn connect(shared: &Shared, destination: &Destination) -> Result<Connection, MeshCallError> {
    let connecting = shared.endpoint.connect(destination.to_endpoint_addr(), ALPN);
    match tokio::time::timeout(shared.limits.handshake_timeout, connecting).await {
        Ok(connection) => Ok(connection?),
        Err(_) => Err(MeshCallError::unreachable("the peer did not answer in time")),
    }
}
