//! Builds the QUIC endpoint: only the addresses and the relays that were named, and no public
//! server.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use iroh::{
    Endpoint, NetReportConfig, RelayMode, RelayUrl, SecretKey,
    dns::DnsResolver,
    endpoint::{
        BindOpts, Builder, InvalidSocketAddr, QuicTransportConfig, VarInt, presets::Minimal,
    },
    tls::CaTlsConfig,
};

use crate::{
    error::{MeshError, plain},
    local_lookup::FindLocal,
    settings::{MeshLimits, MeshSettings},
};

/// What this protocol is called in a handshake.
pub(crate) const ALPN: &[u8] = b"jurat/node/1";

/// How much of one stream may wait to be read.
const STREAM_WINDOW: u64 = 256 * 1024;
/// Streams of this node's own, whose replies arrive even if a peer fills all of its streams.
const OWN_STREAMS: u64 = 16;
/// How much may wait for a peer's acknowledgement on one connection.
const SEND_WINDOW: u64 = 2 * 1024 * 1024;
/// What iroh allows at most between two signs of life.
const MOST_BETWEEN_SIGNS: Duration = Duration::from_secs(5);
/// What iroh allows at most without a sign of life on one path.
const MOST_PATH_IDLE: Duration = Duration::from_secs(15);

/// Binds the endpoint. The relays were read before.
pub(crate) async fn bind(
    settings: &MeshSettings,
    relays: &BTreeSet<RelayUrl>,
) -> Result<Endpoint, MeshError> {
    if settings.listen.is_empty() && relays.is_empty() {
        return Err(MeshError::NoAddress);
    }
    let failed = |reason: String| MeshError::Bind { listen: settings.listen.clone(), reason };
    let mut builder = Endpoint::builder(Minimal)
        .secret_key(SecretKey::from_bytes(&settings.seed))
        .alpns(vec![ALPN.to_vec()])
        .transport_config(transport(&settings.limits))
        // Without these it would ask public name servers when those of the machine do not answer.
        .dns_resolver(DnsResolver::builder().with_system_defaults().disable_fallback().build());
    if !relays.is_empty() {
        builder = use_relays(builder, relays);
    }
    if settings.find_local {
        builder = builder.address_lookup(FindLocal);
    }
    builder = listen(builder, &settings.listen).map_err(|error| failed(format!("{error:#}")))?;
    builder.bind().await.map_err(|error| failed(plain(&format!("{error:#}"))))
}

/// Reads the URLs of relays.
pub(crate) fn read_relays(urls: &[String]) -> Result<BTreeSet<RelayUrl>, MeshError> {
    let read = |url: &String| url.parse().map_err(|_| MeshError::Relay { url: url.clone() });
    urls.iter().map(read).collect()
}

fn use_relays(builder: Builder, relays: &BTreeSet<RelayUrl>) -> Builder {
    let mut report = NetReportConfig::default();
    report.captive_portal_check = false;
    builder
        .relay_mode(RelayMode::custom(relays.iter().cloned()))
        .net_report_config(report)
        .ca_tls_config(CaTlsConfig::system())
}

/// Binds these addresses and nothing else. One of each family is where packets leave if no other
/// fits; iroh wants that one last.
fn listen(builder: Builder, addresses: &[SocketAddr]) -> Result<Builder, InvalidSocketAddr> {
    let mut builder = builder.clear_ip_transports();
    for is_family in [SocketAddr::is_ipv4, SocketAddr::is_ipv6] {
        let family: Vec<SocketAddr> =
            addresses.iter().filter(|it| is_family(it)).copied().collect();
        let Some(default) = default_route(&family) else { continue };
        for address in family.iter().filter(|it| **it != default) {
            let prefix = if address.is_ipv4() { 32 } else { 128 };
            let options = BindOpts::default().set_prefix_len(prefix).set_is_default_route(false);
            builder = builder.bind_addr_with_opts(*address, options)?;
        }
        builder = builder.bind_addr(default)?;
    }
    Ok(builder)
}

/// The widest of the addresses of one family.
fn default_route(family: &[SocketAddr]) -> Option<SocketAddr> {
    let wildcard = family.iter().find(|it| it.ip().is_unspecified());
    let outside = family.iter().find(|it| !it.ip().is_loopback());
    wildcard.or(outside).or(family.first()).copied()
}

fn transport(limits: &MeshLimits) -> QuicTransportConfig {
    let idle = u32::try_from(limits.idle_timeout.as_millis()).unwrap_or(u32::MAX);
    let streams = u64::from(limits.streams_per_connection);
    let window = (streams + OWN_STREAMS) * STREAM_WINDOW;
    let signs = (limits.idle_timeout / 3).min(MOST_BETWEEN_SIGNS);
    QuicTransportConfig::builder()
        .max_concurrent_bidi_streams(limits.streams_per_connection.into())
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(Some(VarInt::from_u32(idle).into()))
        .keep_alive_interval(signs)
        .default_path_keep_alive_interval(signs)
        .default_path_max_idle_timeout(limits.idle_timeout.min(MOST_PATH_IDLE))
        .stream_receive_window(VarInt::from_u64(STREAM_WINDOW).unwrap_or(VarInt::MAX))
        .receive_window(VarInt::from_u64(window).unwrap_or(VarInt::MAX))
        .send_window(SEND_WINDOW)
        .build()
}
