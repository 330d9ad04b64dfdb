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

pub const REPLICA_STARTED: &str = "replica_started";
pub const REPLICA_DONE: &str = "replica_done";
pub const DECIDED: &str = "decided";
pub const FINAL: &str = "final";
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

pub fn replica_started(round: &RoundId, index: usize, seat: &Seat) -> Value {
    json!(ReplicaStarted {
        round_id: Cow::Borrowed(round.as_str()),
        replica_id: index,
        session_id: Cow::Borrowed(&seat.session_id),
        executor: Cow::Borrowed(&seat.executor),
    })
}

pub fn replica_done(round: &RoundId, kind: JobKind, replica: &Replica) -> Value {
    json!(ReplicaBody::of(kind, Toggle::Off, replica, None).in_round(round))
}

pub fn decided(round: &RoundId, closing: &RoundClosing) -> Value {
    json!(DecidedEvent {
        round_id: Cow::Borrowed(round.as_str()),
        verdict: closing.consensus.verdict.map(Label),
        consensus: ConsensusBlock::of(closing),
    })
}
