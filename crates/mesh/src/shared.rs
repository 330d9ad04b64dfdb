//! What the tasks of one mesh share, and whom the mesh admits.

use std::{collections::BTreeSet, fmt, sync::Arc};

use iroh::{Endpoint, EndpointId, RelayUrl};
use parking_lot::RwLock;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    codes, dial::Dials, handshakes::Handshakes, links::Links, requests::IncomingRequest,
    settings::MeshLimits,
};

/// Whether a peer may connect to this node and send it requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeshGate {
    Refuse,
    Admit,
}

pub(crate) type AskGate = Arc<dyn Fn(&str) -> MeshGate + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) endpoint: Endpoint,
    pub(crate) limits: MeshLimits,
    pub(crate) relays: BTreeSet<RelayUrl>,
    pub(crate) links: Links,
    pub(crate) dials: Dials,
    pub(crate) handshakes: Handshakes,
    pub(crate) queue: mpsc::Sender<IncomingRequest>,
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
    gate: RwLock<AskGate>,
}

impl Shared {
    /// Until it is told whom to admit, it admits nobody.
    pub(crate) fn new(
        endpoint: Endpoint,
        limits: MeshLimits,
        relays: BTreeSet<RelayUrl>,
        queue: mpsc::Sender<IncomingRequest>,
    ) -> Self {
        Self {
            endpoint,
            limits,
            relays,
            links: Links::new(limits.connections),
            dials: Dials::default(),
            handshakes: Handshakes::default(),
            queue,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            gate: RwLock::new(Arc::new(|_| MeshGate::Refuse)),
        }
    }

    pub(crate) fn set_gate(&self, gate: AskGate) {
        *self.gate.write() = gate;
    }

    pub(crate) fn gate_of(&self, peer: &str) -> MeshGate {
        let gate = Arc::clone(&self.gate.read());
        gate(peer)
    }

    /// Runs work that ends with the mesh at the latest.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.tasks.spawn(async move { stopping.run_until_cancelled(work).await });
    }

    /// Closes every connection with a peer, and says so if it is because the peer is not admitted.
    pub(crate) fn disconnect(&self, id: EndpointId) {
        let code = match self.gate_of(&id.to_string()) {
            MeshGate::Refuse => codes::NOT_ADMITTED,
            MeshGate::Admit => codes::DISCONNECTED,
        };
        self.links.close_peer(id, code);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("id", &self.endpoint.id())
            .field("limits", &self.limits)
            .field("relays", &self.relays)
            .finish_non_exhaustive()
    }
}
