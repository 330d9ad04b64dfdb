//! Events of a round while it runs, for `text/event-stream` replies.

use std::borrow::Cow;

use jurat_core::{
    id::RoundId,
    round::{
        RoundClosing, Seat,
        job::{JobKind, Toggle},
        replica::Replica,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    consensus_reply::{ConsensusBlock, ReplicaBody},
    kit::words::Label,
};

/// Name of the event that a replica is called.
pub const REPLICA_STARTED: &str = "replica_started";
/// Name of the event that a replica has ended.
pub const REPLICA_DONE: &str = "replica_done";
/// Name of the event that the round is recorded.
pub const DECIDED: &str = "decided";
/// Name of the last event, which carries the reply.
pub const FINAL: &str = "final";
/// Name of the last event of a stream that failed, which carries the problem.
pub const ERROR: &str = "error";

/// The event `replica_started`: a replica is called.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ReplicaStarted<'a> {
    pub round_id: Cow<'a, str>,
    /// Position in selection order, from 0.
    pub replica_id: usize,
    pub session_id: Cow<'a, str>,
    pub executor: Cow<'a, str>,
}

/// The event `decided`: the round is recorded.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Decided)]
pub struct DecidedEvent<'a> {
    pub round_id: Cow<'a, str>,
    /// The winning verdict; null if none won.
    #[schema(required = true)]
    pub verdict: Option<Label>,
    pub consensus: ConsensusBlock<'a>,
}

/// The event `replica_started`.
pub fn replica_started(round: &RoundId, index: usize, seat: &Seat) -> Value {
    json!(ReplicaStarted {
        round_id: Cow::Borrowed(round.as_str()),
        replica_id: index,
        session_id: Cow::Borrowed(&seat.session_id),
        executor: Cow::Borrowed(&seat.executor),
    })
}

/// The event `replica_done`, without traces and without a group.
pub fn replica_done(round: &RoundId, kind: JobKind, replica: &Replica) -> Value {
    json!(ReplicaBody::of(kind, Toggle::Off, replica, None).in_round(round))
}

/// The event `decided`.
pub fn decided(round: &RoundId, closing: &RoundClosing) -> Value {
    json!(DecidedEvent {
        round_id: Cow::Borrowed(round.as_str()),
        verdict: closing.consensus.verdict.map(Label),
        consensus: ConsensusBlock::of(closing),
    })
}
