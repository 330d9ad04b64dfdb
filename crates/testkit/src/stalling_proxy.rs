//! A TCP proxy that stops forwarding on request, like a stalled network.

use std::sync::Arc;

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use url::Url;

/// The current state of all links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkFlow {
    Open,
    /// Nothing is lost, and nothing arrives.
    Stalled,
}

#[derive(Debug)]
struct Links {
    flow: watch::Sender<LinkFlow>,
    /// Bytes from clients held since the links stalled.
    held: watch::Sender<usize>,
    /// How many times all links were cut; a link ends when this number grows.
    cuts: watch::Sender<usize>,
}

/// A proxy between clients and one server. All its links stall together.
#[derive(Debug)]
pub struct StallingProxy {
    port: u16,
    links: Arc<Links>,
    accepting: JoinHandle<()>,
}

impl StallingProxy {
    /// Starts a proxy to the server of a URL.
    pub async fn to(server: &str) -> Self {
        let server = Url::parse(server).unwrap();
        let upstream = (server.host_str().unwrap().to_owned(), server.port().unwrap());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let links = Arc::new(Links {
            flow: watch::Sender::new(LinkFlow::Open),
            held: watch::Sender::new(0),
            cuts: watch::Sender::new(0),
        });
        #[expect(clippy::disallowed_methods, reason = "a fake ends with its test")]
        let accepting = tokio::spawn(accept(listener, upstream, Arc::clone(&links)));
        Self { port, links, accepting }
    }

    /// The same URL through this proxy.
    pub fn url(&self, of: &str) -> String {
        let mut url = Url::parse(of).unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(self.port)).unwrap();
        url.into()
    }

    /// Stops forwarding in both directions.
    pub fn stall(&self) {
        self.links.held.send_replace(0);
        self.links.flow.send_replace(LinkFlow::Stalled);
    }

    /// Forwards the held data and everything that follows.
    pub fn go_on(&self) {
        self.links.flow.send_replace(LinkFlow::Open);
    }

    /// Ends every link and drops the data it holds. New links are open.
    pub fn cut(&self) {
        self.links.cuts.send_modify(|count| *count += 1);
        self.go_on();
    }

    /// Waits until the stall holds data from a client.
    pub async fn holds_something(&self) {
        let mut held = self.links.held.subscribe();
        held.wait_for(|bytes| 0 < *bytes).await.unwrap();
    }
}

impl Drop for StallingProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, upstream: (String, u16), links: Arc<Links>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let (upstream, links) = (upstream.clone(), Arc::clone(&links));
        #[expect(clippy::disallowed_methods, reason = "a fake ends with its test")]
        tokio::spawn(async move {
            let mut cuts = links.cuts.subscribe();
            let cuts_before = *cuts.borrow();
            tokio::select! {
                () = link(client, upstream, &links) => {}
                _ = cuts.wait_for(|count| cuts_before < *count) => {}
            }
        });
    }
}

async fn link(client: TcpStream, upstream: (String, u16), links: &Links) {
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let asked = forward(from_client, to_server, &links.flow, Some(&links.held));
    let answered = forward(from_server, to_client, &links.flow, None);
    // A side that has ended sends nothing more, but still receives.
    tokio::join!(asked, answered);
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    flow: &watch::Sender<LinkFlow>,
    held: Option<&watch::Sender<usize>>,
) {
    let mut flow = flow.subscribe();
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count) = from.read(&mut bytes).await {
        if let (Some(held), LinkFlow::Stalled) = (held, *flow.borrow()) {
            held.send_modify(|waiting| *waiting += count);
        }
        let is_open = flow.wait_for(|flow| *flow == LinkFlow::Open).await.is_ok();
        if !is_open || count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
