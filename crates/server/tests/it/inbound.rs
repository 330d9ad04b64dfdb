//! Connections that misbehave, over real sockets: each ends by itself, and honest ones notice
//! nothing.

mod bodies;
mod heads;
mod limits;
mod proxies;
mod stalls;
mod stop;

use std::{net::SocketAddr, time::Duration};

use jurat_server::{InboundLimits, ServerOptions};
use jurat_testkit::app::TestApp;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};

/// Long for a machine, short for a person who waits for the test.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// Longer than any test.
const NEVER: Duration = Duration::from_hours(1);

/// Long limits; a test shortens the one it is about.
pub(crate) fn patient() -> InboundLimits {
    InboundLimits {
        header_timeout: NEVER,
        idle_timeout: NEVER,
        body_grace: NEVER,
        body_timeout: NEVER,
        write_timeout: NEVER,
        ..InboundLimits::default()
    }
}

/// A server on a port of its own. It ends when this is dropped.
pub(crate) struct Served {
    pub(crate) app: TestApp,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    server: JoinSet<()>,
}

impl Served {
    pub(crate) async fn with(inbound: InboundLimits) -> Self {
        Self::on(TestApp::new().await, inbound).await
    }

    pub(crate) async fn on(app: TestApp, inbound: InboundLimits) -> Self {
        Self::behind(app, ServerOptions { inbound, ..ServerOptions::default() }).await
    }

    pub(crate) async fn behind(app: TestApp, front: ServerOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let engine = app.engine.clone();
        let mut server = JoinSet::new();
        server.spawn(async move {
            let stopped = async { drop(stopped.await) };
            jurat_server::serve(listener, engine, front, stopped).await.unwrap();
        });
        Self { app, address, stop: Some(stop), server }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn connect(&self) -> Peer {
        Peer(TcpStream::connect(self.address).await.unwrap())
    }

    /// Connects and sends some bytes.
    pub(crate) async fn says(&self, bytes: &str) -> Peer {
        let mut peer = self.connect().await;
        peer.say(bytes).await;
        peer
    }

    /// Tells it to stop.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) {
        self.server.join_next().await.unwrap().unwrap();
    }
}

/// The other end of a connection.
pub(crate) struct Peer(TcpStream);

impl Peer {
    pub(crate) async fn say(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Everything that arrives until the server closes.
    pub(crate) async fn rest(&mut self) -> String {
        let mut all = Vec::new();
        // A reset is an end, too.
        drop(self.0.read_to_end(&mut all).await);
        String::from_utf8(all).unwrap()
    }

    /// Reads until this text has arrived.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        let mut all = String::new();
        let mut chunk = [0; 4_096];
        while !all.contains(text) {
            let read = self.0.read(&mut chunk).await.unwrap();
            assert!(0 < read, "the connection ended before `{text}`: {all}");
            all.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        }
        all
    }

    /// Sends the text byte by byte, for as long as the server reads, and returns its answer.
    pub(crate) async fn drip(
        &mut self,
        every: Duration,
        bytes: impl Iterator<Item = u8>,
    ) -> String {
        let mut ticks = tokio::time::interval(every);
        let (mut reader, mut writer) = self.0.split();
        let mut answer = Vec::new();
        let dripping = async {
            for byte in bytes {
                ticks.tick().await;
                if writer.write_all(&[byte]).await.is_err() {
                    return;
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = dripping => {}
            _ = reader.read_to_end(&mut answer) => {}
        }
        String::from_utf8(answer).unwrap()
    }
}

pub(crate) const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n";

/// The head of a request with a body and the key of the operator.
pub(crate) fn post(more: &str) -> String {
    let key = jurat_testkit::app::admin_key().reveal();
    format!(
        "POST /api/v3/validate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n{more}\r\n"
    )
}
