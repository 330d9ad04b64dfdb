//! All limits on connections, and on the duration of a stop.

use std::time::Duration;

use ipnet::IpNet;

use crate::peers::PeerOptions;

/// The limits and names of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerOptions {
    pub inbound: InboundLimits,
    /// Names of this server besides `localhost` and its listening address.
    pub hosts: Vec<String>,
    /// Sets of tools for models, by the words of `TOOL_SETS`; none offers all.
    pub tools: Vec<String>,
    /// Proxies that may name the client of a request.
    pub trusted_proxies: Vec<IpNet>,
    /// What is on for clients and registries of other systems.
    pub peers: PeerOptions,
}

/// The limits on what comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboundLimits {
    /// Concurrent connections; one more is told to retry and closed.
    pub max_connections: usize,
    /// Concurrent connections from one address of another machine; the loopback may use them all.
    pub max_connections_per_address: usize,
    /// How long the head of a request may take: the first one from the start of the connection, a
    /// later one from its first byte.
    pub header_timeout: Duration,
    /// How long a connection may wait for its next request.
    pub idle_timeout: Duration,
    pub max_headers: usize,
    /// The maximum size of a request line with its headers, in bytes.
    pub max_head_bytes: usize,
    /// When the first byte of a body must have arrived, and from when on its rate counts.
    pub body_grace: Duration,
    /// The longest time that a body may take, however steadily it arrives.
    pub body_timeout: Duration,
    /// Bytes per second, on average since the start of the body.
    pub min_body_rate: u64,
    /// How long a peer may leave its reply unread before it is dropped.
    pub write_timeout: Duration,
    /// How long rounds in progress may take once the server stops; then they are released.
    pub drain: Duration,
    /// How long a stopping server keeps serving, so that load balancers notice.
    pub shutdown_delay: Duration,
    /// How long connections may take to end after the last round.
    pub close_timeout: Duration,
}

impl Default for InboundLimits {
    fn default() -> Self {
        Self {
            max_connections: 4_096,
            max_connections_per_address: 256,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(1),
            max_headers: 64,
            max_head_bytes: 32 * 1024,
            body_grace: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            min_body_rate: 1_024,
            write_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(25),
            shutdown_delay: Duration::ZERO,
            close_timeout: Duration::from_secs(5),
        }
    }
}

impl InboundLimits {
    /// How long a body may have taken so far, given its received bytes.
    pub(crate) fn body_allowance(&self, received: u64) -> Duration {
        let rate = self.min_body_rate.max(1);
        let at_least = Duration::from_millis(received.saturating_mul(1_000) / rate);
        at_least.max(self.body_grace).min(self.body_timeout)
    }

    /// How many bytes a peer must read within the write timeout.
    pub(crate) fn write_floor(&self) -> u64 {
        let millis = u64::try_from(self.write_timeout.as_millis()).unwrap_or(u64::MAX);
        self.min_body_rate.saturating_mul(millis) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_grace_period_a_minimum_rate_and_a_total_limit() {
        let inbound = InboundLimits::default();
        let cases = [(0, 10), (1, 10), (10 * 1_024, 10), (20 * 1_024, 20), (1_024 * 1_024, 30)];
        for (received, seconds) in cases {
            assert_eq!(inbound.body_allowance(received), Duration::from_secs(seconds));
        }
        assert_eq!(
            InboundLimits { min_body_rate: 0, ..inbound }.body_allowance(0),
            inbound.body_grace
        );
    }
}
