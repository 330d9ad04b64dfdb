//! The mesh itself: it is bound once, asks peers, and is closed.

use std::{collections::BTreeSet, fmt, net::SocketAddr, sync::Arc, time::Duration};

use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use crate::{
    accept,
    address::{Destination, NodeAddress, NodeIdError, parse_id},
    call::MostOfReply,
    codes, dial, endpoint,
    error::{MeshCallError, MeshError},
    frame::{self, MeshMessage},
    requests::MeshRequests,
    settings::MeshSettings,
    shared::{MeshGate, Shared},
};

/// How long the end of the mesh may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// This node among its peers. Clones are the same node.
#[derive(Clone)]
pub struct Mesh {
    shared: Arc<Shared>,
    /// Ends the tasks when the last clone is dropped.
    _stop: Arc<DropGuard>,
}

impl Mesh {
    /// Listens on the addresses. Peers are refused until there is a gate.
    pub async fn bind(settings: MeshSettings) -> Result<(Self, MeshRequests), MeshError> {
        let limits = settings.limits;
        limits.check()?;
        let relays = endpoint::read_relays(&settings.relays)?;
        let endpoint = endpoint::bind(&settings, &relays).await?;
        let (queue, waiting) = mpsc::channel(limits.queued_requests);
        let shared = Arc::new(Shared::new(endpoint, limits, relays, queue));
        let requests = MeshRequests::new(waiting, shared.stopping.clone());
        shared.spawn(accept::accept_all(Arc::clone(&shared)));
        let stop = Arc::new(shared.stopping.clone().drop_guard());
        Ok((Self { shared, _stop: stop }, requests))
    }

    /// The id of this node, in 64 lower-case hexadecimal digits.
    pub fn id(&self) -> String {
        self.shared.endpoint.id().to_string()
    }

    /// Where this node is reached, as far as it knows.
    pub fn address(&self) -> NodeAddress {
        let known = self.shared.endpoint.addr();
        let mut direct = BTreeSet::new();
        for listening in self.shared.endpoint.bound_sockets() {
            if listening.ip().is_unspecified() {
                let is_family = |it: &&SocketAddr| it.is_ipv4() == listening.is_ipv4();
                direct.extend(known.ip_addrs().filter(is_family).copied());
            } else {
                direct.insert(listening);
            }
        }
        let mut relays: Vec<String> = known.relay_urls().map(ToString::to_string).collect();
        if relays.is_empty() {
            // Which of them it will be is not known yet.
            relays = self.shared.relays.iter().map(ToString::to_string).collect();
        }
        NodeAddress { id: self.id(), direct: direct.into_iter().collect(), relays }
    }

    /// Sets who decides which peers are admitted. It is asked for every connection and for every
    /// stream, so it has to answer at once.
    pub fn set_gate(&self, gate: Arc<dyn Fn(&str) -> MeshGate + Send + Sync>) {
        self.shared.set_gate(gate);
    }

    /// Closes the connections with a peer. If the gate refuses the peer, the peer is told. The next
    /// request makes a new connection, so this is also for a peer that is known to have moved.
    pub fn disconnect(&self, peer: &str) -> Result<(), NodeIdError> {
        self.shared.disconnect(parse_id(peer)?);
        Ok(())
    }

    /// Whether a connection with the peer is open.
    pub fn is_connected(&self, peer: &str) -> bool {
        parse_id(peer).is_ok_and(|id| self.shared.links.is_connected(id))
    }

    /// Sends a request and reads its reply, all within one time. The body of the reply may have
    /// `most_body` bytes.
    ///
    /// Dropping the future cancels the request, which the peer notices.
    pub async fn request(
        &self,
        to: &NodeAddress,
        message: MeshMessage,
        within: Duration,
        most_body: usize,
    ) -> Result<MeshMessage, MeshCallError> {
        match tokio::time::timeout(within, self.exchange(to, message, most_body)).await {
            Ok(reply) => reply,
            Err(_) => Err(MeshCallError::Timeout),
        }
    }

    async fn exchange(
        &self,
        to: &NodeAddress,
        message: MeshMessage,
        most_body: usize,
    ) -> Result<MeshMessage, MeshCallError> {
        let most_head = self.shared.limits.head_bytes;
        let start = frame::start_of(&message, most_head)
            .ok_or(MeshCallError::TooLarge { limit: most_head })?;
        let destination = Destination::new(to, &self.shared.relays)
            .map_err(|error| MeshCallError::unreachable(error.to_string()))?;
        let stream = dial::open_stream(&self.shared, &destination).await?;
        let most = MostOfReply { head: most_head, body: most_body };
        stream.exchange(start, message.body, most).await
    }

    /// Closes every connection and stops listening. What is still being answered is lost, so finish
    /// that first.
    pub async fn close(&self) {
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        self.shared.links.close_all(codes::CLOSING);
        let closing = async {
            self.shared.tasks.wait().await;
            self.shared.endpoint.close().await;
        };
        if tokio::time::timeout(CLOSE_WITHIN, closing).await.is_err() {
            tracing::warn!("some peers were not told that the mesh is closed");
        }
    }
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mesh").field("shared", &self.shared).finish_non_exhaustive()
    }
}
