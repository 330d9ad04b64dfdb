//! A provider of models that speaks both protocols on a loopback port, correctly or not, as
//! scripted.

mod reply;
mod request;

use std::{collections::VecDeque, io, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

pub use self::{
    reply::{ProviderReply, commitment, verdict},
    request::{FakeProviderRequest, ProviderProtocol},
};
use crate::fake_executor::{http::ClientConnection, reach};

/// The reply of the provider to a request.
type ProviderScript = dyn Fn(&FakeProviderRequest) -> ProviderReply + Send + Sync;

/// A running provider; it stops, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<FakeProviderState>,
    _tasks: JoinSet<()>,
}

struct FakeProviderState {
    script: Box<ProviderScript>,
    asked: Mutex<Vec<FakeProviderRequest>>,
    count: watch::Sender<usize>,
    /// The input and output tokens that every answer reports.
    usage: Mutex<Option<(u64, u64)>>,
}

impl std::fmt::Debug for FakeProviderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeProviderState").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl FakeProvider {
    /// Starts a provider with a script that answers each request.
    pub async fn start(
        script: impl Fn(&FakeProviderRequest) -> ProviderReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(FakeProviderState {
            script: Box::new(script),
            asked: Mutex::default(),
            count: watch::Sender::new(0),
            usage: Mutex::new(Some((100, 20))),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, _tasks: tasks }
    }

    /// Starts a provider that gives these replies in sequence, and repeats the last one.
    pub async fn saying(says: impl IntoIterator<Item = ProviderReply>) -> Self {
        let queue = Mutex::new(says.into_iter().collect::<VecDeque<_>>());
        Self::start(move |_| {
            let mut queue = queue.lock();
            let next = if 1 < queue.len() { queue.pop_front() } else { queue.front().cloned() };
            next.unwrap_or_else(|| ProviderReply::Status(500))
        })
        .await
    }

    /// Starts a provider that obeys every order outside of the marked data: it answers `met` if it
    /// reads the trigger there, and `not_met` otherwise.
    pub async fn obeying(trigger: &'static str) -> Self {
        Self::start(move |asked| {
            let is_led = asked.outside_of_marks().contains(trigger);
            ProviderReply::Answer(verdict(if is_led { "met" } else { "not_met" }))
        })
        .await
    }

    /// The base address without a trailing slash; both protocols are below it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, in the order of arrival.
    pub fn asked(&self) -> Vec<FakeProviderRequest> {
        self.shared.asked.lock().clone()
    }

    /// The request that arrived last.
    pub fn last(&self) -> Option<FakeProviderRequest> {
        self.shared.asked.lock().last().cloned()
    }

    /// Waits until this many requests have arrived in total.
    pub async fn was_asked(&self, times: usize) {
        reach(&self.shared.count, times).await;
    }

    /// How many tokens every answer reports from now on; `None` reports none.
    pub fn set_usage(&self, tokens: Option<(u64, u64)>) {
        *self.shared.usage.lock() = tokens;
    }
}

async fn accept(listener: TcpListener, shared: Arc<FakeProviderState>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(converse(stream, Arc::clone(&shared)));
    }
}

async fn converse(stream: TcpStream, shared: Arc<FakeProviderState>) {
    let _ = stream.set_nodelay(true);
    let mut connection = ClientConnection::new(stream);
    while let Ok(Some(call)) = connection.request().await {
        let Some(asked) = FakeProviderRequest::of(call) else {
            let _ = connection
                .reply_json(404, &json!({ "error": { "type": "not_found_error" } }))
                .await;
            continue;
        };
        let says = (shared.script)(&asked);
        shared.asked.lock().push(asked.clone());
        shared.count.send_modify(|count| *count += 1);
        let usage = *shared.usage.lock();
        if says.tell(&mut connection, asked.protocol, usage).await.is_err() {
            return;
        }
    }
}

/// A connection that ends as intended.
fn ended() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}
