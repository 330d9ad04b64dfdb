//! Connects only to checked addresses: it resolves names itself and dials the resolved addresses.

use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Uri, uri::Scheme};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::address::AddressFilter;

/// How many addresses of a host are tried.
const MOST_TRIED: usize = 4;

/// The pending addresses of a host.
pub type ResolveFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names.
pub trait Resolver: fmt::Debug + Send + Sync {
    fn resolve(&self, host: String) -> ResolveFuture;
}

/// The resolver of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: String) -> ResolveFuture {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Connector {
    resolver: Arc<dyn Resolver>,
    permitted: Arc<AddressFilter>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(
        resolver: Arc<dyn Resolver>,
        permitted: Arc<AddressFilter>,
        timeout: Duration,
    ) -> Self {
        Self { resolver, permitted, timeout }
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<TcpStream>> {
        let connected = tokio::time::timeout(self.timeout, self.dial(&uri)).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The addresses of a name. An unknown name and a silent resolver look the same from outside.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let unknown = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
        match tokio::time::timeout(self.timeout / 2, self.resolver.resolve(host.to_owned())).await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(unknown(format!("`{host}` was not resolved: {error}"))),
            Err(_) => Err(unknown(format!("`{host}` was not resolved in time"))),
        }
    }

    async fn dial(&self, uri: &Uri) -> io::Result<TokioIo<TcpStream>> {
        let is_plain = uri.scheme() != Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.resolve(host).await?,
        };
        // One address that is not public makes the others suspect: no public host has one.
        if let Some(refused) =
            addresses.iter().find(|address| !self.permitted.allows(**address, is_plain))
        {
            // The error kind is that of an unknown name: callers must not learn which names exist
            // inside. The text is for the log.
            let text = format!("`{host}` has the address {refused}, which is not allowed");
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let port = uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let mut failed =
            io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
        for address in addresses.into_iter().take(MOST_TRIED) {
            match TcpStream::connect(SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(TokioIo::new(stream)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
