//! The numbers that say why a connection or a stream was closed.

use iroh::endpoint::VarInt;

// Of connections.
pub(crate) const CLOSING: VarInt = VarInt::from_u32(0);
pub(crate) const NOT_ADMITTED: VarInt = VarInt::from_u32(1);
pub(crate) const BUSY: VarInt = VarInt::from_u32(2);
pub(crate) const REPLACED: VarInt = VarInt::from_u32(3);
pub(crate) const DISCONNECTED: VarInt = VarInt::from_u32(4);

// Of streams, which may also be `NOT_ADMITTED`.
pub(crate) const CANCELLED: VarInt = VarInt::from_u32(16);
pub(crate) const UNANSWERED: VarInt = VarInt::from_u32(17);
pub(crate) const BAD_HEAD: VarInt = VarInt::from_u32(18);
pub(crate) const LATE: VarInt = VarInt::from_u32(19);
pub(crate) const BODY_REFUSED: VarInt = VarInt::from_u32(20);

/// What the other side means.
pub(crate) fn meaning(code: VarInt) -> &'static str {
    match code {
        CLOSING => "the peer is closing",
        NOT_ADMITTED => "the peer does not admit this node",
        BUSY => "the peer has no room for another connection",
        REPLACED => "a newer connection took over",
        DISCONNECTED => "the peer closed the connection",
        CANCELLED => "the peer cancelled the exchange",
        UNANSWERED => "the peer gave no answer",
        BAD_HEAD => "the peer could not read the head",
        LATE => "the peer gave up waiting",
        BODY_REFUSED => "the peer refused the body",
        _ => "the peer closed for a reason that this version does not know",
    }
}
