//! Requests of peers, one after the other, and the slots for their replies.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use iroh::endpoint::{RecvStream, SendStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    codes,
    error::{BodyError, MeshCallError},
    frame::{self, MeshMessage},
    links::LinkUse,
    settings::MeshLimits,
};

/// The requests of all peers.
#[derive(Debug)]
pub struct MeshRequests {
    queue: mpsc::Receiver<IncomingRequest>,
    stopping: CancellationToken,
}

/// A request of a peer. Its body is not read until it is asked for.
#[derive(Debug)]
pub struct IncomingRequest {
    /// The id of the peer, which it proved.
    pub peer: String,
    pub head: Vec<u8>,
    /// How large the body is, as the peer says.
    pub body_bytes: u64,
    pub reply: ReplySlot,
    pub(crate) body: Option<RecvStream>,
    pub(crate) within: Duration,
}

/// Takes the reply to one request. If it is dropped, the caller learns that there is none.
#[derive(Debug)]
pub struct ReplySlot {
    send: SendStream,
    most_head: usize,
    within: Duration,
    is_sent: bool,
    _in_use: LinkUse,
}

impl MeshRequests {
    pub(crate) fn new(queue: mpsc::Receiver<IncomingRequest>, stopping: CancellationToken) -> Self {
        Self { queue, stopping }
    }

    /// The next request whose caller still waits; `None` once the mesh is closed.
    pub async fn next(&mut self) -> Option<IncomingRequest> {
        loop {
            let request = self.stopping.run_until_cancelled(self.queue.recv()).await??;
            if !request.reply.is_abandoned() {
                return Some(request);
            }
        }
    }
}

impl IncomingRequest {
    /// Reads the body if it has at most `most` bytes. The caller of a larger one can still be sent
    /// a reply.
    pub async fn body(&mut self, most: usize) -> Result<Bytes, BodyError> {
        let mut recv = self.body.take().ok_or(BodyError::AlreadyRead)?;
        let reading = frame::read_body(&mut recv, self.body_bytes, most);
        let error = match tokio::time::timeout(self.within, reading).await {
            Ok(Ok(body)) => return Ok(body),
            Ok(Err(error)) => BodyError::from(error),
            Err(_) => BodyError::Timeout,
        };
        // The half may be closed already, and then there is nothing to stop.
        let _closed = recv.stop(codes::BODY_REFUSED);
        Err(error)
    }
}

impl ReplySlot {
    pub(crate) fn new(send: SendStream, in_use: LinkUse, limits: &MeshLimits) -> Self {
        Self {
            send,
            most_head: limits.head_bytes,
            within: limits.transfer_timeout,
            is_sent: false,
            _in_use: in_use,
        }
    }

    /// Sends the reply, and waits until the peer's machine has all of it.
    pub async fn send(mut self, message: MeshMessage) -> Result<(), MeshCallError> {
        let start = frame::start_of(&message, self.most_head)
            .ok_or(MeshCallError::TooLarge { limit: self.most_head })?;
        let sending = async {
            frame::write(&mut self.send, start, message.body).await?;
            match self.send.stopped().await? {
                None => Ok(()),
                Some(code) => Err(MeshCallError::of_stream(code)),
            }
        };
        match tokio::time::timeout(self.within, sending).await {
            Ok(sent) => {
                self.is_sent = sent.is_ok();
                sent
            }
            Err(_) => Err(MeshCallError::Timeout),
        }
    }

    /// Ends when the caller no longer waits for a reply, or has it.
    pub fn abandoned(&self) -> impl Future<Output = ()> + Send + use<> {
        self.send.stopped().map(|_| ())
    }

    /// Ends like [`ReplySlot::abandoned`], and says whether the caller gave the request up. A caller
    /// whose connection broke may send it again.
    pub fn given_up(&self) -> impl Future<Output = bool> + Send + use<> {
        self.send.stopped().map(|ended| matches!(ended, Ok(Some(_))))
    }

    fn is_abandoned(&self) -> bool {
        self.abandoned().now_or_never().is_some()
    }
}

impl Drop for ReplySlot {
    fn drop(&mut self) {
        if !self.is_sent {
            // The half may be closed already, and then there is nothing to reset.
            let _closed = self.send.reset(codes::UNANSWERED);
        }
    }
}
