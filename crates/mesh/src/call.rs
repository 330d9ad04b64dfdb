//! One request of this node: its stream, which is ended on both sides if the reply is not awaited.

use std::{convert::Infallible, future};

use bytes::Bytes;
use iroh::endpoint::{RecvStream, SendStream};

use crate::{
    codes,
    error::MeshCallError,
    frame::{self, FrameError, MeshMessage, MessageStart},
    links::LinkUse,
};

/// A stream of this node's. Dropping it before it is done tells the peer to stop.
#[derive(Debug)]
pub(crate) struct OutgoingStream {
    send: SendStream,
    recv: RecvStream,
    is_sent: bool,
    is_answered: bool,
    _in_use: LinkUse,
}

/// The most that is read of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MostOfReply {
    pub(crate) head: usize,
    pub(crate) body: usize,
}

impl OutgoingStream {
    pub(crate) fn new(send: SendStream, recv: RecvStream, in_use: LinkUse) -> Self {
        Self { send, recv, is_sent: false, is_answered: false, _in_use: in_use }
    }

    /// Sends a request and reads its reply, which may come before all of the request was taken.
    pub(crate) async fn exchange(
        mut self,
        start: Bytes,
        body: Bytes,
        limits: MostOfReply,
    ) -> Result<MeshMessage, MeshCallError> {
        let Self { send, recv, is_sent, .. } = &mut self;
        let reply = tokio::select! {
            biased;
            never = write(send, start, body, is_sent) => match never {},
            reply = read(recv, limits) => reply?,
        };
        self.is_answered = true;
        Ok(reply)
    }
}

/// Sends a request. It does not end: if it fails, reading the reply says why.
async fn write(send: &mut SendStream, start: Bytes, body: Bytes, is_sent: &mut bool) -> Infallible {
    *is_sent = frame::write(send, start, body).await.is_ok();
    future::pending().await
}

async fn read(recv: &mut RecvStream, limits: MostOfReply) -> Result<MeshMessage, FrameError> {
    let MessageStart { head, body_bytes } = frame::read_start(recv, limits.head).await?;
    let body = frame::read_body(recv, body_bytes, limits.body).await?;
    Ok(MeshMessage { head, body })
}

impl Drop for OutgoingStream {
    fn drop(&mut self) {
        let is_done = self.is_sent && self.is_answered;
        // Either half may be closed already, and then there is nothing to end.
        if !is_done {
            let _closed = self.send.reset(codes::CANCELLED);
        }
        if !self.is_answered {
            let _closed = self.recv.stop(codes::CANCELLED);
        }
    }
}
