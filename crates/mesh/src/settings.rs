//! What a mesh is made of: its key, its addresses, and its limits.

use std::{fmt, net::SocketAddr, time::Duration};

use crate::error::MeshError;

/// How a node takes part in the mesh.
#[derive(Clone)]
pub struct MeshSettings {
    /// The seed of the node's Ed25519 key.
    pub seed: [u8; 32],
    /// The UDP addresses to listen on. Nothing else is bound: a family without an address here has
    /// no socket. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// The URLs of the relays that this node may use. Other relays are never contacted, whatever
    /// an address says.
    pub relays: Vec<String>,
    /// Whether to announce this node on the local network, and to look for others there (mDNS).
    pub find_local: bool,
    pub limits: MeshLimits,
}

/// What peers may use of this node.
#[derive(Debug, Clone, Copy)]
pub struct MeshLimits {
    /// The maximum number of open connections, in both directions together.
    pub connections: usize,
    /// The maximum number of streams that a peer may have open on one connection.
    pub streams_per_connection: u32,
    /// The maximum number of requests that wait for [`crate::MeshRequests::next`]; further ones
    /// wait in their streams.
    pub queued_requests: usize,
    /// The maximum size of a head, both of a request and of a reply.
    pub head_bytes: usize,
    /// How long a peer may stay silent before its connection counts as lost.
    pub idle_timeout: Duration,
    /// The timeout for connecting.
    pub handshake_timeout: Duration,
    /// How long a stream may take to send its head.
    pub head_timeout: Duration,
    /// How long a request's body may take to arrive, and a reply to be taken.
    pub transfer_timeout: Duration,
}

impl Default for MeshLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            streams_per_connection: 64,
            queued_requests: 64,
            head_bytes: 64 * 1024,
            idle_timeout: Duration::from_secs(15),
            handshake_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(10),
            transfer_timeout: Duration::from_mins(1),
        }
    }
}

impl MeshLimits {
    /// Refuses limits that cannot be kept.
    pub(crate) fn check(&self) -> Result<(), MeshError> {
        let idle_ms = u64::try_from(self.idle_timeout.as_millis()).unwrap_or(u64::MAX);
        let limits = [
            ("connections", wide(self.connections), 1, 100_000),
            ("streams_per_connection", self.streams_per_connection.into(), 1, 10_000),
            ("queued_requests", wide(self.queued_requests), 1, 100_000),
            ("head_bytes", wide(self.head_bytes), 0, 1024 * 1024),
            ("idle_timeout (in milliseconds)", idle_ms, 1_000, 3_600_000),
        ];
        for (name, value, least, most) in limits {
            if value < least || most < value {
                return Err(MeshError::Limit { name, value, least, most });
            }
        }
        Ok(())
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl fmt::Debug for MeshSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshSettings")
            .field("listen", &self.listen)
            .field("relays", &self.relays)
            .field("find_local", &self.find_local)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
