//! A web server with documents that exist, are denied, late or endless, as a test wants.

use std::{collections::BTreeMap, convert::Infallible, future, net::SocketAddr, sync::Arc};

use axum::{Router, body::Body, extract::State};
use bytes::Bytes;
use http::{Response, StatusCode, Uri, header};
use jurat_core::canonical::digest;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

/// The content at an address.
#[derive(Debug, Clone)]
pub enum FakeDocument {
    Bytes(Vec<u8>),
    /// Content without a declared length.
    Chunks(Vec<u8>),
    Status(u16),
    /// The head of the answer never comes.
    Silence,
    /// The answer never ends.
    Endless,
    MovedTo(String),
}

/// A running server; it stops when it is dropped.
#[derive(Debug)]
pub struct FakeDocuments {
    address: SocketAddr,
    shared: Arc<DocumentsState>,
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct DocumentsState {
    documents: Mutex<BTreeMap<String, FakeDocument>>,
    asked: Mutex<Vec<String>>,
}

impl FakeDocuments {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(DocumentsState::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, _tasks: tasks }
    }

    pub fn put(&self, path: &str, document: FakeDocument) {
        self.shared.documents.lock().insert(path.to_owned(), document);
    }

    /// Publishes content and returns a reference to it.
    pub fn publish(&self, path: &str, bytes: &[u8]) -> Value {
        self.put(path, FakeDocument::Bytes(bytes.to_vec()));
        self.reference(path, bytes)
    }

    /// A reference to this content, whether or not it is published.
    pub fn reference(&self, path: &str, bytes: &[u8]) -> Value {
        json!({
            "uri": format!("http://{}{path}", self.address),
            "digest": digest(bytes),
            "size_bytes": bytes.len(),
            "mime": "text/plain",
            "created_at": 1,
            "producer": "tests",
        })
    }

    /// The requested paths, in order.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().clone()
    }
}

async fn answer(State(shared): State<Arc<DocumentsState>>, uri: Uri) -> Response<Body> {
    shared.asked.lock().push(uri.path().to_owned());
    let document = shared.documents.lock().get(uri.path()).cloned();
    let answer = Response::builder();
    match document.unwrap_or(FakeDocument::Status(404)) {
        FakeDocument::Bytes(bytes) => answer.body(bytes.into()),
        FakeDocument::Chunks(bytes) => {
            let parts: Vec<Result<Bytes, Infallible>> =
                bytes.chunks(7).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
            answer.body(Body::from_stream(futures::stream::iter(parts)))
        }
        FakeDocument::Status(status) => answer.status(status).body(Body::empty()),
        FakeDocument::Silence => future::pending().await,
        FakeDocument::Endless => {
            let part = || Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 4_096]));
            answer.body(Body::from_stream(futures::stream::repeat_with(part)))
        }
        FakeDocument::MovedTo(place) => {
            answer.status(StatusCode::FOUND).header(header::LOCATION, place).body(Body::empty())
        }
    }
    .unwrap()
}
