//! Events of a round while it runs, for `text/event-stream` replies.

use jurat_core::{
    id::RoundId,
    job::{Kind, Toggle},
    replica::{Label, Replica},
    round::{Closing, Seat},
};
use serde_json::{Value, json};

use super::consensus_reply::{ConsensusBlock, ReplicaBody};

pub const REPLICA_STARTED: &str = "replica_started";
pub const REPLICA_DONE: &str = "replica_done";
pub const DECIDED: &str = "decided";
pub const FINAL: &str = "final";
pub const ERROR: &str = "error";

pub fn replica_started(round: &RoundId, index: usize, seat: &Seat) -> Value {
    json!({
        "round_id": round.as_str(),
        "replica_id": index,
        "session_id": seat.session_id,
        "executor": seat.executor,
    })
}

pub fn replica_done(round: &RoundId, kind: Kind, replica: &Replica) -> Value {
    let mut body = json!(ReplicaBody::of(kind, Toggle::Off, replica, None));
    body["round_id"] = json!(round.as_str());
    body
}

pub fn decided(round: &RoundId, closing: &Closing) -> Value {
    json!({
        "round_id": round.as_str(),
        "verdict": closing.consensus.verdict.map(Label::as_str),
        "consensus": ConsensusBlock::of(closing),
    })
}
