//! The form of a message in a stream: a head and a body, each behind its length.

use bytes::{BufMut as _, Bytes, BytesMut};
use iroh::endpoint::{ReadError, ReadExactError, RecvStream, SendStream, WriteError};

/// How much is reserved before the first byte arrives.
const FIRST_BYTES: usize = 16 * 1024;

/// A request or a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeshMessage {
    /// The small part, which is read at once.
    pub head: Vec<u8>,
    /// The large part, which is read when it is wanted.
    pub body: Bytes,
}

/// The beginning of a message.
#[derive(Debug)]
pub(crate) struct MessageStart {
    pub(crate) head: Vec<u8>,
    pub(crate) body_bytes: u64,
}

/// Why a message cannot be read.
#[derive(Debug)]
pub(crate) enum FrameError {
    TooLarge { limit: usize, announced: u64 },
    Ended,
    Trailing,
    Read(ReadError),
}

impl From<ReadError> for FrameError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// The lengths and the head, as they precede the body; `None` if the head is too large.
pub(crate) fn start_of(message: &MeshMessage, most_head: usize) -> Option<Bytes> {
    let head = message.head.as_slice();
    let length = u32::try_from(head.len()).ok().filter(|_| head.len() <= most_head)?;
    let mut start = BytesMut::with_capacity(head.len() + 12);
    start.put_u32(length);
    start.put_slice(head);
    start.put_u64(u64::try_from(message.body.len()).unwrap_or(u64::MAX));
    Some(start.freeze())
}

/// Writes a message to its end.
pub(crate) async fn write(
    send: &mut SendStream,
    start: Bytes,
    body: Bytes,
) -> Result<(), WriteError> {
    if body.is_empty() {
        send.write_chunk(start).await?;
    } else {
        send.write_all_chunks(&mut [start, body]).await?;
    }
    send.finish().map_err(WriteError::from)
}

/// Reads a message up to its body.
pub(crate) async fn read_start(
    recv: &mut RecvStream,
    most_head: usize,
) -> Result<MessageStart, FrameError> {
    let length = u32::from_be_bytes(read_array(recv).await?);
    let head = read_bytes(recv, length.into(), most_head).await?;
    let body_bytes = u64::from_be_bytes(read_array(recv).await?);
    Ok(MessageStart { head, body_bytes })
}

/// Reads a body, which is the rest of the stream.
pub(crate) async fn read_body(
    recv: &mut RecvStream,
    announced: u64,
    most: usize,
) -> Result<Bytes, FrameError> {
    let body = read_bytes(recv, announced, most).await?;
    match recv.read_chunk(1).await? {
        None => Ok(body.into()),
        Some(_) => Err(FrameError::Trailing),
    }
}

async fn read_array<const N: usize>(recv: &mut RecvStream) -> Result<[u8; N], FrameError> {
    let mut array = [0; N];
    match recv.read_exact(&mut array).await {
        Ok(()) => Ok(array),
        Err(ReadExactError::FinishedEarly(_)) => Err(FrameError::Ended),
        Err(ReadExactError::ReadError(error)) => Err(error.into()),
    }
}

/// Memory grows with what arrives, never with what is announced.
async fn read_bytes(
    recv: &mut RecvStream,
    announced: u64,
    most: usize,
) -> Result<Vec<u8>, FrameError> {
    let length = usize::try_from(announced).ok().filter(|length| *length <= most);
    let Some(length) = length else {
        return Err(FrameError::TooLarge { limit: most, announced });
    };
    let mut bytes = Vec::with_capacity(length.min(FIRST_BYTES));
    while bytes.len() < length {
        // Copied, because a chunk keeps the whole datagram that it came in.
        let chunk = recv.read_chunk(length - bytes.len()).await?;
        bytes.extend_from_slice(&chunk.ok_or(FrameError::Ended)?);
    }
    Ok(bytes)
}
