//! A receiver of webhooks that accepts, refuses, hangs or answers too much, as a test wants.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, body::Body, body::to_bytes, extract::State};
use http::{HeaderMap, Request, Response, StatusCode, header};
use jurat_guard::public::{ResolveFuture, Resolver};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

/// The answer of a receiver.
#[derive(Debug, Clone)]
pub enum ReceiverAnswer {
    Status(u16),
    /// A success with a body of this size.
    Bytes(usize),
    /// The head of the answer does not come before the receiver is given another answer.
    Silence,
    MovedTo(String),
}

/// A request that a receiver got.
#[derive(Debug, Clone)]
pub struct ReceivedDelivery {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl ReceivedDelivery {
    /// A header as text.
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A running receiver; it stops when it is dropped.
#[derive(Debug)]
pub struct FakeReceiver {
    address: SocketAddr,
    shared: Arc<ReceiverState>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct ReceiverState {
    answer: watch::Sender<ReceiverAnswer>,
    received: watch::Sender<Vec<ReceivedDelivery>>,
}

impl FakeReceiver {
    pub async fn start(answer: ReceiverAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (answer, received) = (watch::Sender::new(answer), watch::Sender::new(Vec::new()));
        let shared = Arc::new(ReceiverState { answer, received });
        let router = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, _tasks: tasks }
    }

    /// The address for a webhook.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn answer_with(&self, answer: ReceiverAnswer) {
        self.shared.answer.send_replace(answer);
    }

    pub fn received(&self) -> Vec<ReceivedDelivery> {
        self.shared.received.borrow().clone()
    }

    /// Waits until this many requests have arrived.
    pub async fn until(&self, count: usize) -> Vec<ReceivedDelivery> {
        let mut watching = self.shared.received.subscribe();
        watching.wait_for(|received| count <= received.len()).await.unwrap().clone()
    }
}

/// A resolver that knows one address for every name, which a test can change.
#[derive(Debug)]
pub struct OneAddress(Mutex<&'static str>);

impl OneAddress {
    pub fn new(address: &'static str) -> Arc<Self> {
        Arc::new(Self(Mutex::new(address)))
    }

    pub fn set(&self, address: &'static str) {
        *self.0.lock() = address;
    }
}

impl Resolver for OneAddress {
    fn resolve(&self, _host: String) -> ResolveFuture {
        let address = self.0.lock().parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    }
}

async fn receive(
    State(shared): State<Arc<ReceiverState>>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let mut answers = shared.answer.subscribe();
    let mut answer = answers.borrow().clone();
    shared.received.send_modify(|all| all.push(ReceivedDelivery { headers: parts.headers, body }));
    loop {
        if let Some(response) = written(answer) {
            return response;
        }
        answers.changed().await.unwrap();
        answer = answers.borrow_and_update().clone();
    }
}

/// An answer, unless it is silence.
fn written(answer: ReceiverAnswer) -> Option<Response<Body>> {
    let response = Response::builder();
    Some(match answer {
        ReceiverAnswer::Status(status) => {
            let status = StatusCode::from_u16(status).unwrap();
            response.status(status).body(Body::from("the answer")).unwrap()
        }
        ReceiverAnswer::Bytes(count) => response.body(Body::from(vec![b'x'; count])).unwrap(),
        ReceiverAnswer::Silence => return None,
        ReceiverAnswer::MovedTo(place) => {
            let moved = response.status(StatusCode::FOUND).header(header::LOCATION, place);
            moved.body(Body::empty()).unwrap()
        }
    })
}
