//! A node that speaks the real protocol between nodes, and does with it what a test wants.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use ed25519_dalek::{Signer as _, SigningKey};
use jurat_mesh::{
    IncomingRequest, Mesh, MeshCallError, MeshGate, MeshLimits, MeshMessage, MeshRequests,
    MeshSettings, NodeAddress,
};
use jurat_wire::mesh::{Envelope, NodeReply, NodeRequest, Route, SignedMessage, body_digest};
use parking_lot::Mutex;

const WITHIN: Duration = Duration::from_secs(10);
const MOST_BODY: usize = 4 * 1024 * 1024;

/// An endpoint on this machine, with a key that follows from the number.
pub async fn bind_mesh(seed: u8) -> (Mesh, MeshRequests) {
    let listen: Vec<SocketAddr> = vec!["127.0.0.1:0".parse().unwrap()];
    let settings = MeshSettings {
        seed: [seed; 32],
        listen,
        relays: Vec::new(),
        find_local: false,
        limits: MeshLimits::default(),
    };
    Mesh::bind(settings).await.unwrap()
}

/// The node of a test.
#[derive(Debug)]
pub struct FakePeer {
    mesh: Mesh,
    requests: Mutex<Option<MeshRequests>>,
    key: SigningKey,
}

/// What a fake node replies: a document and a body.
pub type FakeReply = (NodeReply, Bytes);

impl FakePeer {
    pub async fn start(seed: u8) -> Arc<Self> {
        let (mesh, requests) = bind_mesh(seed).await;
        mesh.set_gate(Arc::new(|_| MeshGate::Admit));
        let key = SigningKey::from_bytes(&[seed; 32]);
        Arc::new(Self { mesh, requests: Mutex::new(Some(requests)), key })
    }

    pub fn id(&self) -> String {
        self.mesh.id()
    }

    pub fn address(&self) -> NodeAddress {
        self.mesh.address()
    }

    /// The route of a message of this node.
    pub fn route(&self, to: &str) -> Route {
        Route::new(&self.id(), to, 0)
    }

    /// Signs a document as this node.
    pub fn sign(&self, document: &[u8]) -> Vec<u8> {
        self.key.sign(document).to_bytes().to_vec()
    }

    /// Sends a request as an honest node does.
    pub async fn ask(
        &self,
        to: &NodeAddress,
        request: &NodeRequest,
        body: Bytes,
    ) -> Result<FakeReply, MeshCallError> {
        let head = Envelope::seal(request, |document| self.sign(document)).to_head();
        self.send(to, head, body).await
    }

    /// Sends any bytes.
    pub async fn send(
        &self,
        to: &NodeAddress,
        head: Vec<u8>,
        body: Bytes,
    ) -> Result<FakeReply, MeshCallError> {
        let message = MeshMessage { head, body };
        let arrived = self.mesh.request(to, message, WITHIN, MOST_BODY).await?;
        let head: SignedMessage<NodeReply> = Envelope::read(&arrived.head).unwrap();
        Ok((head.message, arrived.body))
    }

    /// Answers every request in the way of the test.
    pub fn answer<F>(self: &Arc<Self>, mut reply: F)
    where
        F: FnMut(&FakePeer, SignedMessage<NodeRequest>, Bytes) -> Option<(Vec<u8>, Bytes)>
            + Send
            + 'static,
    {
        let mut requests = self.requests.lock().take().unwrap();
        let node = Arc::clone(self);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        tokio::spawn(async move {
            while let Some(mut incoming) = requests.next().await {
                let Some((head, body)) = read(&mut incoming).await else { continue };
                match reply(&node, head, body) {
                    Some((head, body)) => {
                        let _gone = incoming.reply.send(MeshMessage { head, body }).await;
                    }
                    // It holds the request, and never answers.
                    None => std::mem::forget(incoming),
                }
            }
        });
    }

    /// A reply as an honest node signs it.
    pub fn sealed(&self, reply: &NodeReply, body: Bytes) -> (Vec<u8>, Bytes) {
        (Envelope::seal(reply, |document| self.sign(document)).to_head(), body)
    }

    pub async fn close(&self) {
        self.mesh.close().await;
    }
}

async fn read(incoming: &mut IncomingRequest) -> Option<(SignedMessage<NodeRequest>, Bytes)> {
    let head = Envelope::read(&incoming.head).ok()?;
    let body = incoming.body(MOST_BODY).await.ok()?;
    Some((head, body))
}

/// The digest that a head gives for a body.
pub fn digest_of(body: &[u8]) -> String {
    body_digest(body)
}
