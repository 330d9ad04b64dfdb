//! Makes connections: one at a time for each address, however many requests wait for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use iroh::{EndpointAddr, endpoint::Connection};
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

/// Held while connecting, with the failure that everybody who waits shares.
type Dial = WaitingMutex<Option<MeshCallError>>;

/// The connections that are being made.
#[derive(Debug, Default)]
pub(crate) struct Dials {
    in_progress: Mutex<BTreeMap<EndpointAddr, Weak<Dial>>>,
}

impl Dials {
    /// The attempt that others wait for already, or a new one.
    fn join(&self, address: &EndpointAddr) -> Arc<Dial> {
        let mut in_progress = self.in_progress.lock();
        if let Some(dial) = in_progress.get(address).and_then(Weak::upgrade) {
            return dial;
        }
        in_progress.retain(|_, dial| 0 < dial.strong_count());
        let dial = Arc::new(Dial::default());
        in_progress.insert(address.clone(), Arc::downgrade(&dial));
        dial
    }
}

/// Opens a stream, on the connection there is or on a new one.
pub(crate) async fn open_stream(
    shared: &Arc<Shared>,
    destination: &Destination,
) -> Result<OutgoingStream, MeshCallError> {
    let link = link_to(shared, destination).await?;
    match open_on(&link).await {
        // Nothing was sent yet, so another try does nothing twice.
        Err(MeshCallError::Disconnected { .. }) => {
            shared.links.remove(&link);
            open_on(&link_to(shared, destination).await?).await
        }
        opened => opened,
    }
}

/// Waits while the peer takes no further stream.
async fn open_on(link: &Arc<Link>) -> Result<OutgoingStream, MeshCallError> {
    let in_use = link.begin_stream();
    let (send, recv) = link.connection.open_bi().await?;
    Ok(OutgoingStream::new(send, recv, in_use))
}

async fn link_to(
    shared: &Arc<Shared>,
    destination: &Destination,
) -> Result<Arc<Link>, MeshCallError> {
    match shared.links.find(destination.id) {
        Some(link) => Ok(link),
        None => dial(shared, destination).await,
    }
}

async fn dial(shared: &Arc<Shared>, destination: &Destination) -> Result<Arc<Link>, MeshCallError> {
    let address = destination.to_endpoint_addr();
    let dial = shared.dials.join(&address);
    let mut failure = dial.lock().await;
    // Somebody else may have connected in the meantime, or have tried.
    if let Some(link) = shared.links.find(destination.id) {
        return Ok(link);
    }
    if let Some(failure) = &*failure {
        return Err(failure.clone());
    }
    let connected = connect(shared, address.clone()).await;
    if let Err(error) = &connected {
        *failure = Some(error.clone());
        // Whoever comes later tries again.
        shared.dials.in_progress.lock().remove(&address);
    }
    connected
}

async fn connect(shared: &Arc<Shared>, address: EndpointAddr) -> Result<Arc<Link>, MeshCallError> {
    if shared.stopping.is_cancelled() {
        return Err(MeshCallError::unreachable("the mesh is closed"));
    }
    let connection = handshake(shared, address).await?;
    let link = shared.links.add(connection, LinkOrigin::Dialled).map_err(|full| {
        MeshCallError::unreachable(format!("all {} connections are in use", full.limit))
    })?;
    shared.spawn(accept::serve(Arc::clone(shared), Arc::clone(&link)));
    Ok(link)
}

async fn handshake(shared: &Shared, address: EndpointAddr) -> Result<Connection, MeshCallError> {
    let connecting = shared.endpoint.connect(address, ALPN);
    match tokio::time::timeout(shared.limits.handshake_timeout, connecting).await {
        Ok(connection) => Ok(connection?),
        Err(_) => Err(MeshCallError::unreachable("the peer did not answer in time")),
    }
}
