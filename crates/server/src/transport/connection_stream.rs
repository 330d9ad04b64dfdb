//! A connection that watches its peer: heads must arrive in time, and replies must be read.

use std::{
    future::Future as _,
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::oneshot,
    time::{Instant, Sleep, sleep_until},
};

use super::inbound::InboundLimits;

/// The phase of a connection, shared with the service that answers it.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPhase(Arc<AtomicU8>);

/// A head is expected, or arrives.
const HEAD: u8 = 0;
/// A request is being read or answered.
const BUSY: u8 = 1;
/// The last request is answered and the next may take its time.
const IDLE: u8 = 2;

impl ConnectionPhase {
    pub(crate) fn busy(&self) {
        self.0.store(BUSY, Ordering::Release);
    }

    pub(crate) fn idle(&self) {
        self.0.store(IDLE, Ordering::Release);
    }

    fn is(&self, phase: u8) -> bool {
        self.0.load(Ordering::Acquire) == phase
    }
}

#[derive(Debug)]
pub(crate) struct ConnectionStream {
    /// Empty only while it is dropped.
    stream: Option<TcpStream>,
    /// Returns the stream when the protocol is done with it.
    back: Option<oneshot::Sender<TcpStream>>,
    inbound: InboundLimits,
    phase: ConnectionPhase,
    head: Pin<Box<Sleep>>,
    stall: WriteStall,
}

/// Watches whether the peer reads what is written.
#[derive(Debug, Default)]
struct WriteStall {
    /// Kept once it is made; only counts while a write waits.
    alarm: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    taken: u64,
}

impl ConnectionStream {
    /// The wrapped stream, and a receiver that gets the stream back when the wrapper is dropped.
    pub(crate) fn new(
        stream: TcpStream,
        inbound: InboundLimits,
    ) -> (Self, ConnectionPhase, oneshot::Receiver<TcpStream>) {
        let (back, returned) = oneshot::channel();
        let phase = ConnectionPhase(Arc::new(AtomicU8::new(HEAD)));
        let line = Self {
            stream: Some(stream),
            back: Some(back),
            inbound,
            phase: phase.clone(),
            head: Box::pin(sleep_until(Instant::now() + inbound.header_timeout)),
            stall: WriteStall::default(),
        };
        (line, phase, returned)
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Follows a write: if it waits too long for its peer, it fails.
    fn watch(
        &mut self,
        wanted: usize,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.stall.taken += bytes as u64;
                // Only a socket that accepts everything has room again.
                if wanted <= bytes {
                    self.stall.is_waiting = false;
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.stall.poll(&self.inbound, context).map(Err),
        }
    }
}

impl WriteStall {
    fn poll(&mut self, inbound: &InboundLimits, context: &mut Context<'_>) -> Poll<io::Error> {
        if !self.is_waiting {
            self.is_waiting = true;
            self.begin(inbound);
        }
        loop {
            let Some(alarm) = &mut self.alarm else { return Poll::Pending };
            std::task::ready!(alarm.as_mut().poll(context));
            if self.taken < inbound.write_floor().max(1) {
                let text = "the peer does not read its reply";
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.begin(inbound);
        }
    }

    fn begin(&mut self, inbound: &InboundLimits) {
        self.taken = 0;
        let due = Instant::now() + inbound.write_timeout;
        match &mut self.alarm {
            Some(alarm) => alarm.as_mut().reset(due),
            None => self.alarm = Some(Box::pin(sleep_until(due))),
        }
    }
}

impl Drop for ConnectionStream {
    fn drop(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take()) {
            // There is no receiver if the whole connection is dropped.
            drop(back.send(stream));
        }
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.stream()?.poll_read(context, buffer);
        let has_come = before < buffer.filled().len();
        if has_come && self.phase.is(IDLE) {
            self.phase.0.store(HEAD, Ordering::Release);
            let due = Instant::now() + self.inbound.header_timeout;
            self.head.as_mut().reset(due);
        }
        if self.phase.is(HEAD) && self.head.as_mut().poll(context).is_ready() {
            let text = "a request head arrived too slowly";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)));
        }
        read
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write(context, bytes);
        self.watch(bytes.len(), written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream()?.poll_write_vectored(context, slices);
        let wanted = slices.iter().map(|slice| slice.len()).sum();
        self.watch(wanted, written, context)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}
