//! Why there is no mesh, no reply, or no body.

use std::net::SocketAddr;

use iroh::endpoint::{
    ConnectError, ConnectWithOptsError, ConnectingError, ConnectionError, ReadError, StoppedError,
    VarInt, WriteError,
};

use crate::{codes, frame::FrameError};

/// The most of a text that comes from elsewhere.
const MOST_CHARS: usize = 200;

/// Why a node does not take part in the mesh.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    #[error("the mesh has neither an address to listen on nor a relay")]
    NoAddress,
    #[error("`{url}` is not the URL of a relay")]
    Relay { url: String },
    #[error("the limit `{name}` must be between {least} and {most}, and is {value}")]
    Limit { name: &'static str, value: u64, least: u64, most: u64 },
    #[error("the addresses {listen:?} cannot be listened on: {reason}")]
    Bind { listen: Vec<SocketAddr>, reason: String },
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeshCallError {
    #[error("no answer before the deadline")]
    Timeout,
    #[error("no connection: {reason}")]
    Unreachable { reason: String },
    #[error("the exchange ended early: {reason}")]
    Disconnected { reason: String },
    #[error("the message is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the peer does not admit this node")]
    Refused,
}

/// Why the body of a request is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the body has {announced} bytes, and {limit} are allowed")]
    TooLarge { limit: usize, announced: u64 },
    #[error("the body did not arrive in time")]
    Timeout,
    #[error("the caller gave up")]
    Abandoned,
    #[error("the body is not as long as was announced")]
    Malformed,
    #[error("the connection ended before the body did: {reason}")]
    Disconnected { reason: String },
    #[error("the body was already read")]
    AlreadyRead,
}

impl MeshCallError {
    pub(crate) fn unreachable(reason: impl Into<String>) -> Self {
        Self::Unreachable { reason: reason.into() }
    }

    pub(crate) fn disconnected(reason: impl Into<String>) -> Self {
        Self::Disconnected { reason: reason.into() }
    }

    pub(crate) fn of_stream(code: VarInt) -> Self {
        if code == codes::NOT_ADMITTED {
            return Self::Refused;
        }
        Self::disconnected(codes::meaning(code))
    }

    /// Why a connection was not made.
    fn of_handshake(error: &ConnectionError) -> Self {
        match closed_with(error) {
            Some(codes::NOT_ADMITTED) => Self::Refused,
            _ => Self::Unreachable { reason: lost(error) },
        }
    }
}

impl From<ConnectError> for MeshCallError {
    fn from(error: ConnectError) -> Self {
        match &error {
            ConnectError::Connection { source, .. }
            | ConnectError::Connecting {
                source: ConnectingError::ConnectionError { source, .. },
                ..
            } => Self::of_handshake(source),
            ConnectError::Connect { source: ConnectWithOptsError::NoAddress { .. }, .. } => {
                Self::unreachable("no address of the node is known")
            }
            ConnectError::Connect { source: ConnectWithOptsError::SelfConnect { .. }, .. } => {
                Self::unreachable("the node is this node")
            }
            ConnectError::Connect { .. } | ConnectError::Connecting { .. } | _ => {
                Self::unreachable(plain(&format!("{error:#}")))
            }
        }
    }
}

impl From<ConnectionError> for MeshCallError {
    fn from(error: ConnectionError) -> Self {
        match closed_with(&error) {
            Some(codes::NOT_ADMITTED) => Self::Refused,
            // Said before anything was read.
            Some(codes::BUSY) => Self::Unreachable { reason: lost(&error) },
            _ => Self::Disconnected { reason: lost(&error) },
        }
    }
}

impl From<FrameError> for MeshCallError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLarge { limit, .. } => Self::TooLarge { limit },
            FrameError::Ended => Self::disconnected("the message is cut off"),
            FrameError::Trailing => Self::disconnected("the message is longer than was announced"),
            FrameError::Read(ReadError::Reset(code)) => Self::of_stream(code),
            FrameError::Read(ReadError::ConnectionLost(error)) => error.into(),
            FrameError::Read(ReadError::ClosedStream | ReadError::ZeroRttRejected) => {
                Self::disconnected("the stream is closed")
            }
        }
    }
}

impl From<WriteError> for MeshCallError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::of_stream(code),
            WriteError::ConnectionLost(error) => error.into(),
            WriteError::ClosedStream | WriteError::ZeroRttRejected => {
                Self::disconnected("the stream is closed")
            }
        }
    }
}

impl From<StoppedError> for MeshCallError {
    fn from(error: StoppedError) -> Self {
        match error {
            StoppedError::ConnectionLost(error) => error.into(),
            StoppedError::ZeroRttRejected => Self::disconnected("the stream is closed"),
        }
    }
}

impl From<FrameError> for BodyError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLarge { limit, announced } => Self::TooLarge { limit, announced },
            FrameError::Ended | FrameError::Trailing => Self::Malformed,
            FrameError::Read(ReadError::Reset(_)) => Self::Abandoned,
            FrameError::Read(ReadError::ConnectionLost(error)) => {
                Self::Disconnected { reason: lost(&error) }
            }
            FrameError::Read(ReadError::ClosedStream | ReadError::ZeroRttRejected) => {
                Self::AlreadyRead
            }
        }
    }
}

/// The code of a peer that closed the connection.
fn closed_with(error: &ConnectionError) -> Option<VarInt> {
    if let ConnectionError::ApplicationClosed(close) = error {
        Some(close.error_code)
    } else {
        None
    }
}

/// Why a connection ended. What the peer says is not repeated, only its code.
fn lost(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ApplicationClosed(close) => codes::meaning(close.error_code).to_owned(),
        ConnectionError::TimedOut => "the peer no longer answers".to_owned(),
        ConnectionError::LocallyClosed => "this node closed the connection".to_owned(),
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::Reset
        | ConnectionError::CidsExhausted => plain(&error.to_string()),
    }
}

/// A text from elsewhere, short and without control characters.
pub(crate) fn plain(text: &str) -> String {
    let visible = |it: char| if it.is_control() { ' ' } else { it };
    text.chars().take(MOST_CHARS).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_a_peer_is_short_and_visible() {
        assert_eq!(plain("no\n\u{1b}[31m"), "no  [31m");
        assert_eq!(plain(&"x".repeat(10_000)).len(), MOST_CHARS);
    }
}
