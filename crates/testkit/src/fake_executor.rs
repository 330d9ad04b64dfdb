//! Executors that speak real HTTP on a loopback port, correctly or not, as a test wants.

mod answer;
mod behaviour;
mod canary;
mod fault;
mod gate;
mod gzip;
pub(crate) mod http;
mod serve;
mod words;

use std::net::SocketAddr;
use std::sync::Arc;

use ::http::HeaderMap;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::answer::{FakeAnswer, FakeVerdict, ResultHashForm, result_hash};
pub use self::behaviour::{AnswerPace, Behaviour, FakeHealth};
pub use self::canary::{Canary, canary};
pub use self::fault::ExecutorFault;
pub use self::gate::Gate;
pub use self::words::*;

/// A running executor; it stops, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct FakeExecutor {
    address: SocketAddr,
    shared: Arc<FakeExecutorState>,
    /// Holds the accept loop, which holds the connections; dropping it ends them all.
    tasks: JoinSet<()>,
}

/// A request that the fake received, in the order of arrival.
#[derive(Debug, Clone)]
pub struct ReceivedCall {
    pub method: String,
    /// The request target as it was sent, with its query.
    pub path: String,
    pub headers: HeaderMap,
    /// The body as JSON; `null` without a body, a string if it is not JSON.
    pub body: Value,
    /// The body as it was sent, for checks of a digest or a signature.
    pub raw: Bytes,
}

impl ReceivedCall {
    /// The value of a header, if it is present and readable.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The last segment of the path: `execute`, `verify`, `agent-events`, `health` or `capabilities`.
    pub fn endpoint(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    fn is_work(&self) -> bool {
        matches!(self.endpoint(), "execute" | "verify")
    }
}

impl FakeExecutor {
    pub async fn start(behaviour: Behaviour) -> Self {
        Self::start_at("127.0.0.1", behaviour).await
    }

    /// Starts on another loopback address, for tests in which executors must not share a host.
    ///
    /// # Panics
    ///
    /// If no port is free at that address.
    #[expect(clippy::expect_used, reason = "without a loopback port no test can go on")]
    pub async fn start_at(host: &str, behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind((host, 0)).await.expect("a free loopback port");
        let address = listener.local_addr().expect("the address of a bound listener");
        let shared = Arc::new(FakeExecutorState::new(behaviour));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve::accept(listener, Arc::clone(&shared)));
        Self { address, shared, tasks }
    }

    /// The base address without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All calls so far, including `/health` and `/capabilities`.
    pub fn calls(&self) -> Vec<ReceivedCall> {
        self.shared.calls.lock().clone()
    }

    /// Waits until `n` calls of `/execute` or `/verify` have arrived in total.
    pub async fn wait_for_calls(&self, n: usize) {
        reach(&self.shared.work, n).await;
    }

    /// Waits until `n` calls of `/agent-events` have arrived in total, and returns them.
    pub async fn wait_for_events(&self, n: usize) -> Vec<ReceivedCall> {
        reach(&self.shared.event_count, n).await;
        self.events()
    }

    /// The calls of `/agent-events` so far.
    pub fn events(&self) -> Vec<ReceivedCall> {
        let mut calls = self.calls();
        calls.retain(|call| call.endpoint() == "agent-events");
        calls
    }

    /// Waits until the client has abandoned `n` calls in total before a complete answer.
    pub async fn abandoned(&self, n: usize) {
        reach(&self.shared.abandoned, n).await;
    }

    /// Changes the behaviour from the next request on; requests in progress keep the earlier one.
    /// The identity stays the same, unless the behaviour names another provider or model.
    pub fn set(&self, behaviour: Behaviour) {
        let current = self.shared.current();
        self.shared.install(behaviour.named_like(&current.behaviour));
    }

    /// Releases the `gated` answers, waiting and future ones, until the next `set`.
    pub fn release(&self) {
        self.shared.gates.lock().iter().for_each(Gate::release);
    }

    /// Stops, and returns when the port refuses connections.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// The state that the server's tasks and the test's handle share.
#[derive(Debug)]
struct FakeExecutorState {
    current: Mutex<Arc<InstalledBehaviour>>,
    calls: Mutex<Vec<ReceivedCall>>,
    work: watch::Sender<usize>,
    event_count: watch::Sender<usize>,
    abandoned: watch::Sender<usize>,
    /// The gates of all behaviours so far: calls may still wait under an earlier one.
    gates: Mutex<Vec<Gate>>,
}

/// A behaviour in force, with the gate of this fake.
#[derive(Debug)]
struct InstalledBehaviour {
    behaviour: Behaviour,
    own_gate: Gate,
}

impl FakeExecutorState {
    fn new(behaviour: Behaviour) -> Self {
        let own_gate = Gate::new();
        Self {
            gates: Mutex::new(vec![own_gate.clone()]),
            current: Mutex::new(Arc::new(InstalledBehaviour { behaviour, own_gate })),
            calls: Mutex::default(),
            work: watch::Sender::new(0),
            event_count: watch::Sender::new(0),
            abandoned: watch::Sender::new(0),
        }
    }

    fn install(&self, behaviour: Behaviour) {
        let own_gate = Gate::new();
        self.gates.lock().push(own_gate.clone());
        *self.current.lock() = Arc::new(InstalledBehaviour { behaviour, own_gate });
    }

    fn record(&self, call: &ReceivedCall) {
        self.calls.lock().push(call.clone());
        if call.is_work() {
            self.work.send_modify(|count| *count += 1);
        }
        if call.endpoint() == "agent-events" {
            self.event_count.send_modify(|count| *count += 1);
        }
    }

    fn current(&self) -> Arc<InstalledBehaviour> {
        Arc::clone(&self.current.lock())
    }
}

pub(crate) async fn reach(counter: &watch::Sender<usize>, n: usize) {
    // The sender outlives the wait, so it ends only when the number is reached.
    let _ = counter.subscribe().wait_for(|count| n <= *count).await;
}
